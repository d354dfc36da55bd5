//! What every target takes, and why it may refuse.

use attune_language::ir::{Extent, Program, Verdicts};
use attune_language::source::SourceMap;

/// A checked scheduler, the verdicts of the engine that will run it (checks that they call proved
/// are left out), and the files that it was made from, the main one first.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    pub program: &'a Program,
    pub verdicts: &'a Verdicts,
    pub sources: &'a SourceMap,
}

/// What a node's scheduler tells the engine of its cluster; the back end only hands it on.
#[derive(Clone, Debug)]
pub struct Node {
    /// The master's name.
    pub cluster: String,
    /// What the cluster shares, in whatever form the part that keeps the node's copy reads.
    pub description: String,
}

/// Why there is no C for a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0} is partial: it is only a base for other schedulers")]
    Partial(String),
    #[error("the scheduler's arrays take more than a gigabyte")]
    TooLarge,
    #[error(
        "{0} is the scheduler of a cluster's node: build it for the threads or the kernel engine, \
         with --node"
    )]
    Node(String),
    /// The target's own reason.
    #[error("{0}")]
    Target(String),
}

impl Policy<'_> {
    /// What no target takes.
    pub(crate) fn refuse(&self) -> Result<(), Refusal> {
        if self.program.partial {
            return Err(Refusal::Partial(self.program.name.clone()));
        }
        if size_of_arrays(self.program) > LARGEST {
            return Err(Refusal::TooLarge);
        }
        Ok(())
    }

    /// Where nothing keeps the node's copy of what its cluster shares.
    pub(crate) fn refuse_node(&self) -> Result<(), Refusal> {
        let membership = &self.program.membership;
        if membership.remotes.is_empty() && membership.observed.is_empty() {
            return Ok(());
        }
        Err(Refusal::Node(self.program.name.clone()))
    }
}

/// Bytes that a scheduler's arrays may take.
const LARGEST: u64 = 1 << 30;

fn size_of_arrays(program: &Program) -> u64 {
    let elements = |extent: Extent| match extent {
        Extent::Array(length) => u64::from(length),
        Extent::One | Extent::PerCpu => 1,
    };
    let globals: u64 = program.globals.values().map(|global| elements(global.extent) * 8).sum();
    let containers: u64 =
        program.containers.values().map(|container| elements(container.extent) * 64).sum();
    let locals: u64 =
        program.locals.values().map(|local| u64::from(local.length.unwrap_or(1)) * 8).sum();
    globals + containers + locals
}
