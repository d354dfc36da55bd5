//! Regular files, and other calls that may block: the calling thread waits, and no other does.
//!
//! Nothing says when a file can be read without waiting for its device, or for a server behind a
//! network. So a transfer at an offset goes to the ring where there is one. Everything else is a
//! plain call that a helper makes. That includes transfers at a file's position: those of all
//! threads and processes that share it must not overlap, and only the plain calls lock it.
//!
//! Invariant: buffers and calls lie on the stack of a thread that does not run before the kernel or
//! the helper is through with them. Nothing but their end ends such a wait, no time limit either.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::transmute;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::{process, thread};

use super::about::about;
use super::result;
use super::uring::{Operation, Transfer};
use crate::errno::{Errno, Result};
use crate::process::{leave, with};
use crate::thread::Leave;

/// Runs `f` on a helper's OS thread, where it may block. A panic of `f` goes on in the caller.
/// ENOMEM, EMFILE, ENFILE: there can be no helper.
pub fn blocking<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T> {
    let ended: Mutex<Option<thread::Result<T>>> = Mutex::new(None);
    let place = &ended;
    let call: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
        let result = catch_unwind(AssertUnwindSafe(f));
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    // SAFETY: what it borrows outlives the wait below, see the module's invariant.
    let call = unsafe {
        transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send + 'static>>(call)
    };
    with(|engine| engine.begin_call(call))??;
    wait();
    match ended.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(Ok(value)) => Ok(value),
        Some(Err(panic)) => resume_unwind(panic),
        None => process::abort(),
    }
}

/// As pread(2).
///
/// # Safety
/// The buffer has room for `size` bytes.
pub unsafe fn pread(fd: RawFd, buffer: *mut c_void, size: usize, offset: i64) -> Result<usize> {
    // SAFETY: the caller's promise.
    let plain = || unsafe { libc::pread64(fd, buffer, size, offset) };
    let at = |offset| Transfer::Read { fd, buffer, size, offset };
    // SAFETY: as above.
    unsafe { transfer(fd, offset, at, plain) }
}

/// As pwrite(2).
///
/// # Safety
/// The buffer holds `size` bytes.
pub unsafe fn pwrite(fd: RawFd, buffer: *const c_void, size: usize, offset: i64) -> Result<usize> {
    // SAFETY: the caller's promise.
    let plain = || unsafe { libc::pwrite64(fd, buffer, size, offset) };
    let at = |offset| Transfer::Write { fd, buffer, size, offset };
    // SAFETY: as above.
    unsafe { transfer(fd, offset, at, plain) }
}

/// # Safety
/// The buffer of the transfer is valid.
unsafe fn transfer(
    fd: RawFd,
    offset: i64,
    at: impl FnOnce(u64) -> Transfer,
    plain: impl FnMut() -> isize,
) -> Result<usize> {
    let operation = Operation { thread: with(|engine| engine.current())?, result: Cell::new(None) };
    // To a ring a negative one is the file's position.
    let offset = u64::try_from(offset).map_err(|_| Errno(libc::EINVAL))?;
    // Others, such as terminals, may ignore the offset or say that they have none.
    if about(fd)?.1 {
        // SAFETY: the buffer is the caller's, and both stay where they are until wait() is over.
        let begun = with(|engine| unsafe { engine.begin_transfer(fd, &operation, at(offset)) })?;
        if begun && operation.result.get().is_none() {
            wait();
        }
        match operation.result.get() {
            // A file system that never says "not yet", and a file that is O_NONBLOCK.
            None | Some(NOT_YET) => {}
            Some(count) => return usize::try_from(count).map_err(|_| Errno(-count)),
        }
    }
    on_helper(plain)
}

const NOT_YET: i32 = -libc::EAGAIN;

/// A plain call, made by a helper.
pub fn on_helper(plain: impl FnMut() -> isize) -> Result<usize> {
    let lent = Lent(plain);
    blocking(move || lent.call())?
}

/// A call that uses the waiting caller's memory.
struct Lent<F>(F);

// SAFETY: its owner waits until it is over.
unsafe impl<F> Send for Lent<F> {}

impl<F: FnMut() -> isize> Lent<F> {
    fn call(mut self) -> Result<usize> {
        loop {
            match result((self.0)()) {
                Err(Errno(libc::EINTR)) => {}
                other => return other,
            }
        }
    }
}

/// Waits for what has begun. What is under way uses the caller's memory, so there is no other way
/// on.
fn wait() {
    if leave(Leave::Wait).is_err() {
        process::abort();
    }
}
