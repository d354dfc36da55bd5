//! Processes by descriptor, so that a number that is used again is never taken for the process that
//! had it before; and what a process may ask about itself.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::{
    PidfdFlags, Resource, Rlimit, Signal, getrlimit, kill_process, pidfd_open, pidfd_send_signal,
    setrlimit,
};

use crate::number::pid;
use crate::poll;

/// A process that lived when this was made. Its descriptor is readable once the process has ended.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    pub fn open(number: u32) -> io::Result<Process> {
        Ok(Process(pidfd_open(pid(number)?, PidfdFlags::empty())?))
    }

    /// One thread, as if it were a process of its own. `InvalidInput`: the kernel is older than
    /// Linux 6.9.
    pub fn of_thread(number: u32) -> io::Result<Process> {
        // <linux/pidfd.h>: PIDFD_THREAD.
        let thread = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);
        Ok(Process(pidfd_open(pid(number)?, thread)?))
    }

    /// The process that connected a Unix socket. It may have ended since, or have passed the
    /// connection on. `Unsupported`: the kernel is older than Linux 6.5.
    pub fn peer(socket: impl AsFd) -> io::Result<Process> {
        /// <asm-generic/socket.h>
        const SO_PEERPIDFD: libc::c_int = 77;
        let mut fd: RawFd = -1;
        let mut length = size_of_val(&fd) as libc::socklen_t;
        // SAFETY: the kernel writes one number there.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                SO_PEERPIDFD,
                (&raw mut fd).cast(),
                &mut length,
            )
        };
        if result == 0 {
            // SAFETY: the descriptor is new and ours.
            return Ok(Process(unsafe { OwnedFd::from_raw_fd(fd) }));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOPROTOOPT) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel cannot say which process is at the other end of a socket \
                 (SO_PEERPIDFD): use Linux 6.5 or newer",
            )),
            _ => Err(error),
        }
    }

    pub fn lives(&self) -> bool {
        // Where the kernel cannot be asked, nothing has been seen of an end.
        !poll::is_readable(self).unwrap_or(false)
    }

    /// Sends a signal; one of [`crate::signal`]. Fails with ESRCH once the process has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, signal)?)
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends a signal to the process that has this number now: for a child that was not waited for, so
/// that its number is still its own.
pub fn signal(number: u32, signal: Signal) -> io::Result<()> {
    Ok(kill_process(pid(number)?, signal)?)
}

/// The user whose process it is.
pub fn user_of(number: u32) -> io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    // A process that changed its user on the way owns its folder as root, and is root's.
    std::fs::metadata(format!("/proc/{number}")).map(|folder| folder.uid())
}

/// The user who started this program.
pub fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The user whose rights this program has; 0 is root.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The calling thread's number.
pub fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Whether the calling thread is its process's first.
pub fn is_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

/// Whether the process has a thread of that number.
pub fn has_thread(process: u32, thread: u32) -> bool {
    // SAFETY: signal 0 is only asked about, never sent.
    let asked = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    // One that may not be signalled is there.
    asked == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Raises the limit of open descriptors to what this process is allowed, and returns it. One with
/// the right to (CAP_SYS_RESOURCE) is allowed `wanted`.
pub fn raise_descriptor_limit(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let beyond = limit.maximum.map(|most| most.max(wanted));
    // The old limit holds where both fail.
    if setrlimit(Resource::Nofile, Rlimit { current: beyond, maximum: beyond }).is_err() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::TERMINATE;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    #[test]
    fn a_thread_is_opened_by_its_number() {
        let (told, thread) = std::sync::mpsc::channel();
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            told.send(this_thread()).unwrap();
            let _ = gone.recv();
        });
        let thread = Process::of_thread(thread.recv().unwrap()).unwrap();
        assert!(thread.lives());
        drop(go);
        other.join().unwrap();
        // `join` is told before the kernel has done with it.
        poll::wait(&mut [poll::readable(thread.as_fd().as_raw_fd())], 10 * crate::time::SECOND)
            .unwrap();
        assert!(!thread.lives());
    }

    #[test]
    fn a_process_lives_until_it_ends() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        assert!(process.lives());
        process.signal(TERMINATE).unwrap();
        child.wait().unwrap();
        assert!(!process.lives());
        assert_eq!(crate::errno(&process.signal(TERMINATE).unwrap_err()), Some(crate::Errno::SRCH));
    }

    #[test]
    fn no_process_has_number_zero_or_one_beyond_the_kernel_s() {
        for number in [0, u32::MAX, 1 << 31] {
            assert!(Process::open(number).is_err());
            assert!(signal(number, TERMINATE).is_err());
        }
    }

    #[test]
    fn the_peer_of_a_socket_pair_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        match Process::peer(&one) {
            Ok(peer) => assert!(peer.lives()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
        }
    }

    #[test]
    fn threads_are_this_process_s_until_they_end() {
        let own = std::process::id();
        assert!(has_thread(own, this_thread()));
        assert!(!is_main_thread());
        let ended = std::thread::spawn(this_thread).join().unwrap();
        assert_ne!(ended, this_thread());
        // The kernel takes a thread out of its process a little after it was joined.
        while has_thread(own, ended) {
            std::thread::yield_now();
        }
        assert!(!has_thread(own, 1));
        assert!(has_thread(1, 1));
    }

    #[test]
    fn the_limit_of_descriptors_is_as_high_as_allowed() {
        let raised = raise_descriptor_limit(0);
        assert_eq!(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX), raised);
    }

    #[test]
    fn a_process_belongs_to_its_user() {
        assert_eq!(user_of(std::process::id()).unwrap(), effective_user());
        assert!(user_of(u32::MAX).is_err());
    }
}
