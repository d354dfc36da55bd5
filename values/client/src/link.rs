//! The connection to an engine: one question, one answer.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use attune_values::socket::{Connection, Received};
use attune_values::wire::{self, Import, Refusal, Reply, Request};

use crate::error::Error;

/// An engine that does not answer for so long is treated as gone.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Link {
    connection: Connection,
    pub scheduler: String,
    pub imports: Vec<Import>,
}

/// An engine's answer to a request.
pub enum Answer {
    Done,
    Refused(Refusal, String),
}

impl Link {
    /// The engine and the page that it gives us; an error where there is none, or none of our
    /// protocol's version; `Full`: it has no page left.
    pub fn open() -> Result<(Link, OwnedFd), Error> {
        let connection = Connection::to(&wire::path(), PATIENCE)?;
        connection.send(&Request::Hello { version: wire::VERSION }, None)?;
        match connection.receive()? {
            Received::Message(Reply::Welcome { scheduler, imports }, Some(page)) => {
                Ok((Link { connection, scheduler, imports }, page))
            }
            Received::Message(Reply::Refused { why: Refusal::Full, message }, _) => {
                Err(Error::Full(message))
            }
            Received::Message(Reply::Refused { message, .. }, _) => {
                Err(io::Error::other(message).into())
            }
            _ => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        }
    }

    pub fn ask(&self, request: &Request) -> io::Result<Answer> {
        self.connection.send(request, None)?;
        match self.connection.receive()? {
            Received::Message(Reply::Done, _) => Ok(Answer::Done),
            Received::Message(Reply::Refused { why, message }, _) => {
                Ok(Answer::Refused(why, message))
            }
            Received::Nothing => Err(io::ErrorKind::TimedOut.into()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    pub fn default_of(&self, name: &str) -> Option<i64> {
        self.imports.iter().find(|import| import.name == name).map(|import| import.default)
    }
}

impl AsRawFd for Link {
    fn as_raw_fd(&self) -> RawFd {
        self.connection.as_fd().as_raw_fd()
    }
}
