//! Reads the counters of a running scheduler: `struct attune_statistics` and `struct attune_domain`
//! in state.h.

use std::time::Duration;

use attune_language::engine::event::Event;

use crate::image::Image;
use crate::memory::{Memory, Words};

/// Since the scheduler was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// One, or the commands' and the others'.
    pub policies: Vec<PolicyStatistics>,
    /// Times that a thread went on because nothing that concerns the policy had happened.
    pub kept: u64,
    /// CPUs made to choose again.
    pub kicks: u64,
    /// Timers that fired.
    pub timers: u64,
    /// Turns of fall-back tasks: threads for which there was no record.
    pub fall_backs: u64,
    /// Records of threads, used and free.
    pub records: u64,
    /// Threads that went from one instance to another; those of them that an idle CPU took; those
    /// that moved because a thread lagged or led.
    pub moves: u64,
    pub pulls: u64,
    pub balanced: u64,
    /// Times that a lock was held, and for how long in all. Zeros unless the program was compiled
    /// with `ATTUNE_TIMES_LOCK`.
    pub locks: u64,
    pub held: Duration,
    /// Times that a CPU went idle; those of them beside a ready thread that it could run. Zeros
    /// unless the program was compiled with `ATTUNE_COUNTS_IDLE`.
    pub idles: u64,
    pub neglects: u64,
    /// Times that the engine ran a thread that had waited too long.
    pub rescues: u64,
    /// Times that the policy read a value out of its import's range.
    pub clamped: u64,
}

/// The counters of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyStatistics {
    /// Calls of each handler that was called.
    pub calls: Vec<(Event, u64)>,
    /// Threads that the policy gave a CPU.
    pub dispatches: u64,
    /// Threads that are ready now.
    pub ready: u64,
    /// How long its threads had CPUs. Only counted where several policies share them.
    pub ran: Duration,
}

impl Statistics {
    /// `words`: the memory as it is now, or as it was. Zeros where the program counts nothing.
    pub(crate) fn read(image: &Image, memory: &Memory, words: &impl Words) -> Statistics {
        Statistics::counted(image, memory, words).unwrap_or_default()
    }

    fn counted(image: &Image, memory: &Memory, words: &impl Words) -> Option<Statistics> {
        let layout = image.layout().engine.as_ref()?;
        let counters = memory.address(image, "attune_statistics")?;
        let domains = memory.address(image, "attune_domains")?;
        let word = |at: u64| words.u64(at).unwrap_or(0);
        let policies = image.description.policies.len() as u64;
        let policy = |number: u64| {
            let first = domains + layout.domain_bytes * number;
            let instances = (0..u64::from(image.instances()))
                .map(|instance| first + layout.domain_bytes * policies * instance);
            let sum = |member: u64| instances.clone().map(|domain| word(domain + member)).sum();
            let count = |event| sum(layout.calls + 8 * event as u64);
            let calls = Event::ALL.into_iter().map(|event| (event, count(event)));
            PolicyStatistics {
                calls: calls.filter(|(_, count)| *count > 0).collect(),
                dispatches: sum(layout.dispatches),
                ready: sum(layout.ready),
                ran: Duration::from_nanos(sum(layout.ran)),
            }
        };
        Some(Statistics {
            policies: (0..policies).map(policy).collect(),
            kept: word(counters + layout.kept),
            kicks: word(counters + layout.kicks),
            timers: word(counters + layout.timers),
            fall_backs: word(counters + layout.fall_backs),
            records: word(counters + layout.records),
            moves: word(counters + layout.moves),
            pulls: word(counters + layout.pulls),
            balanced: word(counters + layout.balanced),
            locks: word(counters + layout.locks),
            held: Duration::from_nanos(word(counters + layout.held)),
            idles: word(counters + layout.idles),
            neglects: word(counters + layout.neglects),
            rescues: word(counters + layout.rescues),
            clamped: (0..image.instances())
                .filter_map(|instance| memory.instance(image, instance))
                .map(|at| word(at + image.layout().clamped))
                .sum(),
        })
    }

    /// Calls of all handlers of all policies.
    pub fn handler_calls(&self) -> u64 {
        self.policies.iter().flat_map(|policy| &policy.calls).map(|(_, count)| count).sum()
    }

    /// Dispatches of all policies.
    pub fn dispatches(&self) -> u64 {
        self.policies.iter().map(|policy| policy.dispatches).sum()
    }

    /// Ready threads of all policies.
    pub fn ready(&self) -> u64 {
        self.policies.iter().map(|policy| policy.ready).sum()
    }
}
