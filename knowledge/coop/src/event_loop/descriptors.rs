//! Descriptors whose readiness becomes events: one epoll instance, each descriptor armed for one
//! report at a time.
//!
//! ```text
//! armed ──ready──▶ reported ──callback has run──▶ armed
//! ```
//!
//! A reported descriptor is silent until its callback has run, so an event that is known already
//! does not end a wait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use attune_linux::Errno;
use attune_linux::epoll::{self, Epoll};
use slotmap::{Key, KeyData};

use super::queue::EventId;

/// The conditions that a descriptor is watched for, or is ready for.
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

    fn to_epoll(self) -> epoll::Readiness {
        let mut wanted = epoll::Readiness::ONESHOT;
        wanted.set(epoll::Readiness::IN, self.readable);
        wanted.set(epoll::Readiness::OUT, self.writable);
        wanted
    }

    fn from_epoll(found: epoll::Readiness) -> Readiness {
        Readiness {
            readable: found.contains(epoll::Readiness::IN),
            writable: found.contains(epoll::Readiness::OUT),
            error: found.intersects(epoll::Readiness::ERR | epoll::Readiness::HUP),
        }
    }
}

/// The descriptors of one loop. Made when the first is added.
#[derive(Default)]
pub struct Descriptors {
    epoll: Option<Epoll>,
    count: usize,
}

impl Descriptors {
    pub fn add(&mut self, fd: RawFd, wanted: Readiness, event: EventId) -> io::Result<()> {
        if self.epoll.is_none() {
            self.epoll = Some(Epoll::new()?);
        }
        self.epoll()?.add(fd, event.data().as_ffi(), wanted.to_epoll())?;
        self.count += 1;
        Ok(())
    }

    pub fn arm(&self, fd: RawFd, wanted: Readiness, event: EventId) -> io::Result<()> {
        self.epoll()?.modify(fd, event.data().as_ffi(), wanted.to_epoll())
    }

    /// A descriptor that was closed first has left by itself.
    pub fn remove(&mut self, fd: RawFd) {
        let _ = self.epoll().and_then(|epoll| epoll.remove(fd));
        self.count -= 1;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Readable when a descriptor is ready.
    pub fn wake(&self) -> Option<RawFd> {
        let epoll = self.epoll.as_ref().filter(|_| self.count > 0)?;
        Some(epoll.as_fd().as_raw_fd())
    }

    /// The descriptors that have become ready, without waiting.
    pub fn collect(&self, mut ready: impl FnMut(EventId, Readiness)) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.epoll()?.collect(|key, found| {
            ready(KeyData::from_ffi(key).into(), Readiness::from_epoll(found));
        })
    }

    fn epoll(&self) -> io::Result<&Epoll> {
        self.epoll.as_ref().ok_or_else(|| Errno::BADF.into())
    }
}
