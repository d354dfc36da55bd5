//! Failures as the C library names them. Functions inside the crate fail with an [`Errno`]; the C
//! layer puts it into `errno`, the Rust layer into an [`std::io::Error`].

use std::io;

/// An `errno` value, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

pub type Result<T> = std::result::Result<T, Errno>;

impl Errno {
    /// The error of the system call that failed last on this OS thread.
    pub fn last() -> Errno {
        Errno(get())
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.0)
    }
}

pub fn get() -> i32 {
    // SAFETY: the C library's errno of this OS thread is always there.
    unsafe { *libc::__errno_location() }
}

pub fn set(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// The result of a system call that says -1 when it fails.
pub fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}
