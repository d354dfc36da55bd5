//! Descriptors and TCP, where only the calling thread waits.
//!
//! The functions take any descriptor; [`TcpListener`] and [`TcpStream`] wrap std's sockets so that
//! code written against `std::io::{Read, Write}` runs on the engine's threads.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;
use std::{net, ptr};

use super::nanoseconds;
use crate::clock::FOREVER;
use crate::io as core;

/// None never ends.
fn timeout(timeout: Option<Duration>) -> i64 {
    timeout.map_or(FOREVER, nanoseconds)
}

/// As read(2). ETIMEDOUT; EBADF: closed meanwhile.
pub fn read(fd: BorrowedFd, buffer: &mut [u8], limit: Option<Duration>) -> io::Result<usize> {
    let (fd, start, size) = (fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the buffer is the caller's for as long as this runs.
    let (recv, plain) = unsafe {
        (|| libc::recv(fd, start, size, libc::MSG_DONTWAIT), || libc::read(fd, start, size))
    };
    if size == 0 {
        return Ok(0);
    }
    Ok(core::stream(fd, libc::POLLIN, timeout(limit), recv, plain)?)
}

/// As write(2), but a broken connection is EPIPE without a signal. ETIMEDOUT; EBADF: closed
/// meanwhile.
pub fn write(fd: BorrowedFd, buffer: &[u8], limit: Option<Duration>) -> io::Result<usize> {
    let (fd, start, size) = (fd.as_raw_fd(), buffer.as_ptr().cast(), buffer.len());
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: as for read.
    let (send, plain) =
        unsafe { (|| libc::send(fd, start, size, flags), || libc::write(fd, start, size)) };
    Ok(core::stream(fd, libc::POLLOUT, timeout(limit), send, plain)?)
}

/// As poll(2): the number of descriptors with something in `revents`, 0 after the time.
pub fn poll(descriptors: &mut [libc::pollfd], limit: Option<Duration>) -> io::Result<usize> {
    Ok(core::poll(descriptors, timeout(limit))?)
}

/// Closes a descriptor; threads that wait for it get EBADF at once.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    Ok(core::close(fd.into_raw_fd())?)
}

/// A listening socket.
#[derive(Debug)]
pub struct TcpListener(net::TcpListener);

impl TcpListener {
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
        net::TcpListener::bind(address).map(TcpListener)
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    pub fn accept(&self) -> io::Result<TcpStream> {
        self.accept_timeout(None)
    }

    /// ETIMEDOUT.
    pub fn accept_timeout(&self, limit: Option<Duration>) -> io::Result<TcpStream> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let (fd, none) = (self.0.as_raw_fd(), ptr::null_mut());
        // SAFETY: no address is asked for; the new descriptor is nobody else's.
        unsafe {
            let accepted = core::accept(fd, none, ptr::null_mut(), flags, timeout(limit))?;
            Ok(TcpStream::from(OwnedFd::from_raw_fd(accepted)))
        }
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A connection.
#[derive(Debug)]
pub struct TcpStream {
    socket: net::TcpStream,
    limit: Option<Duration>,
}

impl TcpStream {
    /// Connects to the first of the addresses that answers; finding addresses by name blocks all
    /// threads.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
        let mut last = io::Error::from_raw_os_error(libc::EADDRNOTAVAIL);
        for address in address.to_socket_addrs()? {
            match connect_one(&address) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// How long a read or a write may take; None: for ever.
    pub fn set_timeout(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// The socket itself, for its options.
    pub fn socket(&self) -> &net::TcpStream {
        &self.socket
    }
}

impl From<OwnedFd> for TcpStream {
    fn from(fd: OwnedFd) -> TcpStream {
        TcpStream { socket: fd.into(), limit: None }
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read(self.socket.as_fd(), buffer, self.limit)
    }
}

impl Write for TcpStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        write(self.socket.as_fd(), buffer, self.limit)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn connect_one(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: a fresh descriptor, nobody else's.
    let fd = unsafe {
        let fd = libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let connect = |address: *const libc::sockaddr, size: usize| {
        // SAFETY: the address is one of `size` bytes.
        unsafe { core::connect(fd.as_raw_fd(), address, size as libc::socklen_t, FOREVER) }
    };
    match address {
        SocketAddr::V4(v4) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            connect((&raw const address).cast(), size_of_val(&address))?;
        }
        SocketAddr::V6(v6) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            connect((&raw const address).cast(), size_of_val(&address))?;
        }
    }
    Ok(TcpStream::from(fd))
}
