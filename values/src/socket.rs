//! Packets over a Unix socket (SOCK_SEQPACKET), with a descriptor where one comes along, and who the peer is.
//!
//! The standard library has no such socket yet, so these are the system calls, each once.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::PACKET;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection(OwnedFd);

/// Who is at the other end, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub process: i32,
    pub user: u32,
}

/// What came.
#[derive(Debug)]
pub enum Received<T> {
    Message(T, Option<OwnedFd>),
    /// A packet that is none of our words.
    Garbled,
    /// Nothing, and nothing yet: only from a connection that does not wait.
    Nothing,
    /// The other end is gone.
    Ended,
}

impl Connection {
    /// Connects to whoever listens there. Sending and receiving wait at most `patience`.
    pub fn to(path: &Path, patience: Duration) -> io::Result<Connection> {
        let socket = new_socket(0)?;
        let (address, length) = address(path)?;
        // SAFETY: an address and its length.
        check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        let connection = Connection(socket);
        connection.wait_at_most(patience)?;
        Ok(connection)
    }

    fn wait_at_most(&self, patience: Duration) -> io::Result<()> {
        let time = libc::timeval {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_usec: patience.subsec_micros() as libc::suseconds_t,
        };
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            // SAFETY: the option takes a timeval.
            check(unsafe {
                libc::setsockopt(
                    self.0.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const time).cast(),
                    size_of_val(&time) as libc::socklen_t,
                )
            })?;
        }
        Ok(())
    }

    pub fn peer(&self) -> io::Result<Peer> {
        // SAFETY: plain numbers.
        let mut who: libc::ucred = unsafe { mem::zeroed() };
        let mut length = size_of_val(&who) as libc::socklen_t;
        // SAFETY: the option gives a ucred.
        check(unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut who).cast(),
                &mut length,
            )
        })?;
        Ok(Peer { process: who.pid, user: who.uid })
    }

    /// Sends one message, with a descriptor if there is one.
    pub fn send(&self, message: &impl Serialize, descriptor: Option<BorrowedFd>) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > PACKET {
            let message = format!("a request of {} bytes; it may have {PACKET}", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut space = Space::default();
        // SAFETY: plain numbers and null pointers.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if let Some(descriptor) = descriptor {
            header.msg_control = (&raw mut space).cast();
            header.msg_controllen = size_of_val(&space) as _;
            // SAFETY: the space is large enough and aligned for one descriptor.
            unsafe {
                let control = libc::CMSG_FIRSTHDR(&header);
                (*control).cmsg_level = libc::SOL_SOCKET;
                (*control).cmsg_type = libc::SCM_RIGHTS;
                (*control).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
                libc::CMSG_DATA(control).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
            }
        }
        // SAFETY: everything that the header points to lives.
        let sent = unsafe { libc::sendmsg(self.0.as_raw_fd(), &header, libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next message.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Received<T>> {
        let mut bytes = [0u8; PACKET];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut space = Space::default();
        // SAFETY: plain numbers and null pointers.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut space).cast();
        header.msg_controllen = size_of_val(&space) as _;
        // SAFETY: everything that the header points to lives.
        let count = unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Received::Nothing),
                io::ErrorKind::ConnectionReset => Ok(Received::Ended),
                _ => Err(error),
            };
        }
        let descriptor = received_descriptor(&header);
        if count == 0 {
            return Ok(Received::Ended);
        }
        if header.msg_flags & libc::MSG_TRUNC != 0 {
            return Ok(Received::Garbled);
        }
        Ok(match serde_json::from_slice(&bytes[..count as usize]) {
            Ok(message) => Received::Message(message, descriptor),
            Err(_) => Received::Garbled,
        })
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Waits for connections; the place in the file system is removed in the end.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: std::path::PathBuf,
}

impl Listener {
    /// Anybody may connect: what each may do is decided by who they are. What an engine that died has left at the place is
    /// removed; where one still listens this is `AddrInUse`.
    pub fn at(path: &Path) -> io::Result<Listener> {
        if Connection::to(path, Duration::from_secs(1)).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = new_socket(libc::SOCK_NONBLOCK)?;
        let (address, length) = address(path)?;
        // SAFETY: an address and its length.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        let listener = Listener { socket, path: path.to_owned() };
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(path, everybody)?;
        // SAFETY: a socket of ours.
        check(unsafe { libc::listen(listener.socket.as_raw_fd(), 64) })?;
        Ok(listener)
    }

    /// The next connection, which does not wait either; None if there is none.
    pub fn accept(&self) -> io::Result<Option<Connection>> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no address is asked for.
        let fd = unsafe {
            libc::accept4(self.socket.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags)
        };
        if fd >= 0 {
            // SAFETY: a new descriptor, and ours.
            return Ok(Some(Connection(unsafe { OwnedFd::from_raw_fd(fd) })));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // Whoever it was has gone again, or there is nobody.
            Some(libc::EAGAIN | libc::EINTR | libc::ECONNABORTED) => Ok(None),
            _ => Err(error),
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody may have cleaned up before us.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Room for the control message of one descriptor, aligned as such.
#[repr(C, align(8))]
#[derive(Default)]
struct Space([u8; 32]);

fn received_descriptor(header: &libc::msghdr) -> Option<OwnedFd> {
    // SAFETY: the kernel has filled the header; the room was for one descriptor, so there is no second one to lose.
    unsafe {
        let control = libc::CMSG_FIRSTHDR(header);
        if control.is_null()
            || (*control).cmsg_level != libc::SOL_SOCKET
            || (*control).cmsg_type != libc::SCM_RIGHTS
        {
            return None;
        }
        let room = (*control).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
        let mut found = None;
        for i in 0..room / size_of::<RawFd>() {
            let fd = libc::CMSG_DATA(control).cast::<RawFd>().add(i).read_unaligned();
            // One after the other: what is not wanted is closed.
            found = Some(OwnedFd::from_raw_fd(fd));
        }
        found
    }
}

fn new_socket(flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers; the descriptor is new and ours.
    unsafe {
        let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags, 0);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: plain numbers.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        let message = format!("{}: a socket's path is at most 107 bytes long", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    Ok((address, size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
