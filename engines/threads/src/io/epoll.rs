//! Readiness by epoll.
//!
//! A descriptor is armed level-triggered, for one report, with one system call. That stays right
//! when descriptors are duplicated, closed and used again: arming a registration that has vanished
//! fails with ENOENT.

use std::mem;
use std::os::fd::RawFd;
use std::ptr;

use super::poller::{Report, Watch};
use crate::errno::{self, Errno, Result, check};

const EVENTS: usize = 256;

pub struct Epoll {
    epoll: RawFd,
    /// By descriptor: registered, unless the program closed it without attune_close.
    registered: Vec<bool>,
    watched: [Option<RawFd>; 2],
    /// Which of them have reported, and which cannot.
    rung: [bool; 2],
    mute: [bool; 2],
    events: Vec<libc::epoll_event>,
    /// epoll_pwait2 is there (Linux 5.11); without it waits are rounded up to milliseconds.
    exact: bool,
}

impl Epoll {
    pub fn new() -> Result<Epoll> {
        // SAFETY: a plain system call.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        Ok(Epoll {
            epoll,
            registered: Vec::new(),
            watched: [None; 2],
            rung: [false; 2],
            mute: [false; 2],
            events,
            exact: true,
        })
    }

    pub fn arm(&mut self, fd: RawFd, interest: u32) -> Result<bool> {
        let mut event =
            libc::epoll_event { events: interest | libc::EPOLLONESHOT as u32, u64: fd as u64 };
        let epoll = self.epoll;
        // SAFETY: plain system calls on a valid event.
        let mut control =
            |operation| check(unsafe { libc::epoll_ctl(epoll, operation, fd, &mut event) });
        let place = usize::try_from(fd).map_err(|_| Errno(libc::EBADF))?;
        if place >= self.registered.len() {
            self.registered.resize((place + 1).next_power_of_two(), false);
        }
        let registered = &mut self.registered[place];
        let expected = *registered;
        let known = expected && control(libc::EPOLL_CTL_MOD).is_ok();
        if !known {
            *registered = false;
            match control(libc::EPOLL_CTL_ADD) {
                Err(Errno(libc::EEXIST)) => control(libc::EPOLL_CTL_MOD)?,
                other => other?,
            };
            *registered = true;
        }
        Ok(known || !expected)
    }

    pub fn forget(&mut self, fd: RawFd) {
        if let Some(registered) = self.registered.get_mut(fd as usize) {
            *registered = false;
        }
    }

    pub fn watch(&mut self, which: Watch, fd: Option<RawFd>) {
        // One that was watched before is closed by now, or is the same.
        if fd != self.watched[which as usize] {
            self.watched[which as usize] = fd;
            let Some(fd) = fd else { return };
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
            // SAFETY: a plain system call on a valid event.
            let added = unsafe { libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_ADD, fd, &mut event) };
            // Where that fails, looks by time remain.
            self.mute[which as usize] = added != 0;
        }
    }

    pub fn take_rung(&mut self, which: Watch) -> bool {
        mem::take(&mut self.rung[which as usize]) || self.mute[which as usize]
    }

    pub fn wait(&mut self, timeout: i64, reports: &mut Vec<Report>) -> bool {
        let count = self.count(timeout);
        let events = self.events[..count].iter();
        reports.extend(events.map(|event| Report { fd: event.u64 as RawFd, events: event.events }));
        for (watched, rung) in self.watched.iter().zip(&mut self.rung) {
            *rung |= reports.iter().any(|report| *watched == Some(report.fd));
        }
        count > 0
    }

    /// Number of events in `self.events`.
    fn count(&mut self, timeout: i64) -> usize {
        let (events, room) = (self.events.as_mut_ptr(), EVENTS as libc::c_int);
        if self.exact && timeout > 0 {
            let time = libc::timespec {
                tv_sec: timeout / 1_000_000_000,
                tv_nsec: timeout % 1_000_000_000,
            };
            // SAFETY: `events` has room for as many; the signal mask is left alone.
            let count = unsafe {
                let mask = ptr::null::<libc::sigset_t>();
                libc::syscall(libc::SYS_epoll_pwait2, self.epoll, events, room, &time, mask, 8)
            };
            if count >= 0 {
                return count as usize;
            }
            if errno::get() != libc::ENOSYS {
                return 0;
            }
            self.exact = false;
        }
        let milliseconds = if timeout < 0 { -1 } else { (timeout + 999_999) / 1_000_000 };
        let milliseconds = milliseconds.min(i32::MAX.into()) as libc::c_int;
        // SAFETY: as above. A signal ends the wait early, which callers take as any other end.
        unsafe { libc::epoll_wait(self.epoll, events, room, milliseconds) }.max(0) as usize
    }
}
