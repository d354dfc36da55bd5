//! Threads that wait for descriptors, and the poller behind them.
//!
//! A descriptor is armed for everything that its waiters want whenever a waiter comes, or stays
//! behind after a report. When the poller finds that the number stands for another file by now, its
//! earlier waiters get EBADF.
//!
//! Invariant: `entries[fd]`'s list holds exactly the waiters for fd; a waiter lies on its blocked
//! thread's stack and is unlinked before that thread runs again; `waiting` counts them all, and
//! the transfers under way.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::ptr;

use super::poller::{self, Poller, Report, Watch};
use super::uring::{Operation, Transfer};
use crate::errno::{Errno, Result, check};
use crate::thread::{ThreadRef, Waiter};

#[derive(Clone, Copy)]
struct Entry {
    first: *const Waiter,
    last: *const Waiter,
    /// The last operation on it said ENOTSOCK.
    no_socket: bool,
}

const EMPTY: Entry = Entry { first: ptr::null(), last: ptr::null(), no_socket: false };

pub struct Descriptors {
    poller: Poller,
    /// Why it is not io_uring.
    why: Option<&'static CStr>,
    entries: Vec<Entry>,
    waiting: usize,
    /// Scratch for what descriptors report.
    reports: Vec<Report>,
    /// Where the next sweep goes on.
    cursor: usize,
    polls: u64,
}

impl Descriptors {
    pub fn new() -> Result<Descriptors> {
        let (poller, why) = poller::choose()?;
        Ok(Descriptors {
            poller,
            why,
            entries: Vec::new(),
            waiting: 0,
            reports: Vec::new(),
            cursor: 0,
            polls: 0,
        })
    }

    /// The poller, and why it is not io_uring.
    pub fn poller(&self) -> (&'static CStr, Option<&'static CStr>) {
        (self.poller.name(), self.why)
    }

    /// Lets polls end when this connection to a cluster's manager is readable.
    pub fn watch(&mut self, fd: Option<RawFd>) {
        self.poller.watch(Watch::Cluster, fd);
    }

    /// Whether that connection may have become readable since this was asked last.
    pub fn take_rung(&mut self) -> bool {
        self.poller.take_rung(Watch::Cluster)
    }

    /// Lets polls end when another OS thread rings.
    pub fn watch_bell(&mut self, bell: RawFd) {
        self.poller.watch(Watch::Bell, Some(bell));
    }

    /// Begins a transfer that ends by itself, after which a poll reports its thread. False: the
    /// poller knows none.
    ///
    /// # Safety
    /// The operation and the buffer stay where they are until the operation has a result.
    pub unsafe fn start(&mut self, operation: &Operation, transfer: Transfer) -> bool {
        // SAFETY: the caller's promise; a result is set when the poller gives the operation back.
        let started = unsafe { self.poller.start(operation, transfer) };
        self.waiting += usize::from(started);
        started
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
        // Where nothing waits, nothing polls.
        if entry.first.is_null() && self.poller.disarm(waiter.fd) && self.waiting == 0 {
            self.poller.submit();
        }
    }

    /// Asks the kernel, waiting up to `timeout` nanoseconds (negative: for ever), and appends the
    /// threads whose descriptors are ready or broken. False if the time ran out.
    pub fn poll(&mut self, timeout: i64, ready: &mut Vec<ThreadRef>) -> bool {
        self.polls += 1;
        let mut reports = std::mem::take(&mut self.reports);
        let heard = self.poller.wait(timeout, &mut reports);
        for Report { fd, events } in reports.drain(..) {
            self.report(fd, events, ready);
        }
        self.reports = reports;
        while let Some(operation) = self.poller.take_ended() {
            self.waiting -= 1;
            // SAFETY: its thread has not run since it ended.
            ready.push(unsafe { (*operation).thread });
        }
        heard
    }

    /// Threads that wait for a descriptor, which is about to be closed.
    pub fn forget(&mut self, fd: RawFd) -> Vec<ThreadRef> {
        let threads = self.waiters(fd).map(|waiter| waiter.thread).collect();
        self.poller.forget(fd);
        if let Some(entry) = self.entry(fd) {
            entry.no_socket = false;
        }
        threads
    }

    /// Makes sure that closing a descriptor, for which no thread waits, closes its file.
    pub fn let_go(&mut self, fd: RawFd) {
        self.poller.let_go(fd);
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

    /// Arms the descriptor for all its waiters. False: earlier ones waited for another file.
    fn arm(&mut self, fd: RawFd) -> Result<bool> {
        let interest = self.waiters(fd).fold(0, |all, waiter| all | waiter.interest);
        self.poller.arm(fd, interest)
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
}
