//! Failures as the C library names them. Functions inside the crate fail with an [`Errno`]; the C
//! layer puts it into `errno`, the Rust layer into an [`std::io::Error`].

use std::hint::black_box;
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

/// Where the errno of this OS thread is, until the thread next gives up the processor.
///
/// The compiler knows `__errno_location` and takes its result for the same throughout a function,
/// also across a switch of stacks after which a thread is on another OS thread. So the function
/// that is called here is hidden from it.
pub fn place() -> *mut i32 {
    let location: unsafe extern "C" fn() -> *mut i32 = black_box(libc::__errno_location);
    // SAFETY: always allowed.
    unsafe { location() }
}

/// As [`get`], where a call of the library begins: nothing is hidden, since no switch of stacks
/// lies before it.
pub fn at_entry() -> i32 {
    // SAFETY: as below.
    unsafe { *libc::__errno_location() }
}

pub fn get() -> i32 {
    // SAFETY: the C library's errno of this OS thread is always there.
    unsafe { *place() }
}

pub fn set(value: i32) {
    // SAFETY: as above.
    unsafe { *place() = value }
}

/// The result of a system call that says -1 when it fails.
pub fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}
