//! Numbers about a running engine, for both interfaces.

use crate::engine::Engine;
use crate::errno::Result;
use crate::remote;

/// `struct attune_statistics`: numbers since the start, states of now.
#[repr(C)]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// All threads since the start, the main program among them.
    pub created: u64,
    /// Threads that have not ended.
    pub living: u64,
    /// Living threads but those that run; a suspended one counts under `suspended` too.
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
    /// Times a thread went to another worker.
    pub moves: u64,
}

impl Statistics {
    fn add(&mut self, other: &Statistics) {
        self.created += other.created;
        self.living += other.living;
        self.ready += other.ready;
        self.waiting += other.waiting;
        self.suspended += other.suspended;
        self.switches += other.switches;
        self.handler_calls += other.handler_calls;
        self.polls += other.polls;
        self.stack_bytes += other.stack_bytes;
        self.divisions_by_zero += other.divisions_by_zero;
        self.clamped += other.clamped;
        self.moves += other.moves;
    }
}

/// The sums over all workers. Walks over all threads.
pub fn collect() -> Result<Statistics> {
    let mut sum = Statistics::default();
    remote::everywhere(|engine| {
        sum.add(&of(engine));
        Ok(())
    })?;
    Ok(sum)
}

fn of(engine: &Engine) -> Statistics {
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
        moves: counts.moves,
    }
}
