//! The seam to the database in which managers on several machines keep one master's state.
//!
//! ```text
//!   manager ── put(revision, bytes) ──▶ database     in place of the state of that revision
//!   manager ◀── Told ───────────────── database      it is kept; or: this is there instead
//! ```
//!
//! A database keeps a state with a revision that grows with each change, and knows which managers
//! are there. What a manager asks of it:
//!
//! - what it said to be kept is never lost, and a put takes effect only on the state of the
//!   revision that it names;
//! - a manager counts as there until it has left, or was not heard of for [`PATIENCE`];
//! - no call waits, apart from [`Database::leave`].
//!
//! The outcome of a put need not be known: a manager that goes on with the state that it finds
//! repeats what it wanted, and a master counts nothing twice.

use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Tells managers apart: chosen at random, kept by a manager as long as its machine runs.
pub type ManagerId = u64;

/// How long a manager that is not heard of counts as there.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// A database that can be reached says so at least so often.
pub const HEARTBEAT: Duration = Duration::from_millis(250);

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// 0: there is none.
    pub revision: u64,
    pub bytes: Vec<u8>,
    /// The managers that are there.
    pub managers: Vec<ManagerId>,
}

/// What a manager hears.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// The put of that number took effect, and gave the state this revision.
    Put { number: u64, revision: u64 },
    /// What is there, which is not what the manager had, or the first that it hears. No put that
    /// was begun before has to be waited for.
    Found(State),
    /// Nothing has changed since what was told last.
    Same,
    /// The database cannot be reached, for that reason. When it can be again, `Found` follows.
    Away(String),
}

pub trait Database: Send {
    /// Readable when there is something to take.
    fn wakes(&self) -> BorrowedFd<'_>;

    /// What was told meanwhile, oldest first.
    fn take(&mut self) -> Vec<Told>;

    /// Begins to put a state in place of the one of revision `seen`. Only the last put counts of
    /// several that have begun.
    fn put(&mut self, number: u64, seen: u64, bytes: Vec<u8>);

    /// The manager is not there any more. If it was the last one and the state still has revision
    /// `seen`, the state is removed. Waits for the database, for some seconds.
    fn leave(&mut self, seen: u64);
}
