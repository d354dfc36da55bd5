//! The page in which one process's values lie. The process and the engine share it, and no
//! other process does.
//!
//! ```text
//!              word 0      word 1 ..                              word 15
//!     row 0    present     values that hold for all threads of the process
//!     row 1    present     values of one thread
//!     ..
//!     row 511  present     values of one thread
//! ```
//!
//! A word is a signed 64-bit number in the machine's byte order: an int, or a time in nanoseconds.
//! Bit w of `present` says that word w is supplied; otherwise row 0 is asked, and if it has none
//! either, the scheduler's default holds. Which import a word stands for is agreed over the socket,
//! for each process by itself: the process names words from 1 upwards, the engine's side (hints
//! given from outside) from 15 downwards; rows likewise.
//!
//! Every word is read and written as a whole, in any order: a reader sees old or new values, never
//! half of one. A reader must be prepared for any value, since the process may be hostile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI64, Ordering};

use attune_linux::memory::{self, Mapping};

/// Rows of a page; row 0 is the process's own.
pub const ROWS: usize = 512;
/// Words of a row; word 0 says which of the others are supplied.
pub const WORDS: usize = 16;
/// Bytes of a row.
pub const ROW_BYTES: usize = WORDS * 8;
/// Bytes of a page.
pub const PAGE_BYTES: usize = ROWS * ROW_BYTES;

/// A page that is mapped at an address that stays.
#[derive(Debug)]
pub struct Page {
    base: Mapping,
    /// The same memory once more, so that its contents are not lost while other memory takes its
    /// place at `base`.
    shadow: Mapping,
}

impl Page {
    /// A page that no other process shares, with no value supplied.
    pub fn private() -> io::Result<Page> {
        Page::of(unshared()?.as_fd())
    }

    /// The memory behind the descriptor, [`PAGE_BYTES`] from its start.
    pub fn of(memory: BorrowedFd) -> io::Result<Page> {
        let map = || Mapping::of(memory, PAGE_BYTES);
        Ok(Page { base: map()?, shadow: map()? })
    }

    /// One word. Row and word are taken modulo what there is.
    pub fn word(&self, row: usize, word: usize) -> &AtomicI64 {
        &self.base.words()[row % ROWS * WORDS + word % WORDS]
    }

    /// The word's value, if it is supplied.
    pub fn get(&self, row: usize, word: usize) -> Option<i64> {
        let present = self.word(row, 0).load(Ordering::Acquire);
        (present >> (word % WORDS) & 1 != 0).then(|| self.word(row, word).load(Ordering::Relaxed))
    }

    /// Supplies the word, or takes it back.
    pub fn set(&self, row: usize, word: usize, value: Option<i64>) {
        let bit = 1 << (word % WORDS);
        match value {
            Some(value) => {
                self.word(row, word).store(value, Ordering::Relaxed);
                self.word(row, 0).fetch_or(bit, Ordering::Release);
            }
            None => drop(self.word(row, 0).fetch_and(!bit, Ordering::Release)),
        }
    }

    /// Takes back all words of a row.
    pub fn clear(&self, row: usize) {
        self.word(row, 0).store(0, Ordering::Release);
    }

    /// Puts other memory in the place of this, at the same address and with the same contents. A
    /// value that a thread stores meanwhile is not lost. Where this fails, the page stays as it is.
    pub fn replace(&mut self, memory: BorrowedFd) -> io::Result<()> {
        let fresh = Mapping::of(memory, PAGE_BYTES)?;
        let (old, new) = (self.shadow.words(), fresh.words());
        let copied: Vec<i64> = old.iter().map(|word| word.load(Ordering::Acquire)).collect();
        new.iter().zip(&copied).for_each(|(word, value)| word.store(*value, Ordering::Release));
        self.base.replace(memory)?;
        for ((old, new), copied) in old.iter().zip(new).zip(&copied) {
            let late = old.load(Ordering::Acquire);
            if late != *copied {
                // A value that was stored again since then is newer, and stays.
                let _ = new.compare_exchange(*copied, late, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
        self.shadow = fresh;
        Ok(())
    }

    /// From now on no other process shares the page.
    pub fn withdraw(&mut self) -> io::Result<()> {
        self.replace(unshared()?.as_fd())
    }
}

/// Memory for a page; processes that are given the descriptor share it.
pub fn unshared() -> io::Result<OwnedFd> {
    memory::zeros("attune-values", PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn values_are_supplied_and_taken_back() {
        let page = Page::private().unwrap();
        assert_eq!(page.get(7, 3), None);
        page.set(7, 3, Some(-5));
        page.set(7, 15, Some(i64::MAX));
        assert_eq!(
            (page.get(7, 3), page.get(7, 15), page.get(8, 3)),
            (Some(-5), Some(i64::MAX), None)
        );
        page.set(7, 3, None);
        assert_eq!((page.get(7, 3), page.get(7, 15)), (None, Some(i64::MAX)));
        page.clear(7);
        assert_eq!(page.get(7, 15), None);
    }

    #[test]
    fn both_sides_see_one_memory() {
        let memory = unshared().unwrap();
        let (ours, theirs) = (Page::of(memory.as_fd()).unwrap(), Page::of(memory.as_fd()).unwrap());
        ours.set(1, 1, Some(42));
        assert_eq!(theirs.get(1, 1), Some(42));
    }

    #[test]
    fn no_stored_value_is_lost_when_other_memory_takes_its_place() {
        let mut page = Page::private().unwrap();
        let address = page.word(3, 4) as *const AtomicI64 as usize;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let storing = scope.spawn(|| {
                // SAFETY: the page outlives the scope, and its address stays.
                let word = unsafe { &*(address as *const AtomicI64) };
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    last += 1;
                    word.store(last, Ordering::Relaxed);
                }
                last
            });
            let mut kept = Vec::new();
            for _ in 0..200 {
                let memory = unshared().unwrap();
                page.replace(memory.as_fd()).unwrap();
                kept.push(memory);
            }
            stop.store(true, Ordering::Relaxed);
            let last = storing.join().unwrap();
            assert_eq!(page.word(3, 4).load(Ordering::Relaxed), last);
            let engine = Page::of(kept.last().unwrap().as_fd()).unwrap();
            assert_eq!(engine.word(3, 4).load(Ordering::Relaxed), last);
        });
    }
}
