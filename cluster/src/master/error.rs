//! Why a master cannot run, in words.

use std::fmt;

use attune_simulator::interpreter::Failure;

/// Why a master cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterError {
    Refused(String),
    Failed(Failure),
}

impl From<Failure> for MasterError {
    fn from(failure: Failure) -> MasterError {
        MasterError::Failed(failure)
    }
}

impl fmt::Display for MasterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MasterError::Refused(reason) => f.write_str(reason),
            MasterError::Failed(Failure { place: Some(place), message, .. }) => {
                write!(f, "{place}: {message}")
            }
            MasterError::Failed(failure) => f.write_str(&failure.message),
        }
    }
}

impl std::error::Error for MasterError {}
