//! Regular files, and calls that block, where only the calling thread waits.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::io::files;
use crate::process::with;

/// What a worker asks which descriptors are ready; see `ATTUNE_IO` in docs/threads.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poller {
    Uring,
    /// And why it is not io_uring.
    Epoll(&'static str),
}

/// What the calling worker asks.
pub fn poller() -> io::Result<Poller> {
    let (_, why) = with(|engine| engine.descriptors.poller())?;
    Ok(why.map_or(Poller::Uring, |why| Poller::Epoll(why.to_str().unwrap_or_default())))
}

/// As pread(2).
pub fn read_at(fd: BorrowedFd, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let (start, size) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the buffer is the caller's for as long as this runs.
    Ok(unsafe { files::pread(fd.as_raw_fd(), start, size, signed(offset)?) }?)
}

/// As pwrite(2).
pub fn write_at(fd: BorrowedFd, buffer: &[u8], offset: u64) -> io::Result<usize> {
    let (start, size) = (buffer.as_ptr().cast(), buffer.len());
    // SAFETY: as for read_at.
    Ok(unsafe { files::pwrite(fd.as_raw_fd(), start, size, signed(offset)?) }?)
}

/// Runs `f` on an OS thread of the library's own, where it may block; a panic goes on here. `f`
/// cannot call the library.
///
/// # Errors
/// ENOMEM, EMFILE, ENFILE: there can be no such OS thread. EPERM: a foreign OS thread.
pub fn blocking<T: Send>(f: impl FnOnce() -> T + Send) -> io::Result<T> {
    Ok(files::blocking(f)?)
}

fn signed(offset: u64) -> io::Result<i64> {
    i64::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
