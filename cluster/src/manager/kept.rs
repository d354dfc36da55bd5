//! A file in which a manager keeps its state, so that another process finds it however this one
//! ends.
//!
//! ```text
//!   word 0           magic
//!   word 1           the slot that holds the state: 0 none, or 1 + 2 * size class + side
//! ```
//!
//! The file is mapped, so that keeping a state costs no system call; a state is written beside the
//! one that holds, and then one store of word 1 makes it the one. What a process has stored there
//! survives its end, also by kill -9. It does not survive the machine's: the words may reach the
//! disk in any order.
//!
//! Invariants: one process at a time has the file, by a lock that the kernel takes back from a
//! process that ends; the file's room on its disk is taken before it is mapped.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use attune_linux::memory::{self, Mapping};
use attune_linux::process;

const MAGIC: i64 = i64::from_le_bytes(*b"attune01");
const CURRENT: usize = 1;
const HEAD: usize = 4096;
/// The largest slots have 4 GiB.
const CLASSES: u32 = 21;
const WORD: usize = size_of::<i64>();

pub struct Kept {
    path: PathBuf,
    file: File,
    memory: Mapping,
    /// The largest slots for which there is room.
    class: u32,
}

impl Kept {
    /// The file at that path, which is made if it is not there. `AddrInUse`: another process has
    /// it. `StorageFull`: the disk has no room for it.
    pub fn at(path: &Path) -> io::Result<Kept> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let (file, found) = loop {
            let file = options.open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(ErrorKind::AddrInUse.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let found = file.metadata()?;
            // Otherwise the process that had it has just removed it.
            if found.nlink() > 0 {
                break (file, found);
            }
        };
        if found.uid() != process::effective_user() || !found.is_file() {
            return Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "it belongs to another user, or is no file: remove it, or choose another place",
            ));
        }
        let class = (0..CLASSES).take_while(|class| end(*class) as u64 <= found.len()).last();
        let class = class.unwrap_or(0);
        memory::reserve(&file, end(class))?;
        let memory = Mapping::of(file.as_fd(), end(class))?;
        Ok(Kept { path: path.to_owned(), file, memory, class })
    }

    /// What was kept last; None: nothing, or something else is in the file.
    pub fn read(&self) -> Option<Vec<u8>> {
        let words = self.memory.words();
        if words[0].load(Ordering::Relaxed) != MAGIC {
            return None;
        }
        let current = u32::try_from(words[CURRENT].load(Ordering::Acquire)).ok()?.checked_sub(1)?;
        let (class, side) = (current / 2, current % 2);
        if class > self.class {
            return None;
        }
        let first = start(class, side) / WORD;
        let length = usize::try_from(words[first].load(Ordering::Relaxed)).ok()?;
        if length > size(class) - WORD {
            return None;
        }
        let slot = words[first + 1..][..length.div_ceil(WORD)].iter();
        let mut bytes: Vec<u8> =
            slot.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        bytes.truncate(length);
        Some(bytes)
    }

    /// Keeps these bytes instead of what was kept before. On failure that is still kept.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let class = (0..CLASSES).find(|class| bytes.len() <= size(*class) - WORD);
        let class = class.ok_or(ErrorKind::FileTooLarge)?;
        if class > self.class {
            memory::reserve(&self.file, end(class))?;
            self.memory = Mapping::of(self.file.as_fd(), end(class))?;
            self.class = class;
        }
        let words = self.memory.words();
        let holds = words[CURRENT].load(Ordering::Relaxed);
        let first_side = 1 + 2 * i64::from(class);
        let side = u32::from(holds == first_side);
        let slot = &words[start(class, side) / WORD..];
        slot[0].store(bytes.len() as i64, Ordering::Relaxed);
        for (word, bytes) in slot[1..].iter().zip(bytes.chunks(WORD)) {
            let mut whole = [0; WORD];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(i64::from_le_bytes(whole), Ordering::Relaxed);
        }
        words[0].store(MAGIC, Ordering::Relaxed);
        words[CURRENT].store(first_side + i64::from(side), Ordering::Release);
        Ok(())
    }

    /// Nothing is to be found here any more.
    pub fn remove(&mut self) {
        self.memory.words()[CURRENT].store(0, Ordering::Release);
        // An empty file that stays hurts nobody.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A child that is just being made has the descriptor too, until it runs its program.
        let _ = self.file.unlock();
    }
}

/// The bytes of a slot.
fn size(class: u32) -> usize {
    HEAD << class
}

fn start(class: u32, side: u32) -> usize {
    HEAD + 2 * (size(class) - HEAD) + side as usize * size(class)
}

/// The bytes of a file with slots up to that class.
fn end(class: u32) -> usize {
    start(class, 1) + size(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_last_is_found_whatever_its_length() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let mut kept = Kept::at(&path).expect("made");
        assert_eq!(kept.read(), None);
        for length in [0, 1, 8, 4088, 4089, 100, 40_000, 39_999, 3] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
            kept.write(&bytes).expect("room");
            assert_eq!(kept.read().as_deref(), Some(&bytes[..]));
            drop(kept);
            kept = Kept::at(&path).expect("there");
            assert_eq!(kept.read(), Some(bytes), "{length}");
        }
        kept.remove();
        assert!(!path.exists());
    }

    /// As if the process had ended at any word.
    #[test]
    fn a_write_that_was_not_finished_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept = Kept::at(&folder.path().join("state")).expect("made");
        kept.write(b"first").expect("room");
        kept.write(b"second").expect("room");
        let before = kept.memory.words()[CURRENT].load(Ordering::Relaxed);
        kept.write(b"third, not finished").expect("room");
        kept.memory.words()[CURRENT].store(before, Ordering::Relaxed);
        assert_eq!(kept.read().as_deref(), Some(&b"second"[..]));
    }

    #[test]
    fn one_process_has_the_file_and_strange_files_are_not_believed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let kept = Kept::at(&path).expect("made");
        assert_eq!(Kept::at(&path).err().map(|it| it.kind()), Some(ErrorKind::AddrInUse));
        drop(kept);
        for strange in [vec![0xff; 100_000], b"attune01\xff\xff\xff".to_vec(), vec![1; 16]] {
            fs::write(&path, strange).expect("written");
            assert_eq!(Kept::at(&path).expect("there").read(), None);
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("made");
        assert!(Kept::at(&link).is_err());
        fs::create_dir(folder.path().join("folder")).expect("made");
        assert!(Kept::at(&folder.path().join("folder")).is_err());
    }

    /// /dev/full has no room, and is no file of ours.
    #[test]
    fn a_file_that_is_no_file_is_refused() {
        assert!(Kept::at(Path::new("/dev/full")).is_err());
    }
}
