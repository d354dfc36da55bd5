//! The state file: which threads' scheduling attributes were changed, and which cgroups' weights,
//! with their values before.
//!
//! The tuner writes a line *before* it first gives a thread a reservation (`take`) or another nice
//! value (`raise`), and before each weight that it gives to a cgroup (`weigh`); and another after
//! it gave the old ones back (`give`, `unweigh`). So the file names all that may be changed, at
//! whatever instant the tuner dies; a torn last line is about a change that was not made yet.
//! Giving attributes back twice does no harm.
//!
//! ```text
//! attune-tuner 1 BOOT
//! take THREAD START CLASS FLAGS NICE PRIORITY RUNTIME DEADLINE PERIOD
//! raise THREAD START CLASS FLAGS NICE PRIORITY RUNTIME DEADLINE PERIOD
//! give THREAD START
//! weigh INODE BEFORE NOW FOLDER
//! unweigh INODE
//! ```
//!
//! INODE tells a cgroup from a later one in the same FOLDER. BOOT is the kernel's boot id: after a
//! reboot the file means nothing. START is the thread's start time in clock ticks since boot, which
//! tells it from a later thread of the same number.
//!
//! The tuner and its guardian hold a lock on the file, the same open file: while either lives, no
//! other program touches it. A file without a lock is left from a tuner that was killed with its
//! guardian; the next tuner that starts repairs from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use attune_linux::procfs;
use attune_linux::scheduling::{Attributes, Class, RESET_ON_FORK};

/// A thread, and not another that got its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId {
    pub thread: u32,
    /// Clock ticks since boot.
    pub start: u64,
}

const HEAD: &str = "attune-tuner 1";

/// What has yet to be given back.
#[derive(Debug, Default, PartialEq)]
pub struct Held {
    /// Threads under reservation, with their attributes before.
    pub reserved: BTreeMap<ThreadId, Attributes>,
    /// Threads with another nice value.
    pub raised: BTreeMap<ThreadId, Attributes>,
    /// Cgroups by their inode.
    pub groups: BTreeMap<u64, Weighed>,
}

/// A cgroup with another weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    pub folder: PathBuf,
    pub before: u32,
    /// What it was given since.
    pub given: BTreeSet<u32>,
}

/// What has yet to be given back, by a journal's text. None if it is no journal, or of an earlier
/// boot.
pub fn replay(text: &str, boot: &str) -> Option<Held> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    if lines.next()? != format!("{HEAD} {boot}") {
        return None;
    }
    let mut held = Held::default();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match (words.as_slice(), thread_id(&words)) {
            // Only the first line about a thread tells its attributes before.
            (["take", _, _, before @ ..], Some(id)) => {
                if let Some(before) = parse_attributes(before) {
                    held.reserved.entry(id).or_insert(before);
                }
            }
            (["raise", _, _, before @ ..], Some(id)) => {
                if let Some(before) = parse_attributes(before) {
                    held.raised.entry(id).or_insert(before);
                }
            }
            (["give", _, _], Some(id)) => {
                held.reserved.remove(&id);
                held.raised.remove(&id);
            }
            (["weigh", ..], _) => held.weigh(line),
            (["unweigh", inode], _) => {
                inode.parse().ok().and_then(|inode: u64| held.groups.remove(&inode));
            }
            _ => {}
        }
    }
    Some(held)
}

impl Held {
    /// A folder's name may hold spaces.
    fn weigh(&mut self, line: &str) {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let [_, inode, before, now, folder] = words[..] else { return };
        let (Ok(inode), Ok(before), Ok(now)) = (inode.parse(), before.parse(), now.parse()) else {
            return;
        };
        let group = self.groups.entry(inode).or_insert_with(|| Weighed {
            folder: folder.into(),
            before,
            given: BTreeSet::new(),
        });
        // A person has set another weight since: that one is to come back.
        if group.before != before {
            group.before = before;
            group.given.clear();
        }
        group.given.insert(now);
    }
}

fn thread_id(words: &[&str]) -> Option<ThreadId> {
    Some(ThreadId { thread: words.get(1)?.parse().ok()?, start: words.get(2)?.parse().ok()? })
}

fn parse_attributes(words: &[&str]) -> Option<Attributes> {
    let [class, flags, nice, priority, runtime, deadline, period] = words else { return None };
    Some(Attributes {
        class: Class(class.parse().ok()?),
        flags: flags.parse().ok()?,
        nice: nice.parse().ok()?,
        priority: priority.parse().ok()?,
        runtime: runtime.parse().ok()?,
        deadline: deadline.parse().ok()?,
        period: period.parse().ok()?,
    })
}

fn take_line(verb: &str, id: ThreadId, before: &Attributes) -> String {
    let Attributes { class: Class(class), flags, nice, priority, runtime, deadline, period } =
        before;
    let ThreadId { thread, start } = id;
    format!(
        "{verb} {thread} {start} {class} {flags} {nice} {priority} {runtime} {deadline} {period}\n"
    )
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
    /// A new journal in the folder, which is made if need be; for root alone.
    /// `name`: tells it from others of this process.
    pub fn create(folder: &Path, name: &str) -> io::Result<Journal> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        let path = folder.join(format!("{name}-{}.journal", std::process::id()));
        // A dead process had this number; its journal was repaired from, or is of no use.
        let _ = fs::remove_file(&path);
        let mut file =
            OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&path)?;
        file.lock()?;
        file.write_all(format!("{HEAD} {}\n", procfs::boot_id()?).as_bytes())?;
        Ok(Journal { path, file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same open file, with its lock, for the guardian.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The thread is about to be reserved for; these are its attributes before.
    pub fn take(&mut self, id: ThreadId, before: &Attributes) -> io::Result<()> {
        self.file.write_all(take_line("take", id, before).as_bytes())
    }

    /// The thread is about to get another nice value; these are its attributes before.
    pub fn raise(&mut self, id: ThreadId, before: &Attributes) -> io::Result<()> {
        self.file.write_all(take_line("raise", id, before).as_bytes())
    }

    /// The cgroup is about to weigh `now`. Its folder's name is one line.
    pub fn weigh(&mut self, inode: u64, before: u32, now: u32, folder: &Path) -> io::Result<()> {
        let line = format!("weigh {inode} {before} {now} {}\n", folder.display());
        self.file.write_all(line.as_bytes())
    }

    /// The cgroup has its weight back.
    pub fn unweigh(&mut self, inode: u64) -> io::Result<()> {
        self.file.write_all(format!("unweigh {inode}\n").as_bytes())
    }

    /// The thread has its attributes back.
    pub fn give(&mut self, id: ThreadId) -> io::Result<()> {
        self.file.write_all(give_line(id).as_bytes())
    }

    /// All threads are as before: removes the file.
    pub fn close(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Gives back the attributes of all threads that an open journal says are still changed, and the
/// weights of cgroups, and removes it. Returns the number of those threads and cgroups.
pub fn repair_from(file: &mut File, path: &Path) -> io::Result<usize> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let held = replay(&text, &procfs::boot_id()?).unwrap_or_default();
    let reserved = held.reserved.iter().filter(|(id, before)| restore(**id, before)).count();
    let raised = held.raised.iter().filter(|(id, before)| lower(**id, before)).count();
    let groups = held.groups.iter().filter(|(inode, group)| unweigh(**inode, group)).count();
    // A tuner that ended well has removed it.
    let _ = fs::remove_file(path);
    Ok(reserved + raised + groups)
}

/// Repairs from every journal in the folder that is not locked. Returns the number of threads that
/// have their attributes back.
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

/// Gives a thread its old attributes back, if it is still that thread and still under reservation.
/// A thread that another program has changed meanwhile is left alone.
pub fn restore(id: ThreadId, before: &Attributes) -> bool {
    let same = procfs::start_time(id.thread) == Some(id.start);
    same && Attributes::of(id.thread).is_ok_and(|now| now.class == Class::DEADLINE)
        && before.apply_to(id.thread).is_ok()
}

/// Gives a raised thread its old attributes back, if it is still that thread and as the daemon left
/// it ([`is_raised`]).
pub fn lower(id: ThreadId, before: &Attributes) -> bool {
    let same = procfs::start_time(id.thread) == Some(id.start);
    same && Attributes::of(id.thread).is_ok_and(|now| is_raised(&now))
        && before.apply_to(id.thread).is_ok()
}

/// Whether a thread has a nice value that the daemon gives: below 0, and not for its children.
pub fn is_raised(now: &Attributes) -> bool {
    matches!(now.class, Class::NORMAL | Class::BATCH)
        && now.nice < 0
        && now.flags & RESET_ON_FORK != 0
}

/// Gives a cgroup its old weight back, if it is still that cgroup and has a weight that the daemon
/// gave it.
pub fn unweigh(inode: u64, group: &Weighed) -> bool {
    let same = fs::metadata(&group.folder).is_ok_and(|about| about.ino() == inode);
    let file = group.folder.join("cpu.weight");
    let now = || fs::read_to_string(&file).ok()?.trim().parse::<u32>().ok();
    same && now().is_some_and(|now| group.given.contains(&now))
        && fs::write(&file, group.before.to_string()).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attributes() -> impl Strategy<Value = Attributes> {
        (0u32..7, 0u64..8, -20i32..20, 0u32..100, any::<[u64; 3]>()).prop_map(
            |(class, flags, nice, priority, [runtime, deadline, period])| Attributes {
                class: Class(class),
                flags,
                nice,
                priority,
                runtime,
                deadline,
                period,
            },
        )
    }

    #[derive(Clone, Debug)]
    enum Change {
        Take(ThreadId, Attributes),
        Raise(ThreadId, Attributes),
        Give(ThreadId),
        /// Inode, before, now.
        Weigh(u64, u32, u32),
        Unweigh(u64),
    }

    fn change() -> impl Strategy<Value = Change> {
        let id = || (1u32..6, 1u64..3).prop_map(|(thread, start)| ThreadId { thread, start });
        prop_oneof![
            (id(), attributes()).prop_map(|(id, before)| Change::Take(id, before)),
            (id(), attributes()).prop_map(|(id, before)| Change::Raise(id, before)),
            id().prop_map(Change::Give),
            (1u64..4, 1u32..3, 100u32..103)
                .prop_map(|(it, before, now)| Change::Weigh(it, before, now)),
            (1u64..4).prop_map(Change::Unweigh),
        ]
    }

    proptest! {
        /// However much of the file reached the disk, it names exactly the threads whose `take` was
        /// written and whose `give` was not, each with its first attributes. A tuner changes a
        /// thread after its line is whole.
        #[test]
        fn a_journal_cut_anywhere_names_all_that_are_changed(
            changes in prop::collection::vec(change(), 0..30),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut text = format!("{HEAD} boot\n");
            let head = text.len();
            let mut ends = Vec::new();
            for change in &changes {
                text += &match change {
                    Change::Take(id, before) => take_line("take", *id, before),
                    Change::Raise(id, before) => take_line("raise", *id, before),
                    Change::Give(id) => give_line(*id),
                    Change::Weigh(it, before, now) => format!("weigh {it} {before} {now} /a b\n"),
                    Change::Unweigh(it) => format!("unweigh {it}\n"),
                };
                ends.push(text.len());
            }
            let cut = head + cut.index(text.len() - head + 1);
            let mut expected = Held::default();
            for (change, _) in changes.iter().zip(&ends).filter(|(_, end)| **end <= cut) {
                match change {
                    Change::Take(id, before) => {
                        expected.reserved.entry(*id).or_insert(*before);
                    }
                    Change::Raise(id, before) => {
                        expected.raised.entry(*id).or_insert(*before);
                    }
                    Change::Give(id) => {
                        expected.reserved.remove(id);
                        expected.raised.remove(id);
                    }
                    Change::Weigh(it, before, now) => {
                        let given = match expected.groups.remove(it) {
                            Some(group) if group.before == *before => group.given,
                            _ => BTreeSet::new(),
                        };
                        let given = given.into_iter().chain([*now]).collect();
                        let folder = PathBuf::from("/a b");
                        expected.groups.insert(*it, Weighed { folder, before: *before, given });
                    }
                    Change::Unweigh(it) => {
                        expected.groups.remove(it);
                    }
                }
            }
            prop_assert_eq!(replay(&text[..cut], "boot"), Some(expected));
            prop_assert_eq!(replay(&text[..cut], "another boot"), None);
        }

        /// No text makes it panic, and it names no thread that no line names.
        #[test]
        fn garbage_names_no_thread(garbage in "(?s).{0,200}") {
            let text = format!("{HEAD} boot\n{garbage}");
            let held = replay(&text, "boot").unwrap();
            prop_assert!(held.reserved.len() <= garbage.matches("take").count());
            prop_assert!(held.raised.len() <= garbage.matches("raise").count());
            prop_assert!(held.groups.len() <= garbage.matches("weigh").count());
            prop_assert!(replay(&garbage, "boot").is_none() || garbage.starts_with(HEAD));
        }
    }
}
