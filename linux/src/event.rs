//! A wake-up by descriptor (`eventfd`): set by one thread, waited for by another together with
//! other descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Readable while it is set.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    pub fn new() -> io::Result<Event> {
        Ok(Event(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Sets it; set twice is set.
    pub fn set(&self) {
        // It fails only where the count is full, and then it is set.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub fn clear(&self) {
        // It fails only where the count is 0, and then it is clear.
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }

    /// The same event, for another thread.
    pub fn share(&self) -> io::Result<Event> {
        self.0.try_clone().map(Event)
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
