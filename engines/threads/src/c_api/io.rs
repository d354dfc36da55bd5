//! Descriptors. The functions without a timeout are those with one that never ends.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use libc::{POLLIN, POLLOUT, iovec, msghdr, pollfd, size_t, sockaddr, socklen_t, ssize_t};

use super::{posix, status};
use crate::clock::FOREVER;
use crate::errno::{Errno, Result};
use crate::io::{self, files};
use crate::process::with;

fn count(f: impl FnOnce() -> Result<usize>) -> ssize_t {
    posix(-1, || f().map(|n| n as ssize_t))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_read(fd: c_int, buffer: *mut c_void, size: size_t) -> ssize_t {
    // SAFETY: the caller's buffer.
    unsafe { attune_read_timed(fd, buffer, size, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_read_timed(
    fd: c_int,
    buffer: *mut c_void,
    size: size_t,
    timeout: i64,
) -> ssize_t {
    // SAFETY: the caller's buffer has room for `size` bytes.
    let (recv, read) = unsafe {
        (|| libc::recv(fd, buffer, size, libc::MSG_DONTWAIT), || libc::read(fd, buffer, size))
    };
    // Reading nothing asks only whether the descriptor is good, which never waits.
    if size == 0 { read() } else { count(|| io::stream(fd, POLLIN, timeout, recv, read)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_write(fd: c_int, buffer: *const c_void, size: size_t) -> ssize_t {
    // SAFETY: the caller's buffer.
    unsafe { attune_write_timed(fd, buffer, size, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_write_timed(
    fd: c_int,
    buffer: *const c_void,
    size: size_t,
    timeout: i64,
) -> ssize_t {
    // SAFETY: the caller's buffer holds `size` bytes.
    let (send, write) = unsafe {
        (|| libc::send(fd, buffer, size, libc::MSG_DONTWAIT), || libc::write(fd, buffer, size))
    };
    count(|| io::stream(fd, POLLOUT, timeout, send, write))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_readv(fd: c_int, parts: *const iovec, number: c_int) -> ssize_t {
    // SAFETY: the caller's parts.
    unsafe { attune_readv_timed(fd, parts, number, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_readv_timed(
    fd: c_int,
    parts: *const iovec,
    number: c_int,
    timeout: i64,
) -> ssize_t {
    let mut message = message(parts, number);
    // SAFETY: the caller's parts; the message lives as long as the closures.
    let (recv, read) = unsafe {
        (|| libc::recvmsg(fd, &mut message, libc::MSG_DONTWAIT), || libc::readv(fd, parts, number))
    };
    count(|| io::stream(fd, POLLIN, timeout, recv, read))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_writev(fd: c_int, parts: *const iovec, number: c_int) -> ssize_t {
    // SAFETY: the caller's parts.
    unsafe { attune_writev_timed(fd, parts, number, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_writev_timed(
    fd: c_int,
    parts: *const iovec,
    number: c_int,
    timeout: i64,
) -> ssize_t {
    let message = message(parts, number);
    // SAFETY: as for readv.
    let (send, write) = unsafe {
        (|| libc::sendmsg(fd, &message, libc::MSG_DONTWAIT), || libc::writev(fd, parts, number))
    };
    count(|| io::stream(fd, POLLOUT, timeout, send, write))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_pread(
    fd: c_int,
    buffer: *mut c_void,
    size: size_t,
    offset: i64,
) -> ssize_t {
    // SAFETY: the caller's buffer has room for `size` bytes.
    count(|| unsafe { files::pread(fd, buffer, size, offset) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_pwrite(
    fd: c_int,
    buffer: *const c_void,
    size: size_t,
    offset: i64,
) -> ssize_t {
    // SAFETY: the caller's buffer holds `size` bytes.
    count(|| unsafe { files::pwrite(fd, buffer, size, offset) })
}

/// What C hands over, for another OS thread.
struct Handed(*mut c_void);

// SAFETY: the header tells the program that another OS thread gets it.
unsafe impl Send for Handed {}

impl Handed {
    /// A closure that calls this gets the whole, and so may go to another OS thread.
    fn take(self) -> *mut c_void {
        self.0
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn attune_blocking(
    function: Option<extern "C-unwind" fn(*mut c_void) -> *mut c_void>,
    argument: *mut c_void,
    result: *mut *mut c_void,
) -> c_int {
    status(|| {
        let function = function.ok_or(Errno(libc::EINVAL))?;
        let argument = Handed(argument);
        let returned = files::blocking(move || Handed(function(argument.take())))?;
        if !result.is_null() {
            // SAFETY: a place for the result.
            unsafe { result.write(returned.take()) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_io(why: *mut *const c_char) -> *const c_char {
    posix(ptr::null(), || {
        let (name, reason) = with(|engine| engine.descriptors.poller())?;
        if !why.is_null() {
            // SAFETY: a place for the text.
            unsafe { why.write(reason.map_or(ptr::null(), |reason| reason.as_ptr())) };
        }
        Ok(name.as_ptr())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_recv(
    fd: c_int,
    buffer: *mut c_void,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's buffer.
    unsafe { attune_recv_timed(fd, buffer, size, flags, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_recv_timed(
    fd: c_int,
    buffer: *mut c_void,
    size: size_t,
    flags: c_int,
    timeout: i64,
) -> ssize_t {
    // SAFETY: the caller's buffer has room for `size` bytes.
    let recv = || unsafe { libc::recv(fd, buffer, size, flags | libc::MSG_DONTWAIT) };
    count(|| io::socket(fd, POLLIN, timeout, recv))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_send(
    fd: c_int,
    buffer: *const c_void,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's buffer.
    unsafe { attune_send_timed(fd, buffer, size, flags, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_send_timed(
    fd: c_int,
    buffer: *const c_void,
    size: size_t,
    flags: c_int,
    timeout: i64,
) -> ssize_t {
    // SAFETY: the caller's buffer holds `size` bytes.
    let send = || unsafe { libc::send(fd, buffer, size, flags | libc::MSG_DONTWAIT) };
    count(|| io::socket(fd, POLLOUT, timeout, send))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's message.
    unsafe { attune_recvmsg_timed(fd, message, flags, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_recvmsg_timed(
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
    timeout: i64,
) -> ssize_t {
    // SAFETY: the caller's message, whose parts have room.
    let recvmsg = || unsafe { libc::recvmsg(fd, message, flags | libc::MSG_DONTWAIT) };
    count(|| io::socket(fd, POLLIN, timeout, recvmsg))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's message.
    unsafe { attune_sendmsg_timed(fd, message, flags, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_sendmsg_timed(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
    timeout: i64,
) -> ssize_t {
    // SAFETY: the caller's message.
    let sendmsg = || unsafe { libc::sendmsg(fd, message, flags | libc::MSG_DONTWAIT) };
    count(|| io::socket(fd, POLLOUT, timeout, sendmsg))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_accept(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's address.
    unsafe { attune_accept_timed(fd, address, length, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_accept_timed(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    timeout: i64,
) -> c_int {
    // SAFETY: the caller's address.
    unsafe { attune_accept4_timed(fd, address, length, libc::SOCK_NONBLOCK, timeout) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_accept4_timed(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
    timeout: i64,
) -> c_int {
    // SAFETY: the caller's address.
    posix(-1, || unsafe { io::accept(fd, address, length, flags, timeout) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_connect(
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller's address.
    unsafe { attune_connect_timed(fd, address, length, FOREVER) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_connect_timed(
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
    timeout: i64,
) -> c_int {
    // SAFETY: the caller's address.
    status(|| unsafe { io::connect(fd, address, length, timeout) })
}

#[unsafe(no_mangle)]
extern "C" fn attune_close(fd: c_int) -> c_int {
    status(|| io::close(fd))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_poll(
    descriptors: *mut pollfd,
    number: libc::nfds_t,
    timeout: i64,
) -> c_int {
    posix(-1, || {
        let descriptors = match usize::try_from(number) {
            Ok(0) => &mut [],
            _ if descriptors.is_null() => return Err(Errno(libc::EFAULT)),
            // SAFETY: the caller's descriptors.
            Ok(number) => unsafe { std::slice::from_raw_parts_mut(descriptors, number) },
            Err(_) => return Err(Errno(libc::EINVAL)),
        };
        io::poll(descriptors, timeout).map(|ready| ready as c_int)
    })
}

fn message(parts: *const iovec, number: c_int) -> msghdr {
    // SAFETY: all-zero bytes are an empty message.
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.cast_mut();
    message.msg_iovlen = usize::try_from(number).unwrap_or(usize::MAX) as _;
    message
}
