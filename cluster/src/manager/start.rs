//! What a manager starts from, and why it may not start.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use attune_language::Cluster;
use attune_language::source::SourceMap;

use crate::master::MasterError;

/// What a master is made from.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    pub cluster: &'a Cluster,
    pub sources: &'a SourceMap,
    /// The seed of the master's random numbers.
    pub seed: u64,
}

/// Why a manager cannot be.
#[derive(Debug)]
pub enum Error {
    /// Another manager has the name.
    Taken,
    /// Something cannot be done at that place.
    Place(&'static str, PathBuf, io::Error),
    Master(MasterError),
    /// The database that managers share cannot be used.
    Database(io::Error),
    /// Managers of another version of the texts, or with other first values, share the state.
    Version {
        ours: String,
        theirs: String,
    },
}

impl From<MasterError> for Error {
    fn from(error: MasterError) -> Error {
        Error::Master(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Taken => f.write_str("another manager of that name runs"),
            Error::Place(what, path, error) => {
                write!(f, "cannot {what} {}: {error}", path.display())
            }
            Error::Master(error) => error.fmt(f),
            Error::Database(error) => write!(f, "cannot share the master's state: {error}"),
            Error::Version { ours, theirs } if ours == theirs => f.write_str(
                "the cluster's other managers have other first values (`--set`): start this one \
                 with the same",
            ),
            Error::Version { ours, theirs } => write!(
                f,
                "the cluster's other managers run another version of the scheduler: theirs is \
                 {theirs}, this one's {ours}; end them, or start this one from their text"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// Where a manager keeps its state that listens at `path`.
pub fn kept_beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".state");
    PathBuf::from(beside)
}

pub fn unless_taken(what: &'static str, path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => Error::Taken,
        _ => Error::Place(what, path.to_owned(), error),
    }
}
