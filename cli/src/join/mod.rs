//! A run with a command joins the one that holds the machine's policy: that one lends the machine
//! until the newcomer's command is over. Meanwhile the newcomer holds all policies as one object,
//! whose shares the engine keeps, and lends the machine to the next newcomer.
//!
//! Two speak over a Unix socket in the state folder, a JSON object in each packet:
//! docs/internals/joining.md has the messages and what happens when a process dies. Invariants: the
//! lender detaches nothing before the borrower's object is verified, and takes the machine back
//! once the connection is closed, which the kernel does for a process that is killed; the process
//! that holds the machine is the newest that lives, and it alone listens at the socket.

mod borrower;
mod handover;
mod lender;
mod policies;

use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use attune_daemon::policy::Joined;
use attune_daemon::state_folder;
use attune_linux::socket::{Connection, Received};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use borrower::{Borrower, News};
pub use handover::Handover;
pub use lender::{Lender, Look};
pub use policies::{Change, Command, Policies, Policy};

/// What a lender says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// [`attune_kernel::Members::map`] comes along, where commands have policies.
    Offer(Policies),
    /// The machine changes hands just now: ask again.
    Later,
    /// It lends the machine to nobody.
    Refused(String),
    /// It listens to no process any more; what is set.
    Quiet(Vec<Change>),
    /// The kernel has finished with its policy.
    Detached,
    /// It ends. The descriptor that comes along is its connection to the run that it had borrowed
    /// the machine from, which is the lender from now on.
    Follow,
}

/// What a borrower says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    /// Its object is verified; it wants to listen to processes.
    Listen {
        scheduler: String,
    },
    Attach,
    /// The runs that have the machine now: itself, and those that have joined it.
    Joined(Vec<Joined>),
    /// The machine is free; what is set of all policies.
    Over(Vec<Change>),
}

/// A packet is no longer than that.
const LONGEST: usize = 65536;

fn socket() -> PathBuf {
    state_folder().join("join.sock")
}

fn say(to: &Connection, what: &impl Serialize, along: Option<BorrowedFd>) -> io::Result<()> {
    to.send(&serde_json::to_vec(what)?, along)
}

/// None: nothing yet. An error: the other end is gone, or has said what no version of this says.
fn hear<T: DeserializeOwned>(from: &Connection) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut packet = vec![0; LONGEST];
    match from.receive(&mut packet)? {
        Received::Nothing => Ok(None),
        Received::Packet(length, along) => {
            Ok(Some((serde_json::from_slice(&packet[..length])?, along)))
        }
        Received::TooLong => Err(io::Error::new(ErrorKind::InvalidData, "it says too much")),
        Received::Ended => Err(io::Error::new(ErrorKind::UnexpectedEof, "it has ended")),
    }
}
