//! Packets over a Unix socket (SOCK_SEQPACKET), with a descriptor where one comes along, and the
//! kernel's word for the peer.
//!
//! The standard library has no such socket; for streams and datagrams it has, and
//! [`credentials`] works with those too.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recvmsg, sendmsg, socket_with,
};

/// The process at the other end of a socket when it connected, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// 0: it lives in a PID namespace whose processes have no number here.
    pub process: u32,
    pub user: u32,
    pub group: u32,
}

/// The peer of a connected Unix socket of any kind (SO_PEERCRED).
pub fn credentials(socket: impl AsFd) -> io::Result<Credentials> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `peer`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Credentials { process: peer.pid as u32, user: peer.uid, group: peer.gid })
}

/// One end of a connection that keeps packets apart.
#[derive(Debug)]
pub struct Connection(OwnedFd);

/// What came.
#[derive(Debug)]
pub enum Received {
    /// So many bytes, and the first descriptor that came along.
    Packet(usize, Option<OwnedFd>),
    /// A packet that is longer than the room for it.
    TooLong,
    /// Nothing, and nothing yet: from a connection that does not wait, or no longer.
    Nothing,
    /// The other end is gone.
    Ended,
}

impl Connection {
    /// Connects to the process that listens there. Connecting, sending and receiving wait at most
    /// `patience` each (`WouldBlock`: in vain); 0: without end.
    pub fn to(path: &Path, patience: Duration) -> io::Result<Connection> {
        let socket = new_socket(SocketFlags::empty())?;
        let patience = Some(patience).filter(|patience| !patience.is_zero());
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, patience)?;
        }
        connect(&socket, &address(path)?)?;
        Ok(Connection(socket))
    }

    /// As [`Connection::to`], but neither connecting nor sending nor receiving ever waits.
    /// `WouldBlock`: too many others wait to be accepted there.
    pub fn at_once(path: &Path) -> io::Result<Connection> {
        let socket = new_socket(SocketFlags::NONBLOCK)?;
        connect(&socket, &address(path)?)?;
        Ok(Connection(socket))
    }

    pub fn peer(&self) -> io::Result<Credentials> {
        credentials(self)
    }

    /// Sends one packet, with a descriptor if there is one.
    pub fn send(&self, bytes: &[u8], descriptor: Option<BorrowedFd>) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut along = SendAncillaryBuffer::new(&mut room);
        let descriptors: Vec<BorrowedFd> = descriptor.into_iter().collect();
        if !descriptors.is_empty() {
            along.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut along, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next packet, into `bytes`. A packet without bytes cannot be told from the end. What the
    /// other end said before it closed comes before [`Received::Ended`].
    pub fn receive(&self, bytes: &mut [u8]) -> io::Result<Received> {
        match self.receive_once(bytes) {
            // It closed without reading all. The kernel tells that first, and once.
            Err(Errno::CONNRESET) => match self.receive_once(bytes) {
                Err(Errno::CONNRESET) => Ok(Received::Ended),
                received => Ok(received?),
            },
            received => Ok(received?),
        }
    }

    fn receive_once(&self, bytes: &mut [u8]) -> Result<Received, Errno> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut along = RecvAncillaryBuffer::new(&mut room);
        let mut part = [IoSliceMut::new(bytes)];
        let packet = match recvmsg(&self.0, &mut part, &mut along, RecvFlags::CMSG_CLOEXEC) {
            Ok(packet) => packet,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::Nothing),
            Err(error) => return Err(error),
        };
        let mut descriptor = None;
        for message in along.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                // All others are closed here.
                for other in descriptors {
                    descriptor.get_or_insert(other);
                }
            }
        }
        Ok(match packet.bytes {
            0 => Received::Ended,
            _ if packet.flags.contains(ReturnFlags::TRUNC) => Received::TooLong,
            length => Received::Packet(length, descriptor),
        })
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One that came along in a packet.
impl From<OwnedFd> for Connection {
    fn from(socket: OwnedFd) -> Connection {
        Connection(socket)
    }
}

/// Connections that wait to be accepted.
const QUEUE: i32 = 64;

/// Waits for connections; its place in the file system is removed in the end.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Every user may connect; what each may do is decided by its [`credentials`]. A socket that a
    /// dead process left at the place is removed; `AddrInUse`: a living one listens there.
    pub fn at(path: &Path) -> io::Result<Listener> {
        if Connection::to(path, Duration::from_secs(1)).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let listener = Listener::bound(path)?;
        listen(&listener.socket, QUEUE)?;
        // Last, so that a process that watches the place (`watch`) can connect when it hears of it.
        let every_user = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(path, every_user)?;
        Ok(listener)
    }

    /// That user alone may connect, and root. Whatever is at the place is removed. Only root may
    /// make one for another user.
    pub fn for_user(path: &Path, user: u32) -> io::Result<Listener> {
        let listener = Listener::bound(path)?;
        let its_user = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(path, its_user)?;
        std::os::unix::fs::lchown(path, Some(user), None)?;
        // Nobody has connected before.
        listen(&listener.socket, QUEUE)?;
        Ok(listener)
    }

    fn bound(path: &Path) -> io::Result<Listener> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = new_socket(SocketFlags::NONBLOCK)?;
        bind(&socket, &address(path)?)?;
        Ok(Listener { socket, path: path.to_owned() })
    }

    /// The next connection, which does not wait; None: there is none now.
    pub fn accept(&self) -> io::Result<Option<Connection>> {
        match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => Ok(Some(Connection(socket))),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another process may have removed it before us.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn new_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

fn address(path: &Path) -> io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|error| match error {
        Errno::NAMETOOLONG => {
            let length = path.as_os_str().len();
            let message = format!(
                "{} is {length} bytes long, and a socket's path has at most 107: choose a shorter \
                 one",
                path.display()
            );
            io::Error::new(io::ErrorKind::InvalidInput, message)
        }
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;
    use crate::poll::is_readable;

    fn pair(folder: &Path) -> (Listener, Connection, Connection) {
        let listener = Listener::at(&folder.join("socket")).unwrap();
        let client = Connection::to(&folder.join("socket"), Duration::from_secs(60)).unwrap();
        let server = listener.accept().unwrap().unwrap();
        (listener, client, server)
    }

    #[test]
    fn packets_stay_apart_and_carry_a_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let (_listener, client, server) = pair(folder.path());
        let mut room = [0u8; 16];
        assert!(matches!(server.receive(&mut room).unwrap(), Received::Nothing));
        let memory = memory::sealed("test", b"enclosed").unwrap();
        client.send(b"one", None).unwrap();
        client.send(b"another", Some(memory.as_fd())).unwrap();
        assert!(matches!(server.receive(&mut room).unwrap(), Received::Packet(3, None)));
        let Received::Packet(7, Some(enclosed)) = server.receive(&mut room).unwrap() else {
            panic!("no packet of seven bytes with a descriptor");
        };
        assert_eq!(&room[..7], b"another");
        assert_eq!(std::fs::File::from(enclosed).metadata().unwrap().len(), 8);
        client.send(&[1; 17], None).unwrap();
        assert!(matches!(server.receive(&mut room).unwrap(), Received::TooLong));
        drop(client);
        assert!(matches!(server.receive(&mut room).unwrap(), Received::Ended));
    }

    #[test]
    fn the_kernel_says_who_the_peer_is() {
        let folder = tempfile::tempdir().unwrap();
        let (listener, client, server) = pair(folder.path());
        let us = (std::process::id(), crate::process::effective_user());
        for end in [&client, &server] {
            let peer = end.peer().unwrap();
            assert_eq!((peer.process, peer.user), us);
        }
        assert!(!is_readable(&listener).unwrap());
    }

    #[test]
    fn a_living_listener_keeps_its_place_and_a_dead_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = Listener::at(&path).unwrap();
        assert_eq!(Listener::at(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists());
        let left = new_socket(SocketFlags::empty()).unwrap();
        bind(&left, &address(&path).unwrap()).unwrap();
        drop(left);
        assert!(path.exists());
        Listener::at(&path).unwrap();
    }

    #[test]
    fn a_path_that_is_too_long_is_told_with_its_limit() {
        let path = Path::new("/tmp").join("x".repeat(200));
        let message = Connection::to(&path, Duration::ZERO).unwrap_err().to_string();
        assert!(message.contains("107") && message.contains("shorter"), "{message}");
    }
}
