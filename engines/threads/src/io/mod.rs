//! Reading, writing, accepting, connecting and polling, where only the calling thread waits.
//!
//! Every operation is tried first, and its thread waits for the descriptor only when the kernel
//! says EAGAIN. Sockets are used with MSG_DONTWAIT: their flags stay as they are, and the engine
//! needs no memory of a descriptor that the program may close and use again. Other descriptors, and
//! sockets that accept or connect, are made O_NONBLOCK before each try. Regular files are read and
//! written by [`files`].
//!
//! Timeouts are relative nanoseconds, negative for none.

mod about;
mod descriptors;
mod epoll;
pub mod files;
pub mod helpers;
mod poller;
pub mod uring;

pub use descriptors::Descriptors;

use std::os::fd::RawFd;

use about::about;

use crate::clock::{self, NEVER};
use crate::engine::Engine;
use crate::errno::{Errno, Result, check};
use crate::preemption::safe_point;
use crate::process::{leave, with};
use crate::remote;
use crate::thread::{Leave, Waiter, WaitsFor};

/// How long a connection waits for room at a local socket's peer, which no descriptor reports.
/// Nanoseconds.
const CONNECT_RETRY: i64 = 1_000_000;

/// A stream operation: on a socket with MSG_DONTWAIT, on a file by a helper, or on anything else
/// made O_NONBLOCK.
pub fn stream(
    fd: RawFd,
    interest: i16,
    timeout: i64,
    mut on_socket: impl FnMut() -> isize,
    mut on_other: impl FnMut() -> isize,
) -> Result<usize> {
    let mut is_socket = with(|engine| !engine.descriptors.is_no_socket(fd))?;
    perform(fd, interest, timeout, || {
        if is_socket {
            match result(on_socket()) {
                Err(Errno(libc::ENOTSOCK)) => {
                    is_socket = false;
                    with(|engine| engine.descriptors.note_no_socket(fd))?;
                }
                other => return other,
            }
        }
        if about(fd)?.1 {
            return files::on_helper(&mut on_other);
        }
        set_nonblocking(fd)?;
        result(on_other())
    })
}

/// An operation of sockets only.
pub fn socket(
    fd: RawFd,
    interest: i16,
    timeout: i64,
    mut attempt: impl FnMut() -> isize,
) -> Result<usize> {
    with(|_| ())?;
    perform(fd, interest, timeout, || result(attempt()))
}

/// `flags` are those of accept4.
///
/// # Safety
/// `address` and `length` are as accept4 wants them.
pub unsafe fn accept(
    fd: RawFd,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
    flags: i32,
    timeout: i64,
) -> Result<RawFd> {
    with(|_| ())?;
    let accepted = perform(fd, libc::POLLIN, timeout, || {
        set_nonblocking(fd)?;
        // SAFETY: the caller's promise.
        result(unsafe { libc::accept4(fd, address, length, flags) } as isize)
    })?;
    let accepted = accepted as RawFd;
    // Forget an earlier descriptor of this number.
    let stale = with(|engine| engine.descriptors.forget(accepted))?;
    with(|engine| engine.fail_waits(stale))?;
    Ok(accepted)
}

/// # Safety
/// `address` points to `length` bytes of a socket's address.
pub unsafe fn connect(
    fd: RawFd,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
    timeout: i64,
) -> Result<()> {
    with(|_| ())?;
    let deadline = clock::deadline(timeout);
    set_nonblocking(fd)?;
    loop {
        // SAFETY: the caller's promise.
        match check(unsafe { libc::connect(fd, address, length) }) {
            Ok(_) => return Ok(()),
            Err(Errno(libc::EINPROGRESS | libc::EINTR | libc::EALREADY)) => break,
            Err(Errno(libc::EAGAIN)) if clock::now() < deadline => {
                sleep_until(clock::now().saturating_add(CONNECT_RETRY).min(deadline))?;
            }
            Err(Errno(libc::EAGAIN)) => return Err(Errno(libc::ETIMEDOUT)),
            Err(error) => return Err(error),
        }
    }
    wait_ready(fd, libc::POLLOUT, deadline)?;
    let mut error: libc::c_int = 0;
    let mut size = size_of_val(&error) as libc::socklen_t;
    // SAFETY: `error` has room for what SO_ERROR gives.
    check(unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut error).cast(), &mut size)
    })?;
    if error == 0 { Ok(()) } else { Err(Errno(error)) }
}

/// Closes the descriptor; threads that wait for it get EBADF.
pub fn close(fd: RawFd) -> Result<()> {
    let fail = |engine: &mut Engine| {
        let waiting = engine.descriptors.forget(fd);
        engine.fail_waits(waiting);
        engine.descriptors.let_go(fd);
    };
    with(fail)?;
    remote::elsewhere(fail)?;
    // Linux closes the descriptor also when it says EINTR.
    // SAFETY: the caller owns the descriptor.
    match check(unsafe { libc::close(fd) }) {
        Ok(_) | Err(Errno(libc::EINTR)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// As poll(2); 0 after the timeout.
pub fn poll(descriptors: &mut [libc::pollfd], timeout: i64) -> Result<usize> {
    safe_point();
    let me = with(|engine| engine.current())?;
    let deadline = clock::deadline(timeout);
    loop {
        let count = descriptors.len() as libc::nfds_t;
        // SAFETY: the slice is valid; a timeout of 0 never blocks.
        match check(unsafe { libc::poll(descriptors.as_mut_ptr(), count, 0) }) {
            Ok(0) => {}
            Ok(ready) => return Ok(ready as usize),
            Err(Errno(libc::EINTR)) => continue,
            Err(error) => return Err(error),
        }
        if clock::now() >= deadline {
            return Ok(0);
        }
        let waiters: Vec<Waiter> = descriptors
            .iter()
            .filter(|wanted| wanted.fd >= 0)
            .map(|wanted| Waiter::new(me, wanted.fd, wanted.events as u16 as u32, false))
            .collect();
        match wait(&waiters, deadline) {
            // poll(2) says what is wrong with a descriptor that has been closed.
            Ok(()) | Err(Errno(libc::EBADF)) => {}
            Err(Errno(libc::ETIMEDOUT)) => return Ok(0),
            Err(error) => return Err(error),
        }
    }
}

/// Waits until a time on the engine's clock; one that has passed is a yield.
pub fn sleep_until(time: i64) -> Result<()> {
    if time <= clock::now() {
        return leave(Leave::Yield);
    }
    with(|engine| engine.prepare_wait(WaitsFor::Time, time))?;
    leave(Leave::Wait)
}

fn perform(
    fd: RawFd,
    interest: i16,
    timeout: i64,
    mut attempt: impl FnMut() -> Result<usize>,
) -> Result<usize> {
    safe_point();
    let mut deadline = None;
    loop {
        match attempt() {
            Err(Errno(libc::EINTR)) => {}
            Err(Errno(libc::EAGAIN)) => {
                let deadline = *deadline.get_or_insert_with(|| clock::deadline(timeout));
                wait_ready(fd, interest, deadline)?;
            }
            other => return other,
        }
    }
}

/// EBADF: closed meanwhile. ETIMEDOUT.
fn wait_ready(fd: RawFd, interest: i16, deadline: i64) -> Result<()> {
    if deadline != NEVER && clock::now() >= deadline {
        return Err(Errno(libc::ETIMEDOUT));
    }
    let me = with(|engine| engine.current())?;
    wait(&[Waiter::new(me, fd, interest as u16 as u32, true)], deadline)
}

/// Waits for one of several descriptors. The waiters lie on the caller's stack, and are out of all
/// lists when this returns.
fn wait(waiters: &[Waiter], deadline: i64) -> Result<()> {
    with(|engine| {
        let mut lost = Vec::new();
        for (i, waiter) in waiters.iter().enumerate() {
            // SAFETY: `waiters` stays where it is until the wait is over, when the engine removes
            // them all.
            if let Err(error) = unsafe { engine.descriptors.add(waiter, &mut lost) } {
                waiters[..i].iter().for_each(|earlier| engine.descriptors.remove(earlier));
                return Err(error);
            }
        }
        engine.current().waiters.set(waiters);
        let first = waiters.first().map_or(-1, |waiter| waiter.fd);
        engine.prepare_wait(WaitsFor::Descriptors(first, waiters.len()), deadline);
        lost.retain(|thread| *thread != engine.current());
        engine.fail_waits(lost);
        Ok(())
    })??;
    leave(Leave::Wait)
}

fn set_nonblocking(fd: RawFd) -> Result<()> {
    // SAFETY: plain system calls.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    if flags & libc::O_NONBLOCK == 0 {
        // SAFETY: as above.
        check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
    }
    Ok(())
}

fn result(count: isize) -> Result<usize> {
    usize::try_from(count).map_err(|_| Errno::last())
}
