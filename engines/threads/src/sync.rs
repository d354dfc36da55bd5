//! Mutex, condition and semaphore, as the C header lays them out, and the queue of threads behind each.
//!
//! Waiters are served in the order of their coming, by handing over: who is woken already has what it waited for, so
//! nobody else can take it in between. A waiter for a condition that is signalled while the mutex is taken moves to the
//! mutex's queue without running.
//!
//! Invariant: all-zero bytes are a free mutex, a condition without waiters, a semaphore of 0. A thread is in at most one
//! queue, and `thread.queue` says in which. An object stays where it is while threads wait for it.

use std::cell::Cell;
use std::ptr;

use crate::engine::Engine;
use crate::errno::{Errno, Result};
use crate::process::{leave, with};
use crate::thread::{Leave, Thread, ThreadId, ThreadRef, WaitsFor};

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

    fn push(&self, thread: ThreadRef) {
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

    fn pop(&self) -> Option<ThreadRef> {
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

/// `struct attune_mutex`.
#[repr(C)]
#[derive(Debug)]
pub struct RawMutex {
    owner: Cell<ThreadId>,
    queue: WaitQueue,
}

impl RawMutex {
    pub const fn new() -> RawMutex {
        RawMutex { owner: Cell::new(0), queue: WaitQueue::new() }
    }

    pub fn is_locked(&self) -> bool {
        self.owner.get() != 0
    }

    /// EDEADLK, ETIMEDOUT.
    pub fn lock(&self, deadline: impl FnOnce() -> i64) -> Result<()> {
        let waits = with(|engine| {
            let me = engine.current();
            match self.owner.get() {
                0 => self.owner.set(me.id),
                owner if owner == me.id => return Err(Errno(libc::EDEADLK)),
                _ => {
                    self.queue.push(me);
                    engine.prepare_wait(WaitsFor::Mutex, deadline());
                    return Ok(true);
                }
            }
            Ok(false)
        })??;
        if waits { leave(Leave::Wait) } else { Ok(()) }
    }

    /// EBUSY.
    pub fn try_lock(&self) -> Result<()> {
        with(|engine| self.take(engine.current()).then_some(()).ok_or(Errno(libc::EBUSY)))?
    }

    /// EPERM.
    pub fn unlock(&self) -> Result<()> {
        with(|engine| {
            if self.owner.get() != engine.current().id {
                return Err(Errno(libc::EPERM));
            }
            self.hand_over(engine);
            Ok(())
        })?
    }

    fn take(&self, thread: ThreadRef) -> bool {
        let free = self.owner.get() == 0;
        if free {
            self.owner.set(thread.id);
        }
        free
    }

    fn hand_over(&self, engine: &mut Engine) {
        let next = self.queue.pop();
        self.owner.set(next.map_or(0, |next| next.id));
        if let Some(next) = next {
            engine.wake(next, next.outcome.get());
        }
    }

    /// Gives the mutex to a waiter for a condition: now (true), or when its turn comes.
    pub fn retake(&self, waiter: ThreadRef, outcome: i32) -> bool {
        waiter.retakes.set(ptr::null());
        let taken = self.take(waiter);
        if !taken {
            waiter.outcome.set(outcome);
            waiter.waits_for.set(WaitsFor::Mutex);
            self.queue.push(waiter);
        }
        taken
    }
}

/// `struct attune_condition`.
#[repr(C)]
#[derive(Debug)]
pub struct RawCondition {
    queue: WaitQueue,
}

impl RawCondition {
    pub const fn new() -> RawCondition {
        RawCondition { queue: WaitQueue::new() }
    }

    pub fn has_waiters(&self) -> bool {
        !self.queue.is_empty()
    }

    /// EPERM, ETIMEDOUT.
    pub fn wait(&self, mutex: &RawMutex, deadline: i64) -> Result<()> {
        with(|engine| {
            let me = engine.current();
            if mutex.owner.get() != me.id {
                return Err(Errno(libc::EPERM));
            }
            me.retakes.set(mutex);
            self.queue.push(me);
            engine.prepare_wait(WaitsFor::Condition, deadline);
            mutex.hand_over(engine);
            Ok(())
        })??;
        leave(Leave::Wait)
    }

    pub fn signal(&self) -> Result<()> {
        with(|engine| self.release_one(engine)).map(|_| ())
    }

    pub fn broadcast(&self) -> Result<()> {
        with(|engine| while self.release_one(engine) {})
    }

    fn release_one(&self, engine: &mut Engine) -> bool {
        let Some(waiter) = self.queue.pop() else { return false };
        engine.end_timeout(waiter);
        // SAFETY: a waiter for a condition names its mutex, which outlives the wait.
        let mutex = unsafe { waiter.retakes.get().as_ref() };
        if mutex.is_none_or(|mutex| mutex.retake(waiter, 0)) {
            engine.wake(waiter, 0);
        }
        true
    }
}

/// `struct attune_semaphore`.
#[repr(C)]
#[derive(Debug)]
pub struct RawSemaphore {
    value: Cell<u64>,
    queue: WaitQueue,
}

impl RawSemaphore {
    pub const fn new(value: u64) -> RawSemaphore {
        RawSemaphore { value: Cell::new(value), queue: WaitQueue::new() }
    }

    pub fn has_waiters(&self) -> bool {
        !self.queue.is_empty()
    }

    /// ETIMEDOUT.
    pub fn wait(&self, deadline: impl FnOnce() -> i64) -> Result<()> {
        let waits = with(|engine| {
            if self.take() {
                return false;
            }
            self.queue.push(engine.current());
            engine.prepare_wait(WaitsFor::Semaphore, deadline());
            true
        })?;
        if waits { leave(Leave::Wait) } else { Ok(()) }
    }

    /// EAGAIN.
    pub fn try_wait(&self) -> Result<()> {
        with(|_| self.take().then_some(()).ok_or(Errno(libc::EAGAIN)))?
    }

    /// EOVERFLOW.
    pub fn post(&self) -> Result<()> {
        with(|engine| {
            match self.queue.pop() {
                Some(waiter) => engine.wake(waiter, 0),
                None => {
                    let more = self.value.get().checked_add(1).ok_or(Errno(libc::EOVERFLOW))?;
                    self.value.set(more);
                }
            }
            Ok(())
        })?
    }

    fn take(&self) -> bool {
        let there = self.value.get() > 0;
        if there {
            self.value.set(self.value.get() - 1);
        }
        there
    }
}
