//! Files without a name, for processes that want one: they read `/dev/fd/N`, and nothing stays
//! behind.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// An empty file in memory, which only processes that are given its descriptor can reach.
pub fn create(name: &str) -> io::Result<File> {
    Ok(attune_linux::memory::file(name)?.into())
}

/// Its name in a process that inherited the descriptor.
pub fn path(file: &impl AsRawFd) -> String {
    format!("/dev/fd/{}", file.as_raw_fd())
}
