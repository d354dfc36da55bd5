//! Mutex, condition and semaphore, as the C header lays them out.
//!
//! Waiters are served in the order in which they came, by handing over: a thread that is woken
//! already has what it waited for, so no other thread can take it in between. A waiter for a
//! condition that is signalled while the mutex is taken moves to the mutex's queue without running.
//!
//! Invariant: all-zero bytes are a condition without waiters, a semaphore of 0.

use std::cell::Cell;

use crate::engine::Engine;
use crate::errno::{Errno, Result};
use crate::process::{leave, with};
use crate::thread::{Leave, RawMutex, WaitQueue, WaitsFor};

impl RawMutex {
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

    fn hand_over(&self, engine: &mut Engine) {
        let next = self.queue.pop();
        self.owner.set(next.map_or(0, |next| next.id));
        if let Some(next) = next {
            engine.wake(next, next.outcome.get());
        }
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
