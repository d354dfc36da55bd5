//! Mutex, condition, semaphore.

use std::ffi::c_int;

use super::status;
use crate::clock::{self, NEVER};
use crate::errno::{Errno, Result};
use crate::sync::{self, RawCondition, RawSemaphore};
use crate::thread::RawMutex;

/// The object behind a pointer; EINVAL for null.
fn object<'a, T>(pointer: *const T) -> Result<&'a T> {
    // SAFETY: null, or an object as the header says, whose fields are cells.
    unsafe { pointer.as_ref() }.ok_or(Errno(libc::EINVAL))
}

fn idle(busy: bool) -> Result<()> {
    if busy { Err(Errno(libc::EBUSY)) } else { Ok(()) }
}

#[unsafe(no_mangle)]
extern "C" fn attune_mutex_lock(mutex: *const RawMutex) -> c_int {
    // Nothing is done that changes errno.
    if object(mutex).is_ok_and(RawMutex::lock_at_once) {
        return 0;
    }
    status(|| object(mutex)?.lock(|| NEVER))
}

#[unsafe(no_mangle)]
extern "C" fn attune_mutex_trylock(mutex: *const RawMutex) -> c_int {
    status(|| object(mutex)?.try_lock())
}

#[unsafe(no_mangle)]
extern "C" fn attune_mutex_lock_timed(mutex: *const RawMutex, timeout: i64) -> c_int {
    status(|| object(mutex)?.lock(|| clock::deadline(timeout)))
}

#[unsafe(no_mangle)]
extern "C" fn attune_mutex_unlock(mutex: *const RawMutex) -> c_int {
    // As above.
    if object(mutex).is_ok_and(RawMutex::unlock_at_once) {
        return 0;
    }
    status(|| object(mutex)?.unlock())
}

#[unsafe(no_mangle)]
extern "C" fn attune_mutex_destroy(mutex: *const RawMutex) -> c_int {
    status(|| idle(sync::guarded(|| Ok(object(mutex)?.is_locked()))?))
}

#[unsafe(no_mangle)]
extern "C" fn attune_condition_wait(
    condition: *const RawCondition,
    mutex: *const RawMutex,
) -> c_int {
    status(|| object(condition)?.wait(object(mutex)?, NEVER))
}

#[unsafe(no_mangle)]
extern "C" fn attune_condition_wait_timed(
    condition: *const RawCondition,
    mutex: *const RawMutex,
    timeout: i64,
) -> c_int {
    status(|| object(condition)?.wait(object(mutex)?, clock::deadline(timeout)))
}

#[unsafe(no_mangle)]
extern "C" fn attune_condition_signal(condition: *const RawCondition) -> c_int {
    status(|| object(condition)?.signal())
}

#[unsafe(no_mangle)]
extern "C" fn attune_condition_broadcast(condition: *const RawCondition) -> c_int {
    status(|| object(condition)?.broadcast())
}

#[unsafe(no_mangle)]
extern "C" fn attune_condition_destroy(condition: *const RawCondition) -> c_int {
    status(|| idle(sync::guarded(|| Ok(object(condition)?.has_waiters()))?))
}

#[unsafe(no_mangle)]
extern "C" fn attune_semaphore_wait(semaphore: *const RawSemaphore) -> c_int {
    status(|| object(semaphore)?.wait(|| NEVER))
}

#[unsafe(no_mangle)]
extern "C" fn attune_semaphore_trywait(semaphore: *const RawSemaphore) -> c_int {
    status(|| object(semaphore)?.try_wait())
}

#[unsafe(no_mangle)]
extern "C" fn attune_semaphore_wait_timed(semaphore: *const RawSemaphore, timeout: i64) -> c_int {
    status(|| object(semaphore)?.wait(|| clock::deadline(timeout)))
}

#[unsafe(no_mangle)]
extern "C" fn attune_semaphore_post(semaphore: *const RawSemaphore) -> c_int {
    status(|| object(semaphore)?.post())
}

#[unsafe(no_mangle)]
extern "C" fn attune_semaphore_destroy(semaphore: *const RawSemaphore) -> c_int {
    status(|| idle(sync::guarded(|| Ok(object(semaphore)?.has_waiters()))?))
}
