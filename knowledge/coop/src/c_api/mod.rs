//! The C interface, `include/attune_coop.h`: turns arguments and failures into C's.
//!
//! The header describes each function and its errors. A program gets a loop as a pointer to the
//! loop itself, so that a callback gets the same pointer. Pointers are null only where the header
//! allows it, and point to what it says.

mod event_loop;
mod poller;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io;

use crate::transport::Wanted;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Remembers what went wrong, and sets errno.
fn failed(error: &io::Error) {
    let text = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
    ERROR.with(|last| *last.borrow_mut() = text);
    let number = error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::PermissionDenied => libc::EACCES,
        io::ErrorKind::AlreadyExists => libc::EEXIST,
        io::ErrorKind::QuotaExceeded => libc::EDQUOT,
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        _ => libc::EINVAL,
    });
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() = number };
}

/// 0, or -1 with errno.
fn status(result: io::Result<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            failed(&error);
            -1
        }
    }
}

/// A new object that C owns, or null with errno.
fn owned<T>(result: io::Result<T>) -> *mut T {
    match result {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(error) => {
            failed(&error);
            std::ptr::null_mut()
        }
    }
}

/// Text from C; null is the empty one.
///
/// # Safety
/// A pointer that is not null ends in a zero byte and lives as long as the result.
unsafe fn text<'a>(text: *const c_char) -> io::Result<&'a str> {
    if text.is_null() {
        return Ok("");
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a name must be UTF-8"))
}

/// # Safety
/// As `text`.
unsafe fn wanted(transport: *const c_char) -> io::Result<Wanted> {
    // SAFETY: as the caller promises.
    let text = unsafe { text(transport) }?;
    text.parse().map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("transport {text}: {error}"))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn attune_coop_error() -> *const c_char {
    ERROR.with(|last| last.borrow().as_ptr())
}
