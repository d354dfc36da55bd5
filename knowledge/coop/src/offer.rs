//! The arguments and the result of `coop_poll`.

use crate::time::{NEVER, Time};

/// How much a best-effort event matters: the application's own virtual time. Smaller is more
/// important.
pub type Importance = i64;

/// Less important than every event: there is none.
pub const NOTHING: Importance = Importance::MAX;

/// The work that a program has next, as it tells the scheduler when it polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The programs among which importance is compared, and which share one virtual time; 0: this
    /// one is alone.
    pub group: u32,
    /// When the next timer event is to be released; [`NEVER`]: there is none. May have passed.
    pub timer: Time,
    /// The most important best-effort event; [`NOTHING`]: there is none, and the program would
    /// sleep.
    pub best_effort: Importance,
}

impl Offer {
    /// The offer of a program that has nothing to do.
    pub const IDLE: Offer = Offer { group: 0, timer: NEVER, best_effort: NOTHING };

    /// Whether it can use a CPU at `now`.
    pub fn wants_cpu(&self, now: Time) -> bool {
        self.best_effort != NOTHING || self.timer <= now
    }
}

/// The scheduler's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// It is the caller's turn. False: only one of its descriptors became ready; it takes in what
    /// has come, and polls again.
    pub turn: bool,
    /// Poll again by then: the earliest release of the others, or the end of the caller's slice.
    /// May have passed: then after what is due.
    pub until: Time,
    /// The most important best-effort event of the others in the caller's group; [`NOTHING`]: none.
    pub others: Importance,
}
