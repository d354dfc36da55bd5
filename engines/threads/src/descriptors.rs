//! Threads that wait for descriptors, and the one epoll instance behind them.
//!
//! A descriptor is armed (level-triggered, one shot) for everything that its waiters want whenever
//! a waiter comes, or stays behind after a report. That costs one system call for each wait, and it
//! stays right when descriptors are duplicated, closed and used again: arming a registration that
//! has vanished fails with ENOENT, and its waiters get EBADF.
//!
//! Invariant: `entries[fd]`'s list holds exactly the waiters for fd; a waiter lives on its blocked
//! thread's stack and is unlinked before that thread runs again; `waiting` counts them all.

use std::os::fd::RawFd;
use std::ptr;

use crate::errno::{self, Errno, Result, check};
use crate::thread::{ThreadRef, Waiter};

#[derive(Clone, Copy)]
struct Entry {
    first: *const Waiter,
    last: *const Waiter,
    /// Registered with epoll, unless the program closed the descriptor without attune_close.
    registered: bool,
    /// The last operation on it said ENOTSOCK.
    no_socket: bool,
}

const EMPTY: Entry =
    Entry { first: ptr::null(), last: ptr::null(), registered: false, no_socket: false };
const EVENTS: usize = 256;

pub struct Descriptors {
    epoll: RawFd,
    entries: Vec<Entry>,
    waiting: usize,
    events: Vec<libc::epoll_event>,
    /// epoll_pwait2 is there (Linux 5.11); without it waits are rounded up to milliseconds.
    exact: bool,
    /// Where the next sweep goes on.
    cursor: usize,
    polls: u64,
    watched: Option<RawFd>,
}

impl Descriptors {
    pub fn new() -> Result<Descriptors> {
        // SAFETY: a plain system call.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        Ok(Descriptors {
            epoll,
            entries: Vec::new(),
            waiting: 0,
            events,
            exact: true,
            cursor: 0,
            polls: 0,
            watched: None,
        })
    }

    /// Lets polls end when this descriptor, which no thread waits for, is readable. One that was
    /// watched before is closed by now, or is the same.
    pub fn watch(&mut self, fd: Option<RawFd>) {
        if fd != self.watched {
            self.watched = fd;
            let Some(fd) = fd else { return };
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
            // SAFETY: a plain system call on a valid event. Where it fails, polls by time remain.
            unsafe { libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_ADD, fd, &mut event) };
        }
    }

    /// Number of waits under way.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn polls(&self) -> u64 {
        self.polls
    }

    /// Begins a wait. EBADF: no descriptor. EPERM: of a sort that is always ready.
    /// Waiters whose descriptor was closed without attune_close are appended to `lost`.
    ///
    /// # Safety
    /// The waiter stays where it is until [`Descriptors::remove`].
    pub unsafe fn add(&mut self, waiter: &Waiter, lost: &mut Vec<ThreadRef>) -> Result<()> {
        let entry = self.entry(waiter.fd).ok_or(Errno(libc::EBADF))?;
        waiter.previous.set(entry.last);
        waiter.next.set(ptr::null());
        if entry.last.is_null() {
            entry.first = waiter;
        } else {
            // SAFETY: linked waiters are alive.
            unsafe { (*entry.last).next.set(waiter) };
        }
        entry.last = waiter;
        waiter.linked.set(true);
        self.waiting += 1;
        let armed = self.arm(waiter.fd);
        match armed {
            Ok(true) => Ok(()),
            // The old registration was of a file that is gone: so is what the others waited for.
            Ok(false) => {
                lost.extend(
                    self.waiters(waiter.fd)
                        .map(|other| other.thread)
                        .filter(|t| *t != waiter.thread),
                );
                Ok(())
            }
            Err(error) => {
                self.remove(waiter);
                Err(error)
            }
        }
    }

    pub fn remove(&mut self, waiter: &Waiter) {
        if !waiter.linked.replace(false) {
            return;
        }
        self.waiting -= 1;
        let (previous, next) = (waiter.previous.get(), waiter.next.get());
        let Some(entry) = self.entry(waiter.fd) else { return };
        // SAFETY: linked waiters are alive.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.set(next),
            None => entry.first = next,
        }
        // SAFETY: as above.
        match unsafe { next.as_ref() } {
            Some(next) => next.previous.set(previous),
            None => entry.last = previous,
        }
    }

    /// Asks the kernel, waiting up to `timeout` nanoseconds (negative: for ever), and appends the
    /// threads whose descriptors are ready or broken. False if the time ran out.
    pub fn poll(&mut self, timeout: i64, ready: &mut Vec<ThreadRef>) -> bool {
        self.polls += 1;
        let count = self.wait(timeout);
        for i in 0..count {
            let event = self.events[i];
            self.report(event.u64 as RawFd, event.events, ready);
        }
        count > 0
    }

    /// Threads that wait for a descriptor, which is about to be closed.
    pub fn forget(&mut self, fd: RawFd) -> Vec<ThreadRef> {
        let threads = self.waiters(fd).map(|waiter| waiter.thread).collect();
        if let Some(entry) = self.entry(fd) {
            entry.registered = false;
            entry.no_socket = false;
        }
        threads
    }

    /// Looks at up to `count` descriptors for ones that were closed without attune_close, and
    /// appends their waiters.
    pub fn sweep(&mut self, count: usize, lost: &mut Vec<ThreadRef>) {
        let mut left = count;
        for _ in 0..self.entries.len() {
            self.cursor = (self.cursor + 1) % self.entries.len();
            if self.entries[self.cursor].first.is_null() {
                continue;
            }
            let fd = self.cursor as RawFd;
            if self.arm(fd) != Ok(true) {
                lost.extend(self.waiters(fd).map(|waiter| waiter.thread));
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }

    /// Whether the descriptor is known to be no socket.
    pub fn is_no_socket(&self, fd: RawFd) -> bool {
        self.entries.get(fd as usize).is_some_and(|entry| entry.no_socket)
    }

    pub fn note_no_socket(&mut self, fd: RawFd) {
        if let Some(entry) = self.entry(fd) {
            entry.no_socket = true;
        }
    }

    fn report(&mut self, fd: RawFd, happened: u32, ready: &mut Vec<ThreadRef>) {
        let broken = happened & (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        let mut left = happened;
        let mut told = 0;
        let before = ready.len();
        for waiter in self.waiters(fd) {
            if waiter.interest & left == 0 && broken == 0 {
                continue;
            }
            if waiter.consumes && broken == 0 {
                left &= !waiter.interest;
            }
            told += 1;
            ready.push(waiter.thread);
        }
        let others = self.waiters(fd).count() > told;
        if others && self.arm(fd) != Ok(true) {
            ready.truncate(before);
            ready.extend(self.waiters(fd).map(|waiter| waiter.thread).collect::<Vec<_>>());
        }
    }

    /// Arms the descriptor for all its waiters. False: it had to be registered anew although it was
    /// registered.
    fn arm(&mut self, fd: RawFd) -> Result<bool> {
        let interest = self.waiters(fd).fold(0, |all, waiter| all | waiter.interest);
        let mut event =
            libc::epoll_event { events: interest | libc::EPOLLONESHOT as u32, u64: fd as u64 };
        let epoll = self.epoll;
        // SAFETY: plain system calls on a valid event.
        let mut control =
            |operation| check(unsafe { libc::epoll_ctl(epoll, operation, fd, &mut event) });
        let Some(entry) = self.entry(fd) else { return Err(Errno(libc::EBADF)) };
        let expected = entry.registered;
        let known = expected && control(libc::EPOLL_CTL_MOD).is_ok();
        if !known {
            entry.registered = false;
            match control(libc::EPOLL_CTL_ADD) {
                Err(Errno(libc::EEXIST)) => control(libc::EPOLL_CTL_MOD)?,
                other => other?,
            };
            entry.registered = true;
        }
        Ok(known || !expected)
    }

    fn waiters(&self, fd: RawFd) -> impl Iterator<Item = &'static Waiter> + use<> {
        let mut next = self.entries.get(fd as usize).map_or(ptr::null(), |entry| entry.first);
        std::iter::from_fn(move || {
            // SAFETY: linked waiters are alive, and callers use them before any thread runs.
            let waiter = unsafe { next.as_ref() }?;
            next = waiter.next.get();
            Some(waiter)
        })
    }

    fn entry(&mut self, fd: RawFd) -> Option<&mut Entry> {
        let place = usize::try_from(fd).ok()?;
        if place >= self.entries.len() {
            // A senseless number costs no memory.
            // SAFETY: asks for the flags of whatever is there.
            check(unsafe { libc::fcntl(fd, libc::F_GETFD) }).ok()?;
            self.entries.resize((place + 1).next_power_of_two(), EMPTY);
        }
        self.entries.get_mut(place)
    }

    /// Number of events in `self.events`.
    fn wait(&mut self, timeout: i64) -> usize {
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
