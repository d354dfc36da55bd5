//! Mutex, condition and semaphore with Rust's guards.
//!
//! Threads of all workers may share them: whatever is in a raw object is touched under the lock of
//! `crate::sync` where there are several workers, and by one OS thread where there is one. A guard
//! stays with its thread.

use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::deadline;
use crate::clock::NEVER;
use crate::errno::{Errno, Result};
use crate::sync::{RawCondition, RawSemaphore};
use crate::thread::RawMutex;

/// Mutual exclusion between the engine's threads. Not poisoned by a panic.
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: see the module; the lock orders the threads that use the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above; one thread at a time has a reference to the value.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { raw: RawMutex::new(), value: UnsafeCell::new(value) }
    }

    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// # Errors
    /// EDEADLK: the calling thread has it. EPERM: a foreign OS thread.
    pub fn lock(&self) -> io::Result<MutexGuard<'_, T>> {
        self.raw.lock(|| NEVER)?;
        Ok(MutexGuard::new(self))
    }

    /// None: somebody has it.
    pub fn try_lock(&self) -> io::Result<Option<MutexGuard<'_, T>>> {
        self.or_none(self.raw.try_lock(), libc::EBUSY)
    }

    /// None: the time ran out first.
    pub fn lock_timeout(&self, timeout: Duration) -> io::Result<Option<MutexGuard<'_, T>>> {
        self.or_none(self.raw.lock(|| deadline(Some(timeout))), libc::ETIMEDOUT)
    }

    fn or_none(&self, locked: Result<()>, none: i32) -> io::Result<Option<MutexGuard<'_, T>>> {
        match locked {
            Ok(()) => Ok(Some(MutexGuard::new(self))),
            Err(Errno(errno)) if errno == none => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The lock, given back when it is dropped. It does not leave its worker:
///
/// ```compile_fail
/// let mutex: &'static _ = Box::leak(Box::new(attune_threads::Mutex::new(1)));
/// let guard = mutex.lock().unwrap();
/// attune_threads::spawn_on(attune_threads::Worker::LeastLoaded, move || drop(guard));
/// ```
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    not_send: PhantomData<*const ()>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    fn new(mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        MutexGuard { mutex, not_send: PhantomData }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard is the only way to the value while it exists.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // It fails only for a guard that was carried to another thread; the lock then stays with
        // its owner.
        let _ = self.mutex.raw.unlock();
    }
}

/// Threads that wait for something to become true under a mutex.
pub struct Condvar {
    raw: RawCondition,
}

// SAFETY: see the module.
unsafe impl Send for Condvar {}
// SAFETY: see the module.
unsafe impl Sync for Condvar {}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar { raw: RawCondition::new() }
    }

    /// Gives the lock back, waits, and has the lock again. Returns only after
    /// [`Condvar::notify_one`] or [`Condvar::notify_all`], never for no reason.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) -> io::Result<()> {
        Ok(self.raw.wait(&guard.mutex.raw, NEVER)?)
    }

    /// False: the time ran out first. The lock is the caller's again either way.
    pub fn wait_timeout<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> io::Result<bool> {
        match self.raw.wait(&guard.mutex.raw, deadline(Some(timeout))) {
            Err(Errno(libc::ETIMEDOUT)) => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }

    pub fn notify_one(&self) -> io::Result<()> {
        Ok(self.raw.signal()?)
    }

    pub fn notify_all(&self) -> io::Result<()> {
        Ok(self.raw.broadcast()?)
    }
}

/// A number that threads wait for to be above 0.
pub struct Semaphore {
    raw: RawSemaphore,
}

// SAFETY: see the module.
unsafe impl Send for Semaphore {}
// SAFETY: see the module.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    pub const fn new(value: u64) -> Semaphore {
        Semaphore { raw: RawSemaphore::new(value) }
    }

    /// Waits until the number is above 0 and takes one from it.
    pub fn acquire(&self) -> io::Result<()> {
        Ok(self.raw.wait(|| NEVER)?)
    }

    /// False: it is 0.
    pub fn try_acquire(&self) -> io::Result<bool> {
        match self.raw.try_wait() {
            Err(Errno(libc::EAGAIN)) => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }

    /// False: the time ran out first.
    pub fn acquire_timeout(&self, timeout: Duration) -> io::Result<bool> {
        match self.raw.wait(|| deadline(Some(timeout))) {
            Err(Errno(libc::ETIMEDOUT)) => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }

    /// Adds one, or hands it to the first that waits. EOVERFLOW.
    pub fn release(&self) -> io::Result<()> {
        Ok(self.raw.post()?)
    }
}
