//! How long a thread has run and has been ready.
//!
//! A time ends when the engine reads its clock for the next event of the thread: how long the
//! policy takes to choose a thread counts for the one that it chooses. Units: nanoseconds.

use std::cell::Cell;

use super::State;

#[repr(C)]
#[derive(Default)]
pub struct Times {
    ran: Cell<i64>,
    ready: Cell<i64>,
    /// When it began to run or to be ready, whichever it is; 0 where nobody counts.
    since: Cell<i64>,
}

impl Times {
    /// What it does now begins to count: it is ready, or nobody has counted before.
    pub fn begins(&self, now: i64) {
        self.since.set(now);
    }

    /// It was ready, and runs from now on.
    #[inline]
    pub fn runs(&self, now: i64) {
        self.stops_being_ready(now);
        self.since.set(now);
    }

    /// It was ready, and is suspended.
    #[inline]
    pub fn stops_being_ready(&self, now: i64) {
        self.ready.set(self.ready.get() + (now - self.since.get()));
    }

    /// When it began what it does now.
    pub fn since(&self) -> i64 {
        self.since.get()
    }

    /// How long it has run, and how long it has been ready, until now.
    pub fn until(&self, now: i64, state: State, suspended: bool) -> (i64, i64) {
        let (ran, ready) = (self.ran.get(), self.ready.get());
        let current = (now - self.since.get()).max(0);
        match state {
            State::Running => (ran + current, ready),
            State::Ready if !suspended => (ran, ready + current),
            _ => (ran, ready),
        }
    }

    /// It ran. If it yields, it is ready.
    #[inline]
    pub fn stops(&self, now: i64) {
        self.ran.set(self.ran.get() + (now - self.since.get()));
        self.since.set(now);
    }
}
