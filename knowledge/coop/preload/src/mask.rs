//! Applies the signal mask of ppoll and its like, without a moment in which a signal could be lost.
//!
//! While it waits, the thread has its own mask and the call's together blocked. A signal that the
//! call lets through and the thread does not is watched by a descriptor, and ends the wait; the
//! kernel's own call with the mask then delivers it. So the handler runs inside that call, which
//! fails with EINTR, as it should.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null;

use libc::{pollfd, sigset_t};

use crate::member;

pub struct Masked {
    /// To be put back; None: the call has no mask.
    own: Option<sigset_t>,
    let_through: Option<OwnedFd>,
    /// One of them is pending, as the last wait has seen.
    came: bool,
}

impl Masked {
    /// Prepares a wait with the mask. None: that cannot be done, and the kernel should wait.
    pub fn new(mask: Option<&sigset_t>) -> Option<Masked> {
        let Some(mask) = mask else {
            return Some(Masked { own: None, let_through: None, came: false });
        };
        // SAFETY: sets are plain data, filled in before they are read.
        unsafe {
            let mut own = MaybeUninit::uninit();
            libc::pthread_sigmask(libc::SIG_BLOCK, mask, own.as_mut_ptr());
            let own = own.assume_init();
            let mut masked = Masked { own: Some(own), let_through: None, came: false };
            let mut difference = MaybeUninit::uninit();
            libc::sigemptyset(difference.as_mut_ptr());
            let mut difference = difference.assume_init();
            let mut any = false;
            for signal in 1..=libc::SIGRTMAX() {
                if libc::sigismember(&own, signal) == 1 && libc::sigismember(mask, signal) == 0 {
                    libc::sigaddset(&mut difference, signal);
                    any = true;
                }
            }
            if any {
                let fd = libc::signalfd(-1, &difference, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
                if fd < 0 {
                    return None;
                }
                masked.let_through = Some(OwnedFd::from_raw_fd(fd));
            }
            Some(masked)
        }
    }

    /// As [`member::wait`], and ends for a signal that the mask lets through.
    pub fn wait(&mut self, watched: &mut [pollfd], timeout: u64) -> Option<Result<usize, i32>> {
        let Some(fd) = &self.let_through else { return member::wait(watched, timeout) };
        let mut all = watched.to_vec();
        all.push(pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        let waited = member::wait(&mut all, timeout);
        watched.copy_from_slice(&all[..watched.len()]);
        self.came = all.last().is_some_and(|signals| signals.revents != 0);
        waited
    }

    pub fn signal_came(&self) -> bool {
        self.came
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            // SAFETY: the set is initialised.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, own, null::<sigset_t>().cast_mut()) };
        }
    }
}
