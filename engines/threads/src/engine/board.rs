//! What workers let each other see without a message, in a program whose threads may move: which of
//! them ask for a thread, since when each has a thread to give, how many threads were ready there.
//!
//! A worker that asks says so before it looks whether another has a thread to give. One that gets a
//! thread to give says so before it looks whether another asks. Both are SeqCst, so at least one of
//! the two sees the other.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use super::worker::{self, MOST_WORKERS, Worker};
use crate::clock::NEVER;

/// The workers that ask for a thread, a bit each.
static ASKING: AtomicU64 = AtomicU64::new(0);
const _: () = assert!(MOST_WORKERS <= u64::BITS as usize);

/// A worker's part of it.
pub struct Board {
    /// Since when the first of the threads that it may give is ready; NEVER: there is none.
    first_since: AtomicI64,
    /// How many threads were ready at most in its last period, and those that were sent to it
    /// since.
    most: AtomicUsize,
}

impl Board {
    pub const fn new() -> Board {
        Board { first_since: AtomicI64::new(NEVER), most: AtomicUsize::new(0) }
    }

    /// Only its own worker says so.
    pub fn says_first_since(&self, since: i64) {
        if self.first_since.load(Relaxed) == NEVER && since != NEVER {
            self.first_since.store(since, SeqCst);
        } else {
            self.first_since.store(since, Relaxed);
        }
    }

    pub fn says_most(&self, most: usize) {
        self.most.store(most, Relaxed);
    }

    pub fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    /// A thread is on its way to that worker.
    pub fn gets_one_more(&self) {
        self.most.fetch_add(1, Relaxed);
    }
}

fn bit(worker: &Worker) -> u64 {
    1 << worker.index
}

/// The worker asks for a thread. The one to remind of it: its thread has been ready longest.
pub fn ask(asks: &Worker) -> Option<&'static Worker> {
    ASKING.fetch_or(bit(asks), SeqCst);
    let others = worker::all().iter().filter(|other| other.index != asks.index);
    let since = others.map(|other| (other.board.first_since.load(SeqCst), *other));
    let first = since.min_by_key(|(since, _)| *since)?;
    (first.0 != NEVER).then_some(first.1)
}

/// The worker asks no longer: it has a thread.
pub fn asks_no_more(worker: &Worker) {
    if ASKING.load(Relaxed) & bit(worker) != 0 {
        ASKING.fetch_and(!bit(worker), SeqCst);
    }
}

pub fn any_asks() -> bool {
    ASKING.load(SeqCst) != 0
}

/// A worker that asks, and that no other worker gives a thread at the same time.
pub fn take_asking() -> Option<&'static Worker> {
    loop {
        let asking = ASKING.load(SeqCst);
        let worker = *worker::all().get(asking.trailing_zeros() as usize)?;
        if ASKING.fetch_and(!bit(worker), SeqCst) & bit(worker) != 0 {
            return Some(worker);
        }
    }
}
