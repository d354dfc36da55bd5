//! How a worker asks the kernel which descriptors are ready: by io_uring, or by epoll.
//!
//! The worker chooses when it starts, and both give the same answers. A descriptor is *armed* for
//! what its waiters want and reports once; then it is armed again if waiters are left. io_uring
//! also reads and writes files; epoll leaves that to helpers.
//!
//! Invariant: a descriptor without waiters is not armed in a ring, since a ring keeps the file of
//! an armed descriptor open after close(2).

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

use super::epoll::Epoll;
use super::uring::{Operation, Transfer, Uring};
use crate::errno::Result;
use crate::instruments;
use crate::report;

/// What a descriptor has reported: EPOLLIN, EPOLLOUT, EPOLLERR and their like.
#[derive(Clone, Copy)]
pub struct Report {
    pub fd: RawFd,
    pub events: u32,
}

/// A descriptor of the engine's own that ends waits when it is readable.
#[derive(Clone, Copy)]
pub enum Watch {
    /// Other OS threads ring it.
    Bell,
    /// The connection to a cluster's manager.
    Cluster,
}

pub enum Poller {
    Uring(Box<Uring>),
    Epoll(Epoll),
}

/// A poller, and for epoll also why it is not io_uring.
pub type Chosen = (Poller, Option<&'static CStr>);

/// What `ATTUNE_IO` names, or else io_uring where the system allows it. Errors of epoll_create1(2).
pub fn choose() -> Result<Chosen> {
    let epoll = |why| -> Result<Chosen> { Ok((Poller::Epoll(Epoll::new()?), Some(why))) };
    let wanted = std::env::var_os("ATTUNE_IO").unwrap_or_default();
    match wanted.as_bytes() {
        b"epoll" => epoll(c"ATTUNE_IO=epoll asks for it"),
        b"" if instruments::under_valgrind() => epoll(c"Valgrind cannot see what io_uring writes"),
        b"" | b"uring" => match Uring::new() {
            Ok(ring) => Ok((Poller::Uring(Box::new(ring)), None)),
            Err(why) if wanted.is_empty() => epoll(why),
            Err(why) => {
                report::cannot_start(&format!("ATTUNE_IO=uring: {}", why.to_string_lossy()))
            }
        },
        _ => {
            let wanted = wanted.to_string_lossy();
            report::cannot_start(&format!("ATTUNE_IO={wanted}: it may be uring or epoll"))
        }
    }
}

impl Poller {
    pub fn name(&self) -> &'static CStr {
        match self {
            Poller::Uring(_) => c"uring",
            Poller::Epoll(_) => c"epoll",
        }
    }

    /// Asks for one report of what `interest` names. False: waiters of this number waited for
    /// another file, which is gone. EBADF: no descriptor. EPERM: of a sort that is always ready.
    pub fn arm(&mut self, fd: RawFd, interest: u32) -> Result<bool> {
        match self {
            Poller::Uring(ring) => ring.arm(fd, interest),
            Poller::Epoll(epoll) => epoll.arm(fd, interest),
        }
    }

    /// The last waiter has gone. True: the kernel is to be told.
    pub fn disarm(&mut self, fd: RawFd) -> bool {
        match self {
            Poller::Uring(ring) => ring.disarm(fd),
            // A report without a waiter costs nothing.
            Poller::Epoll(_) => false,
        }
    }

    /// The descriptor is about to be closed, or is new.
    pub fn forget(&mut self, fd: RawFd) {
        match self {
            Poller::Uring(_) => {}
            Poller::Epoll(epoll) => epoll.forget(fd),
        }
    }

    /// Makes sure that only the program holds the descriptor, which has no waiters.
    pub fn let_go(&mut self, fd: RawFd) {
        match self {
            Poller::Uring(ring) => ring.let_go(fd),
            Poller::Epoll(_) => {}
        }
    }

    /// Tells the kernel what it has not been told, without waiting.
    pub fn submit(&mut self) {
        match self {
            Poller::Uring(ring) => ring.submit(),
            Poller::Epoll(_) => {}
        }
    }

    /// Watches another descriptor, or none, instead of an earlier one.
    pub fn watch(&mut self, which: Watch, fd: Option<RawFd>) {
        match self {
            Poller::Uring(ring) => ring.watch(which, fd),
            Poller::Epoll(epoll) => epoll.watch(which, fd),
        }
    }

    /// Whether the watched descriptor has reported since this was asked last, or cannot report.
    pub fn take_rung(&mut self, which: Watch) -> bool {
        match self {
            Poller::Uring(ring) => ring.take_rung(which),
            Poller::Epoll(epoll) => epoll.take_rung(which),
        }
    }

    /// Waits up to `timeout` nanoseconds (negative: for ever) and appends what has happened. False
    /// if the time ran out.
    pub fn wait(&mut self, timeout: i64, reports: &mut Vec<Report>) -> bool {
        match self {
            Poller::Uring(ring) => ring.wait(timeout, reports),
            Poller::Epoll(epoll) => epoll.wait(timeout, reports),
        }
    }

    /// Begins a transfer that ends by itself. False: it cannot; nothing has begun.
    ///
    /// # Safety
    /// As of [`Uring::start`].
    pub unsafe fn start(&mut self, operation: &Operation, transfer: Transfer) -> bool {
        match self {
            // SAFETY: the caller's promise.
            Poller::Uring(ring) => unsafe { ring.start(operation, transfer) },
            Poller::Epoll(_) => return false,
        }
        true
    }

    /// Takes a transfer that has ended.
    pub fn take_ended(&mut self) -> Option<*const Operation> {
        match self {
            Poller::Uring(ring) => ring.take_ended(),
            Poller::Epoll(_) => None,
        }
    }
}
