//! The messages of [`crate::wire`] over a Unix socket, as JSON, one packet each.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use attune_linux::{process, socket};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::{PACKET, door};

pub use attune_linux::socket::Credentials;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection(socket::Connection);

/// What came.
#[derive(Debug)]
pub enum Received<T> {
    Message(T, Option<OwnedFd>),
    /// A packet that is no message.
    Garbled,
    /// Nothing, and nothing yet: only from a connection that does not wait.
    Nothing,
    /// The other end is gone.
    Ended,
}

impl Connection {
    /// Connects to the engine that listens there: at the door of the calling user, if there is one.
    /// Sending and receiving wait at most `patience`.
    pub fn to(path: &Path, patience: Duration) -> io::Result<Connection> {
        let door = door(path, process::effective_user());
        match socket::Connection::to(&door, patience) {
            // The user's own connections have filled the queue.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            // There is none, its engine has ended, or the number means another user out there.
            Err(_) => Connection::at(path, patience),
            Ok(connection) => Ok(Connection(connection)),
        }
    }

    /// The same at the place itself, where all users' connections wait for each other.
    pub fn at(path: &Path, patience: Duration) -> io::Result<Connection> {
        socket::Connection::to(path, patience).map(Connection)
    }

    pub fn peer(&self) -> io::Result<Credentials> {
        self.0.peer()
    }

    /// Sends one message, with a descriptor if there is one.
    pub fn send(&self, message: &impl Serialize, descriptor: Option<BorrowedFd>) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > PACKET {
            let message = format!(
                "a request of {} bytes, and at most {PACKET} are taken: send several",
                bytes.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.0.send(&bytes, descriptor)
    }

    /// The next message.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Received<T>> {
        let mut bytes = [0u8; PACKET];
        Ok(match self.0.receive(&mut bytes)? {
            socket::Received::Packet(length, descriptor) => {
                match serde_json::from_slice(&bytes[..length]) {
                    Ok(message) => Received::Message(message, descriptor),
                    Err(_) => Received::Garbled,
                }
            }
            socket::Received::TooLong => Received::Garbled,
            socket::Received::Nothing => Received::Nothing,
            socket::Received::Ended => Received::Ended,
        })
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits for connections; its place in the file system is removed in the end.
#[derive(Debug)]
pub struct Listener(socket::Listener);

impl Listener {
    /// See [`socket::Listener::at`].
    pub fn at(path: &Path) -> io::Result<Listener> {
        socket::Listener::at(path).map(Listener)
    }

    /// See [`socket::Listener::for_user`].
    pub fn for_user(path: &Path, user: u32) -> io::Result<Listener> {
        socket::Listener::for_user(&door(path, user), user).map(Listener)
    }

    /// The next connection, which does not wait; None: there is none now.
    pub fn accept(&self) -> io::Result<Option<Connection>> {
        Ok(self.0.accept()?.map(Connection))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
