//! A CPU of the machine, and how its time is divided.
//!
//! Invariant: `dispatched <= begins <= accounted` while a thread runs; what lies between the first two is the cost of
//! the switch, everything up to `accounted` is already in the figures.

use crate::policy::Time;

pub struct Cpu {
    /// Slot of the thread that runs.
    pub running: Option<u32>,
    /// Serial number of the thread that ran last.
    pub last: Option<u32>,
    pub dispatched: Time,
    /// When the thread begins to make progress.
    pub begins: Time,
    pub accounted: Time,
    /// When the slice is used up; `Time::MAX`: never.
    pub slice_end: Time,
    /// Dispatches in a row that left their threads no time.
    pub in_vain: u32,
    /// The policy asked for another choice.
    pub preempt: bool,
    /// From when on it asked for one; `Time::MAX`: it did not.
    pub preempt_at: Time,
    pub usage: Usage,
}

/// How a CPU spent its time; the rest was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Threads made progress.
    pub busy: Time,
    /// Lost to switching.
    pub overhead: Time,
    /// Changes to a different thread.
    pub switches: u64,
}

impl Cpu {
    /// When it chooses again if its thread goes on until then.
    pub fn end(&self) -> Time {
        self.slice_end.min(self.preempt_at)
    }

    pub fn new() -> Cpu {
        Cpu {
            running: None,
            last: None,
            dispatched: 0,
            begins: 0,
            accounted: 0,
            slice_end: Time::MAX,
            in_vain: 0,
            preempt: false,
            preempt_at: Time::MAX,
            usage: Usage::default(),
        }
    }
}
