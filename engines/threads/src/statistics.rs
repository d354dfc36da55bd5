//! Numbers about a running engine, for both interfaces.

use crate::engine::Engine;

/// `struct attune_statistics`: numbers since the start, states of now.
#[repr(C)]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Threads ever, with the main program.
    pub created: u64,
    /// Of these, not ended.
    pub living: u64,
    /// Of the living, without the running one; a suspended one counts under `suspended` too.
    pub ready: u64,
    pub waiting: u64,
    pub suspended: u64,
    /// Times a thread was chosen.
    pub switches: u64,
    pub handler_calls: u64,
    /// Questions to the kernel which descriptors are ready.
    pub polls: u64,
    /// Address space of all stacks, cached ones included.
    pub stack_bytes: u64,
    /// In the scheduler.
    pub divisions_by_zero: u64,
    /// Import values that did not fit their variable.
    pub clamped: u64,
}

/// Walks over all threads.
pub fn collect(engine: &Engine) -> Statistics {
    let counts = engine.counts();
    Statistics {
        created: counts.created,
        living: counts.living,
        ready: counts.ready,
        waiting: counts.waiting,
        suspended: counts.suspended,
        switches: counts.switches,
        handler_calls: engine.scheduler.handler_calls(),
        polls: engine.descriptors.polls(),
        stack_bytes: engine.stacks.mapped_bytes(),
        divisions_by_zero: engine.scheduler.divisions_by_zero(),
        clamped: engine.scheduler.clamped(),
    }
}
