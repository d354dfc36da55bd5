//! Processes by descriptor, so that a number that is used again is never taken for the process that had it before.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use attune_values::socket::Connection;

/// <asm-generic/socket.h>; Linux 6.5.
const SO_PEERPIDFD: libc::c_int = 77;

/// A process that lived when this was made. Readable (poll) once it has ended.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// The one that connected. It may have ended since, or have passed the connection on.
    pub fn peer(connection: &Connection) -> io::Result<Process> {
        let mut fd: RawFd = -1;
        let mut length = size_of_val(&fd) as libc::socklen_t;
        // SAFETY: the option gives a descriptor, new and ours.
        unsafe {
            let result = libc::getsockopt(
                connection.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_PEERPIDFD,
                (&raw mut fd).cast(),
                &mut length,
            );
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Process(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub fn open(number: i32) -> io::Result<Process> {
        // SAFETY: plain numbers; the descriptor is new and ours.
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, number, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Process(OwnedFd::from_raw_fd(fd as RawFd)))
        }
    }

    pub fn lives(&self) -> bool {
        let mut question = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd.
        unsafe { libc::poll(&mut question, 1, 0) == 0 }
    }
}

impl AsRawFd for Process {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// The user whose process it is.
pub fn user(number: i32) -> io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    // A process that changed its user on the way owns its folder as root, and is root's to give hints for.
    std::fs::metadata(format!("/proc/{number}")).map(|folder| folder.uid())
}

/// Raises the limit of open descriptors to what is allowed: every client is one, and every process another.
pub fn raise_descriptor_limit() {
    // SAFETY: plain numbers.
    unsafe {
        let mut limit: libc::rlimit = mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            // The old limit will do too.
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
