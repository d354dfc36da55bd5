//! Files without a name, for processes that want one: they read `/dev/fd/N`, and nothing is left behind.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// An empty file in memory, which only processes that are given its descriptor can reach.
pub fn create(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: the name is a C string; the descriptor is new and ours.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Its name in a process that inherited the descriptor.
pub fn path(file: &impl AsRawFd) -> String {
    format!("/dev/fd/{}", file.as_raw_fd())
}
