//! Mutex, condition and semaphore, as the C header lays them out.
//!
//! Waiters are served in the order in which they came, by handing over: a thread that is woken
//! already has what it waited for, so no other thread can take it in between. A waiter for a
//! condition that is signalled while the mutex is taken moves to the mutex's queue without running.
//!
//! Invariants: all-zero bytes are a condition without waiters, a semaphore of 0. Where there are
//! several workers, objects and the queues in them are touched under one lock of the process, which
//! no handler runs under; a thread that another worker takes from a queue is told by message.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use crate::engine::Engine;
use crate::engine::worker;
use crate::errno::{Errno, Result};
use crate::instruments;
use crate::preemption::safe_point;
use crate::process::{leave, undisturbed, with};
use crate::thread::{Leave, RawMutex, ThreadRef, WaitQueue, WaitsFor};

/// What the guard protects is in the programs' objects.
static OBJECTS: Mutex<()> = Mutex::new(());

/// Runs `f`, which touches objects and calls no handler, while no other worker touches any.
#[inline]
pub fn guarded<T>(f: impl FnOnce() -> T) -> T {
    if worker::several() { locked(f) } else { f() }
}

/// Apart, so that programs with one worker do not pay for the registers that it needs.
#[inline(never)]
fn locked<T>(f: impl FnOnce() -> T) -> T {
    let _guard = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    instruments::acquired(&OBJECTS);
    let result = f();
    instruments::released(&OBJECTS);
    result
}

impl RawMutex {
    /// Locks it if that takes nothing but a look; false: [`RawMutex::lock`] knows what it takes.
    #[inline]
    pub fn lock_at_once(&self) -> bool {
        undisturbed().is_some_and(|me| self.take(me))
    }

    /// As [`RawMutex::lock_at_once`], of unlocking.
    #[inline]
    pub fn unlock_at_once(&self) -> bool {
        let mine = |me: ThreadRef| self.owner.get() == me.id && self.queue.is_empty();
        let unlocks = undisturbed().is_some_and(mine);
        if unlocks {
            self.owner.set(0);
        }
        unlocks
    }

    /// EDEADLK, ETIMEDOUT.
    pub fn lock(&self, deadline: impl FnOnce() -> i64) -> Result<()> {
        if self.lock_at_once() {
            return Ok(());
        }
        safe_point();
        let waits = with(|engine| {
            let me = engine.current();
            guarded(|| match self.owner.get() {
                0 => {
                    self.owner.set(me.id);
                    Ok(false)
                }
                owner if owner == me.id => Err(Errno(libc::EDEADLK)),
                _ => {
                    self.queue.push(me);
                    engine.prepare_wait(WaitsFor::Mutex, deadline());
                    Ok(true)
                }
            })
        })??;
        if waits { leave(Leave::Wait) } else { Ok(()) }
    }

    /// EBUSY.
    pub fn try_lock(&self) -> Result<()> {
        with(|engine| {
            let taken = guarded(|| self.take(engine.current()));
            taken.then_some(()).ok_or(Errno(libc::EBUSY))
        })?
    }

    /// EPERM.
    pub fn unlock(&self) -> Result<()> {
        if self.unlock_at_once() {
            return Ok(());
        }
        let unlocked = with(|engine| {
            let me = engine.current();
            let next = guarded(|| {
                let mine = self.owner.get() == me.id;
                if mine { Ok(self.hand_over()) } else { Err(Errno(libc::EPERM)) }
            })?;
            if let Some((next, outcome)) = next {
                engine.wake(next, outcome);
            }
            Ok(())
        })?;
        safe_point();
        unlocked
    }

    /// The thread that has the mutex now and is to be woken, and how.
    fn hand_over(&self) -> Option<(ThreadRef, i32)> {
        let next = self.queue.pop();
        self.owner.set(next.map_or(0, |next| next.id));
        next.map(|next| (next, next.outcome.get()))
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
            let next = guarded(|| {
                if mutex.owner.get() != me.id {
                    return Err(Errno(libc::EPERM));
                }
                me.retakes.set(mutex);
                self.queue.push(me);
                engine.prepare_wait(WaitsFor::Condition, deadline);
                Ok(mutex.hand_over())
            })?;
            if let Some((next, outcome)) = next {
                engine.wake(next, outcome);
            }
            Ok(())
        })??;
        leave(Leave::Wait)
    }

    pub fn signal(&self) -> Result<()> {
        with(|engine| self.release_one(engine))?;
        safe_point();
        Ok(())
    }

    pub fn broadcast(&self) -> Result<()> {
        with(|engine| while self.release_one(engine) {})?;
        safe_point();
        Ok(())
    }

    fn release_one(&self, engine: &mut Engine) -> bool {
        let released = guarded(|| {
            let waiter = self.queue.pop()?;
            engine.end_timeout(waiter);
            // SAFETY: a waiter for a condition names its mutex, which outlives the wait.
            let mutex = unsafe { waiter.retakes.get().as_ref() };
            Some((waiter, mutex.is_none_or(|mutex| mutex.retake(waiter, 0))))
        });
        let Some((waiter, has_mutex)) = released else { return false };
        if has_mutex {
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
        safe_point();
        let waits = with(|engine| {
            guarded(|| {
                if self.take() {
                    return false;
                }
                self.queue.push(engine.current());
                engine.prepare_wait(WaitsFor::Semaphore, deadline());
                true
            })
        })?;
        if waits { leave(Leave::Wait) } else { Ok(()) }
    }

    /// EAGAIN.
    pub fn try_wait(&self) -> Result<()> {
        with(|_| guarded(|| self.take()).then_some(()).ok_or(Errno(libc::EAGAIN)))?
    }

    /// EOVERFLOW.
    pub fn post(&self) -> Result<()> {
        let posted = with(|engine| {
            let waiter = guarded(|| {
                let waiter = self.queue.pop();
                if waiter.is_none() {
                    let more = self.value.get().checked_add(1).ok_or(Errno(libc::EOVERFLOW))?;
                    self.value.set(more);
                }
                Ok(waiter)
            })?;
            if let Some(waiter) = waiter {
                engine.wake(waiter, 0);
            }
            Ok(())
        })?;
        safe_point();
        posted
    }

    fn take(&self) -> bool {
        let there = self.value.get() > 0;
        if there {
            self.value.set(self.value.get() - 1);
        }
        there
    }
}
