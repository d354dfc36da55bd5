//! A CPU of the machine, and how its time is divided.
//!
//! Invariant: `dispatched <= begins <= accounted` while a thread runs; what lies between the first
//! two is the cost of the switch, everything up to `accounted` is already in the figures.

use crate::metrics::Usage;
use crate::scheduler::Time;

pub struct Cpu {
    /// The instance that schedules it.
    pub instance: u32,
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
    /// The time from which on the policy asked for one; `Time::MAX`: it did not ask.
    pub preempt_at: Time,
    /// Until when it waits for the scheduler's lock, or holds it.
    pub busy_until: Time,
    pub usage: Usage,
}

impl Cpu {
    /// When it chooses again if its thread goes on until then.
    pub fn end(&self) -> Time {
        self.slice_end.min(self.preempt_at)
    }

    pub fn new(instance: u32) -> Cpu {
        Cpu {
            instance,
            running: None,
            last: None,
            dispatched: 0,
            begins: 0,
            accounted: 0,
            slice_end: Time::MAX,
            in_vain: 0,
            preempt: false,
            preempt_at: Time::MAX,
            busy_until: 0,
            usage: Usage::default(),
        }
    }
}
