//! Counters of a running scheduler: `struct attune_statistics` in state.h.

use attune_language::event::Event;

use crate::image::Image;
use crate::memory::Memory;

/// Since the scheduler was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Calls of each handler that was called.
    pub calls: Vec<(Event, u64)>,
    /// Threads that the policy gave a CPU.
    pub dispatches: u64,
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
    /// Threads that are ready now.
    pub ready: u32,
}

impl Statistics {
    pub(crate) fn read(image: &Image, memory: &Memory) -> Statistics {
        let Some(base) = memory.address(image, "attune_statistics") else { return Statistics::default() };
        let word = |index: usize| memory.u64(base + 8 * index as u64).unwrap_or(0);
        let events = Event::ALL.len();
        let calls = Event::ALL.into_iter().map(|event| (event, word(event as usize)));
        let ready = memory.address(image, "attune_ready").and_then(|address| memory.u32(address));
        Statistics {
            calls: calls.filter(|(_, count)| *count > 0).collect(),
            dispatches: word(events),
            kept: word(events + 1),
            kicks: word(events + 2),
            timers: word(events + 3),
            strangers: word(events + 4),
            records: word(events + 5),
            ready: ready.unwrap_or(0),
        }
    }

    /// Of all handlers.
    pub fn handler_calls(&self) -> u64 {
        self.calls.iter().map(|(_, count)| count).sum()
    }
}
