//! What the kernel says of a thread: how often it had a CPU, and for how long it was ready without
//! one. In nanoseconds.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use attune_linux::procfs;
use attune_linux::time::{MICROSECOND, Time};

use crate::child;

/// Between two looks at the clock: the thread may have been off its CPU. To ask the kernel takes
/// less.
pub const LONG: Time = 5 * MICROSECOND;

/// How often threads of the crowds were given a CPU, and in how many of these turns the thread did
/// not come to look at the clock. Shared with the processes of the crowds.
#[derive(Clone, Copy)]
pub struct Turns {
    all: &'static AtomicU64,
    lost: &'static AtomicU64,
}

impl Turns {
    pub fn new() -> Result<Turns> {
        let [all, lost] = child::shared(2)? else { unreachable!("two were asked for") };
        Ok(Turns { all, lost })
    }

    pub fn all_and_lost(self) -> (u64, u64) {
        (self.all.load(Relaxed), self.lost.load(Relaxed))
    }

    /// So many between two looks.
    pub fn count(self, all: u64) {
        if all == 0 {
            return;
        }
        self.all.fetch_add(all, Relaxed);
        self.lost.fetch_add(all - 1, Relaxed);
    }
}

/// Times that threads of a process were given a CPU. A thread that ends takes its own with it.
pub fn turns_of(process: u32) -> u64 {
    let of_thread = |thread| Account::of(thread).and_then(|account| account.had());
    procfs::threads(process)
        .into_iter()
        .filter_map(|it| of_thread(it).ok())
        .map(|had| had.turns)
        .sum()
}

/// The kernel's account of a thread.
pub struct Account(File);

/// What the thread has had since it began.
#[derive(Clone, Copy)]
pub struct Had {
    /// Ready, without a CPU.
    pub waited: Time,
    /// Times that it was given a CPU.
    pub turns: u64,
}

impl Had {
    /// One wait, if there was one since then and no further turn in which the thread might have
    /// looked.
    pub fn wait_since(self, before: Had) -> Option<Time> {
        (self.turns == before.turns + 1).then(|| self.waited - before.waited)
    }
}

impl Account {
    pub fn open() -> io::Result<Account> {
        File::open("/proc/thread-self/schedstat").map(Account)
    }

    fn of(thread: u32) -> io::Result<Account> {
        File::open(format!("/proc/{thread}/schedstat")).map(Account)
    }

    /// The line is: time on a CPU, time ready, turns.
    pub fn had(&self) -> io::Result<Had> {
        let mut line = [0; 64];
        let length = self.0.read_at(&mut line, 0)?;
        let numbers = str::from_utf8(&line[..length]).unwrap_or_default();
        let mut numbers = numbers.split_ascii_whitespace().skip(1).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(waited)), Some(Ok(turns))) => Ok(Had { waited, turns }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use attune_linux::time::{MILLISECOND, SECOND};

    use super::*;
    use crate::clock;

    #[test]
    fn a_process_that_slept_had_another_turn_and_one_that_is_gone_none() {
        let before = turns_of(std::process::id());
        clock::sleep_until(clock::now() + MILLISECOND);
        assert!(turns_of(std::process::id()) > before);
        assert_eq!(turns_of(u32::MAX), 0);
    }

    #[test]
    fn a_thread_that_slept_had_another_turn() {
        let account = Account::open().unwrap();
        let before = account.had().unwrap();
        clock::sleep_until(clock::now() + MILLISECOND);
        clock::sleep_until(clock::now() + MILLISECOND);
        let had = account.had().unwrap();
        // A number of times, and not nanoseconds.
        assert!((1..1000).contains(&(had.turns - before.turns)));
        assert!(had.waited - before.waited < SECOND);
    }

    #[test]
    fn two_waits_are_not_one() {
        let before = Had { waited: 100, turns: 7 };
        let after = |waited, turns| Had { waited, turns }.wait_since(before);
        assert_eq!(after(100, 7), None);
        assert_eq!(after(130, 8), Some(30));
        assert_eq!(after(160, 9), None);
    }
}
