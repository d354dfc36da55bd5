//! A worker's end of a trace: records go into a ring of the worker's own, and the worker never
//! waits for room.
//!
//! Invariant: from the first record that finds no room until [`Recorder::goes_on`], none is
//! written, so a gap has one beginning and one end. A thread's name goes before its first record.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use rtrb::{Consumer, Producer, RingBuffer};

use super::record::{Container, NAME_HALF, Record, What};
use crate::scheduler::Scheduler;
use crate::thread::ThreadRef;

/// Records of a worker's ring, 40 bytes each.
const RING: usize = 1 << 16;
/// A worker goes on after a gap when so many places are free.
const ENOUGH: usize = RING / 2;
/// Records of a thread of which the trace has not heard: its name, its state.
const OF_A_NEW_THREAD: usize = 3;
/// With more threads than these a worker does not tell all their states at a time.
pub const MOST_TOLD: u64 = (ENOUGH / OF_A_NEW_THREAD) as u64 - 1;

/// The worker's end of a ring.
pub struct Pen {
    ring: Producer<Record>,
    gap: Arc<Gap>,
}

/// The writer's end.
pub struct Eye {
    pub ring: Consumer<Record>,
    pub gap: Arc<Gap>,
}

/// Records of which the trace has not been told that they are lost. Times of the engine's clock.
#[derive(Default)]
pub struct Gap {
    pub count: AtomicU64,
    pub from: AtomicI64,
    pub until: AtomicI64,
}

pub fn ring() -> (Pen, Eye) {
    let (pen, eye) = RingBuffer::new(RING);
    let gap = Arc::new(Gap::default());
    (Pen { ring: pen, gap: gap.clone() }, Eye { ring: eye, gap })
}

pub struct Recorder {
    pen: Pen,
    /// The scheduler's instance, and its size.
    instance: usize,
    size: usize,
    /// The thread that the trace knows to run. It has not ended.
    running: Option<ThreadRef>,
    loses: bool,
}

impl Recorder {
    pub fn new(pen: Pen, scheduler: &Scheduler) -> Recorder {
        let (constant, instance) = scheduler.addresses();
        let size = constant.state_size as usize;
        Recorder { pen, instance: instance as usize, size, running: None, loses: false }
    }

    /// Whether nobody reads any more: the writer has given up.
    pub fn is_over(&self) -> bool {
        self.pen.ring.is_abandoned()
    }

    /// Whether records have been lost and there is room again.
    pub fn may_go_on(&self) -> bool {
        self.loses && self.pen.ring.slots() >= ENOUGH
    }

    /// Ends a gap. What the threads do is unknown to the trace.
    pub fn goes_on(&mut self, now: i64) {
        self.loses = false;
        self.running = None;
        let count = self.pen.gap.count.swap(0, Relaxed);
        let lost = What::Lost { until: now, count };
        self.push(&[Record { at: self.pen.gap.from.load(Relaxed), thread: 0, what: lost }]);
    }

    /// A thread runs from now on.
    pub fn runs(&mut self, thread: ThreadRef, at: i64) {
        self.running = Some(thread);
        self.tell(thread, at, What::Running);
    }

    /// The thread that the trace knows to run, once: it has stopped.
    pub fn take_running(&mut self) -> Option<ThreadRef> {
        self.running.take()
    }

    /// A thread has ended, and may be freed after that.
    pub fn ends(&mut self, thread: ThreadRef, at: i64) {
        self.running = None;
        self.tell(thread, at, What::Ended);
    }

    /// Something about a thread of this worker, whose name the trace may not know yet.
    pub fn tell(&mut self, thread: ThreadRef, at: i64, what: What) {
        let record = |what| Record { at, thread: thread.id, what };
        if thread.is_told.get() {
            self.push(&[record(what)]);
            return;
        }
        let (name, _) = thread.name.as_chunks::<NAME_HALF>();
        let half = |half: u8| record(What::Name { half, bytes: name[usize::from(half)] });
        thread.is_told.set(self.push(&[half(0), half(1), record(what)]));
    }

    /// Records of any kind, all or none. False: they are lost.
    pub fn push(&mut self, records: &[Record]) -> bool {
        if !self.loses && self.pen.ring.push_entire_slice(records).is_ok() {
            return true;
        }
        let gap = &self.pen.gap;
        if let [first, ..] = records {
            if !self.loses {
                gap.from.store(first.at, Relaxed);
            }
            gap.until.store(first.at, Relaxed);
        }
        gap.count.fetch_add(records.len() as u64, Relaxed);
        self.loses = true;
        false
    }

    /// The container that holds a thread of this worker.
    pub fn container(&self, thread: ThreadRef) -> Container {
        // SAFETY: the record is alive.
        let container = unsafe { (*thread.record()).container } as usize;
        let offset = container.wrapping_sub(self.instance);
        if container == 0 || offset >= self.size {
            return Container::NONE;
        }
        u32::try_from(offset).map_or(Container::NONE, Container)
    }
}
