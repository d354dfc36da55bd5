//! Linux's own interfaces as safe Rust, a file for each subject.
//!
//! The crate holds what more than one room of Attune needs, and imports nothing of Attune. It is a
//! thin layer over rustix; where rustix has no function, the system call stands here, once.
//!
//! Numbers of processes and threads are `u32`, as the standard library has them. A number can be
//! used again; [`process::Process`] is never mistaken for a later one. Times are [`time::Time`]:
//! nanoseconds of CLOCK_MONOTONIC.
//!
//! Errors are `io::Error`. Where the kernel's errno does not say what to do about it, the error's
//! text does.

pub mod affinity;
pub mod cgroup;
pub mod child;
pub mod epoll;
pub mod event;
pub mod futex;
pub mod line;
pub mod memory;
pub mod namespace;
mod number;
pub mod places;
pub mod poll;
pub mod process;
pub mod procfs;
pub mod scheduling;
pub mod signal;
pub mod socket;
pub mod time;
pub mod watch;

/// The kernel's error numbers, to compare `io::Error`s with: see [`errno`].
pub use rustix::io::Errno;

/// The kernel's error number behind an error, if there is one.
pub fn errno(error: &std::io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}
