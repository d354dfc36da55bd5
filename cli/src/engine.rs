//! Asking the scheduler that runs in the kernel, over the socket on which `attune run` listens.

use std::io;
use std::time::Duration;

use attune_values::enclosed;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{self, Refusal, Reply, Request};
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// A run that does not answer for this long is treated as gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to the run that listens.
pub struct Engine(Connection);

impl Engine {
    /// The one at [`wire::path`]. Where none listens the exit status is 2.
    pub fn connect() -> Result<Engine, Failure> {
        let path = wire::path();
        Connection::to(&path, PATIENCE).map(Engine).map_err(|error| {
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
        match self.answer(request)? {
            Received::Message(Reply::Done, _) => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Asks for something that is enclosed with the answer.
    pub fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Failure> {
        match self.answer(request)? {
            Received::Message(Reply::Enclosed, Some(memory)) => {
                let text = enclosed::read(memory).map_err(lost)?;
                serde_json::from_slice(&text).map_err(|error| {
                    Failure::wrong(format!(
                        "the run is of another version of Attune, which says other things: {error}"
                    ))
                })
            }
            other => Err(unexpected(other)),
        }
    }

    fn answer(&self, request: &Request) -> Result<Received<Reply>, Failure> {
        self.0.send(request, None).and_then(|()| self.0.receive()).map_err(lost)
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
        Received::Nothing => {
            Failure::wrong(format!("the run has not answered for {} s", PATIENCE.as_secs()))
        }
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
