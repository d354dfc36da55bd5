//! A descriptor that a blocked thread waits for: a link of the descriptor's list of waiters.
//!
//! Invariant: it lies on the blocked thread's stack, and `linked` says whether a list holds it.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::ptr;

use super::ThreadRef;

/// One descriptor that a blocked thread waits for.
pub struct Waiter {
    pub thread: ThreadRef,
    pub fd: RawFd,
    /// EPOLLIN, EPOLLOUT and their like, which are also poll's numbers.
    pub interest: u32,
    /// Whether the thread uses up what is reported: one report wakes only the first of several
    /// readers.
    pub consumes: bool,
    pub(crate) linked: Cell<bool>,
    pub(crate) previous: Cell<*const Waiter>,
    pub(crate) next: Cell<*const Waiter>,
}

impl Waiter {
    pub fn new(thread: ThreadRef, fd: RawFd, interest: u32, consumes: bool) -> Waiter {
        let none = || Cell::new(ptr::null());
        Waiter {
            thread,
            fd,
            interest,
            consumes,
            linked: Cell::new(false),
            previous: none(),
            next: none(),
        }
    }
}
