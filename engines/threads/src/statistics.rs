//! Numbers about a running engine, for both interfaces.

use crate::engine::Engine;

/// `struct attune_statistics`: numbers since the start, states of now.
#[repr(C)]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// All threads since the start, the main program among them.
    pub created: u64,
    /// Threads that have not ended.
    pub living: u64,
    /// Living threads but the running one; a suspended one counts under `suspended` too.
    pub ready: u64,
    pub waiting: u64,
    pub suspended: u64,
    /// Times a thread was chosen.
    pub switches: u64,
    pub handler_calls: u64,
    /// How often the engine asked the kernel which descriptors are ready.
    pub polls: u64,
    /// Address space of all stacks, cached ones included.
    pub stack_bytes: u64,
    /// Divisions by zero in the scheduler.
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
