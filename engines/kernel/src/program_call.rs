//! Calls a loaded program that takes a struct (`SEC("syscall")`).

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::libbpf_sys;

/// -ESRCH.
const NO_SUCH_THREAD: i32 = -3;

/// Runs the program once. It answers 0, or an error as the kernel says it; `NotFound`: there is no
/// such thread.
pub(crate) fn with<T>(program: BorrowedFd<'_>, mut argument: T) -> io::Result<()> {
    // SAFETY: zero is a valid value of every member.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { zeroed() };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    // The kernel writes it back.
    options.ctx_in = (&raw mut argument).cast();
    options.ctx_size_in = size_of::<T>() as u32;
    // SAFETY: a program of ours, which reads no more than a T.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) };
    match (result, options.retval as i32) {
        (0, 0) => Ok(()),
        (0, NO_SUCH_THREAD) => Err(io::ErrorKind::NotFound.into()),
        (0, error) => Err(io::Error::from_raw_os_error(-error)),
        (error, _) => Err(io::Error::from_raw_os_error(-error)),
    }
}
