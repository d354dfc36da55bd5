//! Asking the scheduler that runs in the kernel, over the socket on which `attune run` listens.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use attune_values::enclosed;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{self, Refusal, Reply, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// A run that does not answer for this long is treated as gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same where much is asked at once.
pub const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the run that listens.
pub struct Engine {
    connection: Connection,
    patience: Duration,
}

impl Engine {
    /// The one at [`wire::path`]. Where none listens the exit status is 2.
    pub fn connect() -> Result<Engine, Failure> {
        Engine::connect_for(PATIENCE)
    }

    /// The same, for answers that may take so long.
    pub fn connect_for(patience: Duration) -> Result<Engine, Failure> {
        let path = wire::path();
        let connected = Connection::to(&path, patience);
        connected.map(|connection| Engine { connection, patience }).map_err(|error| {
            let (path, variable) = (path.display(), wire::PATH_VARIABLE);
            Failure::usage(match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => format!(
                    "no scheduler runs in the kernel: none listens at {path}. `attune run` starts \
                        one; if it was told another place, say {variable}=PLACE here too"
                ),
                _ => format!("cannot reach the scheduler in the kernel at {path}: {error}"),
            })
        })
    }

    /// Has something done. Exit status 1: the engine refuses it, or has ended.
    pub fn tell(&self, request: &Request) -> Result<(), Failure> {
        match self.answer(request, None)? {
            Received::Message(Reply::Done, _) => Ok(()),
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks for something that is enclosed with the answer.
    pub fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Failure> {
        self.asked(request, None)
    }

    /// The same, with a text that is enclosed with the question.
    pub fn ask_about<T: DeserializeOwned>(
        &self,
        request: &Request,
        text: &impl Serialize,
    ) -> Result<T, Failure> {
        let text = serde_json::to_vec(text).map_err(|error| lost(error.into()))?;
        self.asked(request, Some(enclosed::enclose(&text).map_err(lost)?))
    }

    fn asked<T: DeserializeOwned>(
        &self,
        request: &Request,
        enclosed: Option<OwnedFd>,
    ) -> Result<T, Failure> {
        match self.answer(request, enclosed)? {
            Received::Message(Reply::Enclosed, Some(memory)) => {
                let text = enclosed::read(memory).map_err(lost)?;
                serde_json::from_slice(&text).map_err(|error| {
                    Failure::wrong(format!(
                        "the run is of another version of Attune, which says other things: {error}"
                    ))
                })
            }
            other => Err(self.unexpected(other)),
        }
    }

    fn answer(
        &self,
        request: &Request,
        enclosed: Option<OwnedFd>,
    ) -> Result<Received<Reply>, Failure> {
        let enclosed = enclosed.as_ref().map(AsFd::as_fd);
        self.connection
            .send(request, enclosed)
            .and_then(|()| self.connection.receive())
            .map_err(lost)
    }

    fn unexpected(&self, received: Received<Reply>) -> Failure {
        match received {
            Received::Nothing => {
                let waited = self.patience.as_secs();
                Failure::wrong(format!("the run has not answered for {waited} s"))
            }
            other => unexpected(other),
        }
    }
}

fn unexpected(received: Received<Reply>) -> Failure {
    match received {
        Received::Message(Reply::Refused { why: Refusal::Garbled, message }, _) => {
            Failure::wrong(format!(
                "the run does not know this request ({message}): it is of another version of Attune"
            ))
        }
        Received::Message(Reply::Refused { message, .. }, _) => Failure::wrong(message),
        Received::Ended => Failure::wrong("the run has ended"),
        _ => Failure::wrong("the run answers in words of another version of Attune"),
    }
}

fn lost(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => unexpected(Received::Ended),
        io::ErrorKind::InvalidInput => Failure::usage(error.to_string()),
        _ => Failure::wrong(format!("the run does not answer: {error}")),
    }
}
