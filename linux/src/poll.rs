//! Waiting for several descriptors at once (`ppoll`).
//!
//! The array is libc's, not rustix's: the cooperative loops wait on arrays that other programs
//! pass, with descriptors that may be closed or -1, which a borrowed descriptor cannot be.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

pub use libc::pollfd;

use crate::time::{NEVER, SECOND, Time};

pub const READABLE: i16 = libc::POLLIN;
pub const WRITABLE: i16 = libc::POLLOUT;
/// The other end is closed.
pub const HUNG_UP: i16 = libc::POLLRDHUP;

/// A descriptor that is waited for until it is readable.
pub fn readable(descriptor: RawFd) -> pollfd {
    pollfd { fd: descriptor, events: READABLE, revents: 0 }
}

/// Waits until one of the descriptors is ready or `timeout` nanoseconds have passed ([`NEVER`]:
/// without end); returns how many are ready. `Interrupted`: a signal came.
pub fn wait(descriptors: &mut [pollfd], timeout: Time) -> io::Result<usize> {
    let limit = libc::timespec {
        tv_sec: (timeout / SECOND) as libc::time_t,
        tv_nsec: (timeout % SECOND) as libc::c_long,
    };
    let limit = if timeout == NEVER { std::ptr::null() } else { &raw const limit };
    // SAFETY: the slice says how many there are; the limit lives until the end of the call.
    let ready = unsafe {
        libc::ppoll(
            descriptors.as_mut_ptr(),
            descriptors.len() as libc::nfds_t,
            limit,
            std::ptr::null(),
        )
    };
    if ready >= 0 { Ok(ready as usize) } else { Err(io::Error::last_os_error()) }
}

/// Whether a descriptor is readable now.
pub fn is_readable(descriptor: &impl AsFd) -> io::Result<bool> {
    wait(&mut [readable(descriptor.as_fd().as_raw_fd())], 0).map(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::time::{MILLISECOND, now};

    #[test]
    fn a_wait_ends_when_a_descriptor_is_ready_or_its_time_is_over() {
        let event = Event::new().unwrap();
        let mut descriptors = [readable(-1), readable(event.as_fd().as_raw_fd())];
        let began = now();
        assert_eq!(wait(&mut descriptors, 3 * MILLISECOND).unwrap(), 0);
        assert!(now() >= began + 3 * MILLISECOND);
        event.set();
        assert_eq!(wait(&mut descriptors, NEVER).unwrap(), 1);
        assert_eq!((descriptors[0].revents, descriptors[1].revents), (0, READABLE));
        assert!(is_readable(&event).unwrap());
        event.clear();
        assert!(!is_readable(&event).unwrap());
    }
}
