//! A second `attune run SCHED -- CMD` joins one that has the whole machine (`--all`): the first
//! lends the machine until the second's command is over. Meanwhile the second holds both policies
//! as one object, its own for the command and the first's for all other threads, whose shares the
//! engine keeps.
//!
//! Both speak over a Unix socket in the state folder, one JSON object a line: docs/internals/
//! joining.md has the messages and what happens when a process dies. Invariant: the lender detaches
//! nothing before the borrower's object is verified, and takes the machine back once the connection
//! is closed, which the kernel does for a process that is killed.

mod borrower;
mod lender;

use std::path::PathBuf;

use attune_daemon::state_folder;
use attune_values::wire::Tunable;
use serde::{Deserialize, Serialize};

use crate::args::SourceArgs;
use crate::failure::Failure;
use crate::load::bpf_text;
use crate::set::shown;

pub use borrower::Borrower;
pub use lender::{Lender, Look};

/// Names and values, as `attune set` takes them.
pub type Changes = Vec<(String, String)>;

/// What a lender says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Offer(Offer),
    /// It does not lend the machine now.
    Refused(String),
    /// It listens to no process any more; what is set.
    Quiet(Changes),
    /// The kernel has finished with its policy.
    Detached,
}

/// What a borrower asks.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    /// Its object is verified; it wants to listen to processes.
    Listen {
        scheduler: String,
    },
    Attach,
    /// The machine is free; what is set of the lender's policy.
    Over(Changes),
}

/// The lender's policy, so that the borrower can make the same.
#[derive(Clone, Serialize, Deserialize)]
pub struct Offer {
    scheduler: PathBuf,
    include: Vec<PathBuf>,
    aspects: Vec<PathBuf>,
    /// [`crate::load::Text::print`]: the files may have changed since the lender read them.
    print: u64,
}

impl Offer {
    pub fn scheduler(&self) -> &std::path::Path {
        &self.scheduler
    }

    pub fn source(&self) -> SourceArgs {
        SourceArgs { include: self.include.clone(), aspects: self.aspects.clone() }
    }

    /// An error: its files have changed since the lender read them.
    pub fn is_as_it_was(&self) -> Result<(), Failure> {
        let text = bpf_text(&self.scheduler, None, None, &self.source())?;
        match self.print == text.print {
            true => Ok(()),
            false => Err(Failure::usage(format!(
                "the text of {} has changed since it was loaded, so no other run can join it",
                text.scheduler
            ))),
        }
    }
}

fn socket() -> PathBuf {
    state_folder().join("join.sock")
}

/// What is set of the last of the policies, called so in another run.
fn changes<'a>(tunables: impl Iterator<Item = &'a Tunable>, called: &str) -> Changes {
    tunables.map(|it| (format!("{called}{}", it.name), shown(it.ty, it.value))).collect()
}
