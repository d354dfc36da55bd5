//! The state file: which threads' policies were changed, and what they were before.
//!
//! A line is written *before* a thread is first given a reservation (`take`) and after its old policy was given back (`give`). So whatever
//! instant the tuner dies at, the file names every thread that may be changed; a torn last line is about a change that was not
//! made yet. Giving a policy back twice does no harm.
//!
//! ```text
//! attune-tuner 1 BOOT
//! take THREAD START POLICY FLAGS NICE PRIORITY RUNTIME DEADLINE PERIOD
//! give THREAD START
//! ```
//!
//! BOOT is the kernel's boot id: after a reboot the file means nothing. START is the thread's start time in clock ticks since boot,
//! which tells it from a later thread of the same number.
//!
//! The tuner and its guardian hold a lock on the file, the same open file: while either lives, nobody else touches it. A file
//! that nobody has locked is a tuner's that was killed with its guardian; whoever starts next repairs from it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::policy::Policy;
use crate::process;

/// A thread, and not another that got its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId {
    pub thread: u32,
    /// Clock ticks since boot.
    pub start: u64,
}

const HEAD: &str = "attune-tuner 1";

/// What a journal's text says: the policies that have yet to be given back. None if it is no journal, or of an earlier boot.
pub fn replay(text: &str, boot: &str) -> Option<BTreeMap<ThreadId, Policy>> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    if lines.next()? != format!("{HEAD} {boot}") {
        return None;
    }
    let mut held = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match (words.as_slice(), thread_id(&words)) {
            // Only the first word about a thread tells how it was before.
            (["take", _, _, policy @ ..], Some(id)) => {
                if let Some(policy) = parse_policy(policy) {
                    held.entry(id).or_insert(policy);
                }
            }
            (["give", _, _], Some(id)) => {
                held.remove(&id);
            }
            _ => {}
        }
    }
    Some(held)
}

fn thread_id(words: &[&str]) -> Option<ThreadId> {
    Some(ThreadId { thread: words.get(1)?.parse().ok()?, start: words.get(2)?.parse().ok()? })
}

fn parse_policy(words: &[&str]) -> Option<Policy> {
    let [policy, flags, nice, priority, runtime, deadline, period] = words else { return None };
    let times = [runtime.parse().ok()?, deadline.parse().ok()?, period.parse().ok()?];
    Some(Policy::new(
        policy.parse().ok()?,
        flags.parse().ok()?,
        nice.parse().ok()?,
        priority.parse().ok()?,
        times,
    ))
}

fn take_line(id: ThreadId, policy: &Policy) -> String {
    let Policy { policy, flags, nice, priority, runtime, deadline, period, .. } = policy;
    let ThreadId { thread, start } = id;
    format!("take {thread} {start} {policy} {flags} {nice} {priority} {runtime} {deadline} {period}\n")
}

fn give_line(id: ThreadId) -> String {
    format!("give {} {}\n", id.thread, id.start)
}

/// A tuner's own journal.
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// A new one in the folder, which is made if need be; for root alone.
    pub fn create(folder: &Path) -> io::Result<Journal> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        let path = folder.join(format!("tuner-{}.journal", std::process::id()));
        // Of a dead process with this number; it was repaired from, or is of no use.
        let _ = fs::remove_file(&path);
        let mut file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&path)?;
        file.lock()?;
        file.write_all(format!("{HEAD} {}\n", process::boot_id()?).as_bytes())?;
        Ok(Journal { path, file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same open file for the guardian: with it goes the lock.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The thread is about to be changed; this is how it was.
    pub fn take(&mut self, id: ThreadId, before: &Policy) -> io::Result<()> {
        self.file.write_all(take_line(id, before).as_bytes())
    }

    /// The thread is as it was.
    pub fn give(&mut self, id: ThreadId) -> io::Result<()> {
        self.file.write_all(give_line(id).as_bytes())
    }

    /// Everybody is as before, and the file goes.
    pub fn close(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Gives back what an open journal says is still changed, and removes it. Returns how many threads were given back.
pub fn repair_from(file: &mut File, path: &Path) -> io::Result<usize> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let held = replay(&text, &process::boot_id()?).unwrap_or_default();
    let given = held.iter().filter(|(id, policy)| restore(**id, policy)).count();
    // A tuner that ended well has removed it.
    let _ = fs::remove_file(path);
    Ok(given)
}

/// Repairs from every journal in the folder that nobody has locked. Returns how many threads were given back.
pub fn repair_all(folder: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut given = 0;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "journal") {
            continue;
        }
        let Ok(mut file) = OpenOptions::new().read(true).append(true).open(&path) else { continue };
        match file.try_lock() {
            Ok(()) => given += repair_from(&mut file, &path)?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(given)
}

/// Gives a thread its old policy back, if it is still that thread and still under reservation. Who was changed by somebody
/// else meanwhile is left alone.
pub fn restore(id: ThreadId, before: &Policy) -> bool {
    let same = process::start_time(id.thread) == Some(id.start);
    same && Policy::of(id.thread).is_ok_and(|now| now.is_reservation()) && before.give(id.thread).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy() -> impl Strategy<Value = Policy> {
        (0u32..7, 0u64..8, -20i32..20, 0u32..100, any::<[u64; 3]>()).prop_map(
            |(policy, flags, nice, priority, times)| Policy::new(policy, flags, nice, priority, times),
        )
    }

    #[derive(Clone, Debug)]
    enum Change {
        Take(ThreadId, Policy),
        Give(ThreadId),
    }

    fn change() -> impl Strategy<Value = Change> {
        let id = || (1u32..6, 1u64..3).prop_map(|(thread, start)| ThreadId { thread, start });
        prop_oneof![
            (id(), policy()).prop_map(|(id, policy)| Change::Take(id, policy)),
            id().prop_map(Change::Give)
        ]
    }

    proptest! {
        /// However much of the file reached the disk, every thread whose `take` was written and whose `give` was not is there with
        /// its first policy, and nobody else. A tuner changes a thread after its line is whole.
        #[test]
        fn a_journal_cut_anywhere_names_all_that_are_changed(changes in prop::collection::vec(change(), 0..30), cut in any::<prop::sample::Index>()) {
            let mut text = format!("{HEAD} boot\n");
            let head = text.len();
            let mut ends = Vec::new();
            for change in &changes {
                text += &match change {
                    Change::Take(id, policy) => take_line(*id, policy),
                    Change::Give(id) => give_line(*id),
                };
                ends.push(text.len());
            }
            let cut = head + cut.index(text.len() - head + 1);
            let mut expected = BTreeMap::new();
            for (change, _) in changes.iter().zip(&ends).filter(|(_, end)| **end <= cut) {
                match change {
                    Change::Take(id, policy) => {
                        expected.entry(*id).or_insert(*policy);
                    }
                    Change::Give(id) => {
                        expected.remove(id);
                    }
                }
            }
            prop_assert_eq!(replay(&text[..cut], "boot"), Some(expected));
            prop_assert_eq!(replay(&text[..cut], "another boot"), None);
        }

        /// Whatever stands in the folder: no panic, and no thread is named that no line names.
        #[test]
        fn garbage_names_nobody(garbage in "(?s).{0,200}") {
            let text = format!("{HEAD} boot\n{garbage}");
            let held = replay(&text, "boot").unwrap();
            prop_assert!(held.len() <= garbage.matches("take").count());
            prop_assert!(replay(&garbage, "boot").is_none() || garbage.starts_with(HEAD));
        }
    }
}
