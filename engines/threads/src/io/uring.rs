//! Readiness, and transfers of files, by io_uring.
//!
//! Only the worker's own OS thread enters the kernel with the ring (SINGLE_ISSUER), and completions
//! are made only then (DEFER_TASKRUN): a worker whose threads run is never interrupted, and a word
//! in memory says whether there is anything to enter for. That needs Linux 6.1.
//!
//! Arming a descriptor writes an entry, which reaches the kernel with the next wait or poll. The
//! kernel keeps the file of an armed descriptor open, and does not notice when its number is closed
//! and used again. So each arming notes which file the number stands for.
//!
//! Invariants: `polls[fd].token` names the one armed poll of fd, 0 none; what reports under another
//! name is out of date. An [`Operation`] and its buffer stay where they are until it has ended.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::mem;
use std::os::fd::RawFd;
use std::ptr;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use super::about::{File, about};
use super::poller::{Report, Watch};
use crate::errno::Result;
use crate::report;
use crate::thread::ThreadRef;

/// Entries that reach the kernel together at most, and reports that it keeps in the ring.
const ENTRIES: u32 = 256;
const REPORTS: u32 = 4096;
/// As in `linux/io_uring.h`.
const ENTER_GETEVENTS: u32 = 1;
/// The kernel moves no more at a time. Bytes.
const MOST_BYTES: usize = 0x7fff_f000;

/// What an entry's number stands for: its two highest bits.
const KIND: u64 = 3 << 62;
const POLL: u64 = 1 << 62;
const WATCH: u64 = 2 << 62;
/// The rest is an [`Operation`]'s address.
const TRANSFER: u64 = 3 << 62;

/// Reported whether asked for or not. io_uring adds EPOLLRDHUP, for which nobody here waits unless
/// it asks.
const BROKEN: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

#[derive(Clone, Copy, Default)]
struct Poll {
    token: u64,
    interest: u32,
    /// The batch of the entry that disarmed it last.
    disarmed: u32,
    /// What the waiters wait for; None: there are none.
    file: Option<File>,
}

/// A transfer under way, for the thread that waits for its end.
pub struct Operation {
    pub thread: ThreadRef,
    /// Bytes, or a negative errno.
    pub result: Cell<Option<i32>>,
}

#[derive(Clone, Copy)]
pub enum Transfer {
    Read { fd: RawFd, buffer: *mut c_void, size: usize, offset: u64 },
    Write { fd: RawFd, buffer: *const c_void, size: usize, offset: u64 },
}

pub struct Uring {
    ring: IoUring,
    /// By descriptor.
    polls: Vec<Poll>,
    /// A descriptor and the token of its poll, 0 if it is to be armed.
    watched: [Option<(RawFd, u64)>; 2],
    /// Which of them have reported.
    rung: [bool; 2],
    /// Transfers that have ended and have not been taken.
    ended: Vec<*const Operation>,
    /// Makes tokens differ.
    tokens: u32,
    /// Counts how often entries went to the kernel.
    batch: u32,
}

impl Uring {
    /// A ring that works; the error says why there is none.
    pub fn new() -> std::result::Result<Uring, &'static CStr> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        builder.setup_submit_all().setup_clamp().setup_cqsize(REPORTS).dontfork();
        let ring = builder.build(ENTRIES).map_err(why)?;
        let polls = Vec::new();
        let (watched, rung, ended) = ([None; 2], [false; 2], Vec::new());
        let mut ring = Uring { ring, polls, watched, rung, ended, tokens: 0, batch: 1 };
        // A filter of system calls may allow to make a ring and not to use it.
        ring.push(opcode::Nop::new().build());
        ring.ring.submit_and_wait(1).map_err(why)?;
        ring.ring.completion().for_each(drop);
        Ok(ring)
    }

    /// As [`super::poller::Poller::arm`].
    pub fn arm(&mut self, fd: RawFd, interest: u32) -> Result<bool> {
        let (file, _) = about(fd)?;
        let place = fd as usize;
        if place >= self.polls.len() {
            self.polls.resize((place + 1).next_power_of_two(), Poll::default());
        }
        let poll = self.polls[place];
        let is_same = poll.file.is_none_or(|before| before == file);
        if poll.token != 0 && is_same && interest & !poll.interest == 0 {
            return Ok(true);
        }
        self.disarm(fd);
        self.add(fd, interest, false);
        self.polls[place].file = Some(file);
        Ok(is_same)
    }

    /// As [`super::poller::Poller::disarm`].
    pub fn disarm(&mut self, fd: RawFd) -> bool {
        let Some(poll) = self.polls.get_mut(fd as usize) else { return false };
        poll.file = None;
        let token = mem::take(&mut poll.token);
        if token != 0 {
            self.cancel_poll(fd, token);
        }
        self.is_held(fd)
    }

    /// Whether the kernel has not heard yet that it is to let the file go.
    fn is_held(&self, fd: RawFd) -> bool {
        self.polls.get(fd as usize).is_some_and(|poll| poll.disarmed == self.batch)
    }

    /// As [`super::poller::Poller::let_go`].
    pub fn let_go(&mut self, fd: RawFd) {
        if self.is_held(fd) {
            self.submit();
        }
    }

    pub fn watch(&mut self, which: Watch, fd: Option<RawFd>) {
        let before = self.watched[which as usize];
        if fd != before.map(|(fd, _)| fd) {
            self.watched[which as usize] = fd.map(|fd| (fd, 0));
            if let Some((_, token)) = before.filter(|(_, token)| *token != 0) {
                self.cancel(token);
            }
        }
    }

    pub fn take_rung(&mut self, which: Watch) -> bool {
        mem::take(&mut self.rung[which as usize])
    }

    /// Begins a transfer.
    ///
    /// # Safety
    /// The operation and the buffer stay where they are until [`Uring::take_ended`] has given the
    /// operation back.
    pub unsafe fn start(&mut self, operation: &Operation, transfer: Transfer) {
        let number = TRANSFER | ptr::from_ref(operation) as u64;
        let length = |size: usize| size.min(MOST_BYTES) as u32;
        let entry = match transfer {
            Transfer::Read { fd, buffer, size, offset } => {
                opcode::Read::new(Fd(fd), buffer.cast(), length(size)).offset(offset).build()
            }
            Transfer::Write { fd, buffer, size, offset } => {
                opcode::Write::new(Fd(fd), buffer.cast(), length(size)).offset(offset).build()
            }
        };
        // A thread of the kernel's does it. The kernel would try first without waiting, and there
        // are file systems that wait all the same: FUSE for its server, others for their journal.
        self.push(entry.flags(Flags::ASYNC).user_data(number));
    }

    pub fn take_ended(&mut self) -> Option<*const Operation> {
        self.ended.pop()
    }

    /// As [`super::poller::Poller::wait`].
    pub fn wait(&mut self, timeout: i64, reports: &mut Vec<Report>) -> bool {
        self.arm_watched();
        match timeout {
            0 if self.is_quiet() => return false,
            0 => self.submit(),
            ..0 => self.enter(|ring| ring.submit_and_wait(1)),
            _ => {
                let time = Timespec::new()
                    .sec((timeout / 1_000_000_000) as u64)
                    .nsec((timeout % 1_000_000_000) as u32);
                self.enter(|ring| {
                    ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
                });
            }
        }
        self.read(reports)
    }

    /// Lets the kernel have all entries, and make the reports that it has work for.
    pub fn submit(&mut self) {
        self.enter(|ring| {
            let count = ring.submission().len() as u32;
            // SAFETY: nothing is handed over but the entries.
            unsafe { ring.submitter().enter::<libc::sigset_t>(count, 0, ENTER_GETEVENTS, None) }
        });
    }

    fn enter(&mut self, enter: impl FnOnce(&mut IoUring) -> std::io::Result<usize>) {
        let entered = enter(&mut self.ring);
        self.batch = self.batch.wrapping_add(1);
        let Err(error) = entered else { return };
        match error.raw_os_error() {
            // The time ran out, a signal came, or there is no memory now: callers come again.
            Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => {}
            _ => report::stuck(&format!(
                "io_uring_enter: {error}; a program that forbids itself system calls must allow \
                 this one, or start with ATTUNE_IO=epoll"
            )),
        }
    }

    /// Whether the kernel need not be entered: it has nothing to say and nothing to hear.
    fn is_quiet(&mut self) -> bool {
        let entries = self.ring.submission();
        let quiet = entries.is_empty() && !entries.taskrun() && !entries.cq_overflow();
        drop(entries);
        quiet && self.ring.completion().is_empty()
    }

    /// Takes what the kernel has written. False: nothing.
    fn read(&mut self, reports: &mut Vec<Report>) -> bool {
        let (mut heard, mut again, mut superfluous) = (false, Vec::new(), Vec::new());
        for done in self.ring.completion() {
            heard = true;
            let (number, result) = (done.user_data(), done.result());
            match number & KIND {
                POLL => {
                    let fd = number as u32 as RawFd;
                    let Some(poll) = self.polls.get_mut(fd as usize) else { continue };
                    if poll.token != number {
                        continue;
                    }
                    // A waiter tries again, and the kernel tells it what is wrong.
                    let happened = u32::try_from(result).unwrap_or(BROKEN);
                    let events = happened & (poll.interest | BROKEN);
                    let stays = cqueue::more(done.flags());
                    if events == 0 {
                        if !stays {
                            again.push((fd, poll.interest));
                        }
                        continue;
                    }
                    poll.token = 0;
                    if stays {
                        superfluous.push((fd, number));
                    }
                    reports.push(Report { fd, events });
                }
                WATCH => {
                    for (watched, rung) in self.watched.iter_mut().zip(&mut self.rung) {
                        let Some((_, token)) = watched.as_mut().filter(|it| it.1 == number) else {
                            continue;
                        };
                        *rung = true;
                        if !cqueue::more(done.flags()) {
                            // The poll has ended, and is armed again.
                            *token = 0;
                        }
                    }
                }
                TRANSFER => {
                    let operation = (number & !KIND) as *const Operation;
                    // SAFETY: it stays where it is until this is taken.
                    unsafe { (*operation).result.set(Some(result)) };
                    self.ended.push(operation);
                }
                _ => {}
            }
        }
        superfluous.into_iter().for_each(|(fd, token)| self.cancel_poll(fd, token));
        // The peer has ended its half, which one report tells at once whenever it is asked for. One
        // that stays is told only when something changes.
        again.into_iter().for_each(|(fd, interest)| self.add(fd, interest, true));
        heard
    }

    fn arm_watched(&mut self) {
        for which in [Watch::Bell as usize, Watch::Cluster as usize] {
            if let Some((fd, 0)) = self.watched[which] {
                let token = self.token(WATCH, fd);
                // It stays, and tells each time that something has come.
                let poll = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32).multi(true);
                self.push(poll.build().user_data(token));
                self.watched[which] = Some((fd, token));
            }
        }
    }

    fn add(&mut self, fd: RawFd, interest: u32, stays: bool) {
        let token = self.token(POLL, fd);
        let poll = opcode::PollAdd::new(Fd(fd), interest).multi(stays);
        self.push(poll.build().user_data(token));
        let poll = &mut self.polls[fd as usize];
        (poll.token, poll.interest) = (token, interest);
    }

    fn cancel_poll(&mut self, fd: RawFd, token: u64) {
        self.cancel(token);
        // Only now: the entry may have had to wait for room.
        self.polls[fd as usize].disarmed = self.batch;
    }

    fn cancel(&mut self, token: u64) {
        let entry = opcode::PollRemove::new(token).build();
        self.push(entry.flags(Flags::SKIP_SUCCESS));
    }

    fn token(&mut self, kind: u64, fd: RawFd) -> u64 {
        self.tokens = self.tokens.wrapping_add(1) & (u32::MAX >> 2);
        kind | u64::from(self.tokens) << 32 | u64::from(fd as u32)
    }

    fn push(&mut self, entry: Entry) {
        // SAFETY: polls refer to no memory, and transfers to what start() was promised.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.submit();
        }
    }
}

fn why(error: std::io::Error) -> &'static CStr {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            c"the system forbids io_uring (kernel.io_uring_disabled, a filter of system calls)"
        }
        Some(libc::ENOSYS) => c"the kernel has no io_uring, or a filter of system calls hides it",
        Some(libc::EINVAL) => c"io_uring needs Linux 6.1",
        Some(libc::ENOMEM) => c"no memory for io_uring (RLIMIT_MEMLOCK, the control group)",
        Some(libc::EMFILE | libc::ENFILE) => c"no descriptor is left for io_uring",
        _ => c"io_uring cannot be set up here",
    }
}
