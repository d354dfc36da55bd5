//! Many descriptors watched at once (`epoll`), by number: programs in C name theirs so.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// The conditions that a descriptor is watched for, or is ready for. The kernel always reports
/// [`Readiness::ERR`] and [`Readiness::HUP`].
pub use rustix::event::epoll::EventFlags as Readiness;

/// A set of watched descriptors. Its own descriptor is readable when one of them is ready.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// Events that one [`Epoll::collect`] takes at most.
const BATCH: usize = 64;

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        Ok(Epoll(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Watches a descriptor; its events come with `key`. Fails with EPERM for plain files, which
    /// are always ready, and with EEXIST for a descriptor that is watched already.
    pub fn add(&self, descriptor: RawFd, key: u64, wanted: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.0, borrow(descriptor)?, EventData::new_u64(key), wanted)?)
    }

    /// Changes what a descriptor is watched for, and arms it again if it was watched once.
    pub fn modify(&self, descriptor: RawFd, key: u64, wanted: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.0, borrow(descriptor)?, EventData::new_u64(key), wanted)?)
    }

    /// A descriptor that was closed first has left by itself, and is not found.
    pub fn remove(&self, descriptor: RawFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, borrow(descriptor)?)?)
    }

    /// Calls `ready` with the keys of descriptors that are ready now, without waiting.
    pub fn collect(&self, mut ready: impl FnMut(u64, EventFlags)) -> io::Result<()> {
        let mut room = [const { MaybeUninit::uninit() }; BATCH];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match epoll::wait(&self.0, &mut room, Some(&now)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let (key, flags) = (event.data.u64(), event.flags);
            ready(key, flags);
        }
        Ok(())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn borrow<'a>(descriptor: RawFd) -> io::Result<BorrowedFd<'a>> {
    if descriptor < 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: it lives as long as one call, in which the kernel refuses a descriptor that is
    // closed.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use std::os::fd::AsRawFd;

    fn collected(epoll: &Epoll) -> Vec<u64> {
        let mut keys = Vec::new();
        epoll.collect(|key, _| keys.push(key)).unwrap();
        keys
    }

    #[test]
    fn a_descriptor_is_reported_once_until_it_is_armed_again() {
        let (epoll, event) = (Epoll::new().unwrap(), Event::new().unwrap());
        let (fd, once) = (event.as_fd().as_raw_fd(), Readiness::IN | Readiness::ONESHOT);
        epoll.add(fd, 7, once).unwrap();
        assert_eq!(collected(&epoll), []);
        event.set();
        assert_eq!(collected(&epoll), [7]);
        assert_eq!(collected(&epoll), []);
        epoll.modify(fd, 8, once).unwrap();
        assert_eq!(collected(&epoll), [8]);
        epoll.remove(fd).unwrap();
        assert!(epoll.remove(fd).is_err());
    }

    #[test]
    fn what_is_no_descriptor_is_refused() {
        let epoll = Epoll::new().unwrap();
        for descriptor in [-1, i32::MAX] {
            let error = epoll.add(descriptor, 0, Readiness::IN).unwrap_err();
            assert_eq!(crate::errno(&error), Some(Errno::BADF));
        }
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let error = epoll.add(file.as_raw_fd(), 0, Readiness::IN).unwrap_err();
        assert_eq!(crate::errno(&error), Some(Errno::PERM));
    }
}
