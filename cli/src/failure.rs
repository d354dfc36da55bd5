//! Why a command stopped, and the exit status that says so.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// A message for the person, complete, and an exit status.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// The scheduler, the workload or the run is wrong: exit status 1. An empty message says that
    /// all was said already.
    pub fn wrong(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: 1 }
    }

    /// The command itself is wrong: exit status 2.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: 2 }
    }

    /// A file cannot be read or written: exit status 2.
    pub fn file(action: &str, path: &Path, error: impl Display) -> Failure {
        Failure::usage(format!("cannot {action} {}: {error}", path.display()))
    }

    /// A command that passes on somebody else's exit status has one of its own for each of its
    /// failures.
    pub fn with_status(message: impl Into<String>, status: u8) -> Failure {
        Failure { message: message.into(), status }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn report(self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("attune: {}", self.message.trim_end());
        }
        ExitCode::from(self.status)
    }
}
