//! Calls of a loaded program that takes a struct (`SEC("syscall")`).

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::libbpf_sys;

/// Runs the program once. It answers 0, or an error as the kernel says it (-ESRCH).
pub(crate) fn with<T>(program: BorrowedFd<'_>, argument: &T) -> io::Result<()> {
    // SAFETY: zero is a valid value of every member.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { zeroed() };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    options.ctx_in = (&raw const *argument).cast();
    options.ctx_size_in = size_of::<T>() as u32;
    // SAFETY: a program of ours, which reads no more than a T.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) };
    match (result, options.retval as i32) {
        (0, 0) => Ok(()),
        (0, _) => Err(io::ErrorKind::NotFound.into()),
        (error, _) => Err(io::Error::from_raw_os_error(-error)),
    }
}
