//! The page in which one process's values lie. The process and the engine share it, and no
//! other process does.
//!
//! ```text
//!                word 0      word 1 ..                              word 15
//!     row 0      present     values that hold for all threads of the process
//!     row 1      present     values of one thread
//!     ..
//!     row 16383  present     values of one thread
//! ```
//!
//! The kernel gives memory to the parts that are used: 4 kB for 32 rows. So a page is as small as
//! its process.
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
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use attune_linux::memory::{self, Mapping};

/// Rows of a page; row 0 is the process's own.
pub const ROWS: usize = 16384;
/// Words of a row; word 0 says which of the others are supplied.
pub const WORDS: usize = 16;
/// Bytes of a row.
pub const ROW_BYTES: usize = WORDS * 8;
/// Bytes of a page.
pub const PAGE_BYTES: usize = ROWS * ROW_BYTES;

/// Bytes that the machine maps at once, with [`ROWS_AT_ONCE`].
const PART_BYTES: usize = 4096;
const ROWS_AT_ONCE: usize = PART_BYTES / ROW_BYTES;

/// A page that is mapped at an address that stays: the process's side.
#[derive(Debug)]
pub struct Page {
    base: Mapping,
    /// The same memory once more, so that its contents are not lost while other memory takes its
    /// place at `base`.
    shadow: Mapping,
    /// Rows from this one on were never touched here, and have no memory yet.
    untouched: AtomicUsize,
}

impl Page {
    /// A page that no other process shares, with no value supplied.
    pub fn private() -> io::Result<Page> {
        Page::of(unshared()?.as_fd())
    }

    /// The memory behind the descriptor, [`PAGE_BYTES`] from its start.
    pub fn of(memory: BorrowedFd) -> io::Result<Page> {
        let map = || Mapping::of(memory, PAGE_BYTES);
        Ok(Page { base: map()?, shadow: map()?, untouched: AtomicUsize::new(0) })
    }

    /// Row and word are taken modulo what there is.
    pub fn row(&self, row: usize) -> Row<'_> {
        let row = row % ROWS;
        self.untouched.fetch_max(row + 1, Ordering::Relaxed);
        Row(&self.base.words()[row * WORDS..][..WORDS])
    }

    /// Puts other memory in the place of this, at the same address and with the same contents. A
    /// value that a thread stores meanwhile is not lost. Where this fails, the page stays as it is.
    pub fn replace(&mut self, memory: BorrowedFd) -> io::Result<()> {
        let fresh = Mapping::of(memory, PAGE_BYTES)?;
        let touched = *self.untouched.get_mut() * WORDS;
        let (old, new) = (&self.shadow.words()[..touched], &fresh.words()[..touched]);
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

/// One row of a page.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a>(&'a [AtomicI64]);

impl<'a> Row<'a> {
    /// One word, by its number modulo what there is.
    pub fn word(&self, word: usize) -> &'a AtomicI64 {
        &self.0[word % WORDS]
    }

    /// The word's value, if it is supplied.
    pub fn get(&self, word: usize) -> Option<i64> {
        let present = self.word(0).load(Ordering::Acquire);
        (present >> (word % WORDS) & 1 != 0).then(|| self.word(word).load(Ordering::Relaxed))
    }

    /// Supplies the word, or takes it back.
    pub fn set(&self, word: usize, value: Option<i64>) {
        let bit = 1 << (word % WORDS);
        match value {
            Some(value) => {
                self.word(word).store(value, Ordering::Relaxed);
                self.word(0).fetch_or(bit, Ordering::Release);
            }
            None => drop(self.word(0).fetch_and(!bit, Ordering::Release)),
        }
    }

    /// Takes back all words.
    pub fn clear(&self) {
        self.word(0).store(0, Ordering::Release);
    }
}

/// A page of which only the part that was asked for last is mapped: the engine's side, which has
/// very many pages.
#[derive(Debug)]
pub struct PageInParts {
    memory: OwnedFd,
    /// The part and its number.
    mapped: Option<(usize, Mapping)>,
}

impl PageInParts {
    /// `memory`: [`PAGE_BYTES`] from its start.
    pub fn of(memory: OwnedFd) -> PageInParts {
        PageInParts { memory, mapped: None }
    }

    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// The row is taken modulo what there is. Err: the machine has no memory for it.
    pub fn row(&mut self, row: u16) -> io::Result<Row<'_>> {
        let row = usize::from(row) % ROWS;
        let number = row / ROWS_AT_ONCE;
        let part = match self.mapped.take().filter(|(mapped, _)| *mapped == number) {
            Some((_, part)) => part,
            None => Mapping::part(self.memory.as_fd(), number * PART_BYTES, PART_BYTES)?,
        };
        let (_, part) = self.mapped.insert((number, part));
        Ok(Row(&part.words()[row % ROWS_AT_ONCE * WORDS..][..WORDS]))
    }
}

/// Memory for a page; processes that are given the descriptor share it. None of them can change its
/// length.
pub fn unshared() -> io::Result<OwnedFd> {
    memory::fixed_zeros("attune-values", PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn values_are_supplied_and_taken_back() {
        let page = Page::private().unwrap();
        assert_eq!(page.row(7).get(3), None);
        page.row(7).set(3, Some(-5));
        page.row(7).set(15, Some(i64::MAX));
        assert_eq!(
            (page.row(7).get(3), page.row(7).get(15), page.row(8).get(3)),
            (Some(-5), Some(i64::MAX), None)
        );
        page.row(7).set(3, None);
        assert_eq!((page.row(7).get(3), page.row(7).get(15)), (None, Some(i64::MAX)));
        page.row(7).clear();
        assert_eq!(page.row(7).get(15), None);
    }

    #[test]
    fn both_sides_see_one_memory() {
        let memory = unshared().unwrap();
        let (ours, theirs) = (Page::of(memory.as_fd()).unwrap(), Page::of(memory.as_fd()).unwrap());
        ours.row(1).set(1, Some(42));
        assert_eq!(theirs.row(1).get(1), Some(42));
    }

    #[test]
    fn a_page_is_the_same_in_parts() {
        let memory = unshared().unwrap();
        let page = Page::of(memory.as_fd()).unwrap();
        let mut parts = PageInParts::of(memory);
        for row in [0, 31, 32, 16383, 1] {
            parts.row(row).unwrap().set(2, Some(row.into()));
            assert_eq!(page.row(row.into()).get(2), Some(row.into()));
        }
        assert_eq!(page.row(33).get(2), None);
    }

    #[test]
    fn a_page_takes_memory_for_the_rows_that_are_used() {
        let (memory, next) = (unshared().unwrap(), unshared().unwrap());
        let mut page = Page::of(memory.as_fd()).unwrap();
        page.row(3).set(1, Some(1));
        page.replace(next.as_fd()).unwrap();
        for memory in [memory, next] {
            use std::os::unix::fs::MetadataExt;
            let blocks = std::fs::File::from(memory).metadata().unwrap().blocks();
            assert_eq!(blocks * 512, PART_BYTES as u64);
        }
    }

    #[test]
    fn no_stored_value_is_lost_when_other_memory_takes_its_place() {
        let mut page = Page::private().unwrap();
        let address = page.row(3).word(4) as *const AtomicI64 as usize;
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
            assert_eq!(page.row(3).word(4).load(Ordering::Relaxed), last);
            let engine = Page::of(kept.last().unwrap().as_fd()).unwrap();
            assert_eq!(engine.row(3).word(4).load(Ordering::Relaxed), last);
        });
    }
}
