//! Counters of a running scheduler: `struct attune_statistics` and `struct attune_domain` in state.h.

use std::time::Duration;

use attune_language::event::Event;

use crate::image::Image;
use crate::memory::{Memory, Words};

/// Since the scheduler was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// One, or the command's and the others'.
    pub policies: Vec<PolicyStatistics>,
    /// Times that a thread went on because nothing that concerns the policy had happened.
    pub kept: u64,
    /// CPUs made to choose again.
    pub kicks: u64,
    /// Timers that fired.
    pub timers: u64,
    /// Turns of threads that found no record.
    pub strangers: u64,
    /// Records of threads, used and free.
    pub records: u64,
}

/// Of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyStatistics {
    /// Calls of each handler that was called.
    pub calls: Vec<(Event, u64)>,
    /// Threads that the policy gave a CPU.
    pub dispatches: u64,
    /// Threads that are ready now.
    pub ready: u64,
    /// How long its threads had CPUs. Only counted where two policies share them.
    pub ran: Duration,
}

/// Of `struct attune_domain`, in words.
const READY: u64 = 0;
const RAN: u64 = 2;
const DISPATCHES: u64 = 3;
const CALLS: u64 = 4;

impl Statistics {
    /// `words`: the memory as it is now, or as it was.
    pub(crate) fn read(image: &Image, memory: &Memory, words: &impl Words) -> Statistics {
        let Some(base) = memory.address(image, "attune_statistics") else { return Statistics::default() };
        let Some(domains) = memory.address(image, "attune_domains") else { return Statistics::default() };
        let word = |at: u64, index: u64| words.u64(at + 8 * index).unwrap_or(0);
        let size = CALLS + Event::ALL.len() as u64;
        let policy = |number: u64| {
            let at = domains + 8 * size * number;
            let calls = Event::ALL.into_iter().map(|event| (event, word(at, CALLS + event as u64)));
            PolicyStatistics {
                calls: calls.filter(|(_, count)| *count > 0).collect(),
                dispatches: word(at, DISPATCHES),
                ready: word(at, READY),
                ran: Duration::from_nanos(word(at, RAN)),
            }
        };
        Statistics {
            policies: (0..image.description.policies.len() as u64).map(policy).collect(),
            kept: word(base, 0),
            kicks: word(base, 1),
            timers: word(base, 2),
            strangers: word(base, 3),
            records: word(base, 4),
        }
    }

    /// Of all handlers.
    pub fn handler_calls(&self) -> u64 {
        self.policies.iter().flat_map(|policy| &policy.calls).map(|(_, count)| count).sum()
    }

    /// Of all policies.
    pub fn dispatches(&self) -> u64 {
        self.policies.iter().map(|policy| policy.dispatches).sum()
    }

    /// Of all policies.
    pub fn ready(&self) -> u64 {
        self.policies.iter().map(|policy| policy.ready).sum()
    }
}
