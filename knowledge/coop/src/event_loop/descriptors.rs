//! Descriptors whose readiness becomes events: one epoll instance, each descriptor armed for one report at a time.
//!
//! ```text
//! armed ──ready──▶ reported ──callback has run──▶ armed
//! ```
//!
//! A reported descriptor is silent until its callback has run, so waiting is not disturbed by what is known already.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use slotmap::{Key, KeyData};

use super::queue::EventId;

/// What a descriptor is waited for, or is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    pub readable: bool,
    pub writable: bool,
    /// An error or a hang-up; always reported.
    pub error: bool,
}

impl Readiness {
    pub const READABLE: Readiness = Readiness { readable: true, writable: false, error: false };
    pub const WRITABLE: Readiness = Readiness { readable: false, writable: true, error: false };

    fn to_epoll(self) -> u32 {
        let bit = |set: bool, bit: i32| if set { bit as u32 } else { 0 };
        bit(self.readable, libc::EPOLLIN) | bit(self.writable, libc::EPOLLOUT) | libc::EPOLLONESHOT as u32
    }

    fn from_epoll(bits: u32) -> Readiness {
        let has = |bit: i32| bits & bit as u32 != 0;
        Readiness {
            readable: has(libc::EPOLLIN),
            writable: has(libc::EPOLLOUT),
            error: has(libc::EPOLLERR) || has(libc::EPOLLHUP),
        }
    }
}

/// The descriptors of one loop. Made when the first is added.
#[derive(Default)]
pub struct Descriptors {
    epoll: Option<OwnedFd>,
    count: usize,
}

const BATCH: usize = 64;

impl Descriptors {
    pub fn add(&mut self, fd: RawFd, wanted: Readiness, event: EventId) -> io::Result<()> {
        if self.epoll.is_none() {
            // SAFETY: makes a descriptor, or fails with -1.
            let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
            // SAFETY: it is new and nobody else's.
            self.epoll = Some(unsafe { OwnedFd::from_raw_fd(epoll) });
        }
        self.control(libc::EPOLL_CTL_ADD, fd, wanted, event)?;
        self.count += 1;
        Ok(())
    }

    pub fn arm(&self, fd: RawFd, wanted: Readiness, event: EventId) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, wanted, event)
    }

    /// A descriptor that was closed first has left by itself.
    pub fn remove(&mut self, fd: RawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, Readiness::default(), EventId::null());
        self.count -= 1;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Readable when a descriptor is ready.
    pub fn wake(&self) -> Option<RawFd> {
        self.epoll.as_ref().filter(|_| self.count > 0).map(AsRawFd::as_raw_fd)
    }

    /// What has become ready, without waiting.
    pub fn collect(&self, mut ready: impl FnMut(EventId, Readiness)) -> io::Result<()> {
        let Some(epoll) = self.wake() else { return Ok(()) };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        // SAFETY: writes at most BATCH events there.
        let found = check(unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), BATCH as i32, 0) });
        let found = match found {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            found => found?,
        };
        for event in &events[..found as usize] {
            ready(KeyData::from_ffi(event.u64).into(), Readiness::from_epoll(event.events));
        }
        Ok(())
    }

    fn control(&self, operation: i32, fd: RawFd, wanted: Readiness, event: EventId) -> io::Result<()> {
        let epoll = self.epoll.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        let mut event = libc::epoll_event { events: wanted.to_epoll(), u64: event.data().as_ffi() };
        // SAFETY: reads one event.
        check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd, &mut event) }).map(drop)
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
