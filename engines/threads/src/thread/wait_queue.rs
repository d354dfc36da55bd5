//! The queue of threads behind a mutex, a condition or a semaphore, and the mutex itself: the
//! engine gives a mutex back to a waiter for a condition whose time has run out.
//!
//! Invariant: all-zero bytes are an empty queue and a free mutex. A thread is in at most one queue,
//! and `thread.queue` says in which. An object stays where it is while threads wait for it.

use std::cell::Cell;
use std::ptr;

use super::{Thread, ThreadId, ThreadRef, WaitsFor};

/// First in, first out; linked through the threads.
#[repr(C)]
#[derive(Debug)]
pub struct WaitQueue {
    first: Cell<*const Thread>,
    last: Cell<*const Thread>,
}

impl WaitQueue {
    pub const fn new() -> WaitQueue {
        WaitQueue { first: Cell::new(ptr::null()), last: Cell::new(ptr::null()) }
    }

    pub fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }

    fn first(&self) -> Option<ThreadRef> {
        // SAFETY: null, or a thread that waits here and so lives.
        unsafe { ThreadRef::from_ptr(self.first.get()) }
    }

    pub fn push(&self, thread: ThreadRef) {
        // SAFETY: as in first().
        let last = unsafe { ThreadRef::from_ptr(self.last.get()) };
        thread.queue.set(self);
        thread.queue_previous.set(last);
        thread.queue_next.set(None);
        match last {
            Some(last) => last.queue_next.set(Some(thread)),
            None => self.first.set(thread.as_ptr()),
        }
        self.last.set(thread.as_ptr());
    }

    pub fn pop(&self) -> Option<ThreadRef> {
        let first = self.first()?;
        unlink(first);
        Some(first)
    }
}

/// Takes a thread from the queue it waits in, if any.
pub fn unlink(thread: ThreadRef) {
    // SAFETY: an object outlives the threads that wait for it.
    let Some(queue) = (unsafe { thread.queue.get().as_ref() }) else { return };
    let (previous, next) = (thread.queue_previous.take(), thread.queue_next.take());
    let pointer = |thread: Option<ThreadRef>| thread.map_or(ptr::null(), ThreadRef::as_ptr);
    match previous {
        Some(previous) => previous.queue_next.set(next),
        None => queue.first.set(pointer(next)),
    }
    match next {
        Some(next) => next.queue_previous.set(previous),
        None => queue.last.set(pointer(previous)),
    }
    thread.queue.set(ptr::null());
}

/// `struct attune_mutex`; sync.rs locks and unlocks it.
#[repr(C)]
#[derive(Debug)]
pub struct RawMutex {
    pub(crate) owner: Cell<ThreadId>,
    pub(crate) queue: WaitQueue,
}

impl RawMutex {
    pub const fn new() -> RawMutex {
        RawMutex { owner: Cell::new(0), queue: WaitQueue::new() }
    }

    pub fn is_locked(&self) -> bool {
        self.owner.get() != 0
    }

    /// False: another thread has it.
    pub fn take(&self, thread: ThreadRef) -> bool {
        let free = self.owner.get() == 0;
        if free {
            self.owner.set(thread.id);
        }
        free
    }

    /// Gives the mutex to a waiter for a condition: now (true), or when its turn comes.
    pub fn retake(&self, waiter: ThreadRef, outcome: i32) -> bool {
        waiter.retakes.set(ptr::null());
        let taken = self.take(waiter);
        if !taken {
            waiter.outcome.set(outcome);
            waiter.waits_for.set(WaitsFor::Mutex);
            waiter.untimed.set(true);
            self.queue.push(waiter);
        }
        taken
    }
}
