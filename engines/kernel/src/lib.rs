//! The kernel engine: a policy becomes a BPF program, and Linux schedules real processes with it.
//!
//! - [`source`] puts policy and engine (`bpf/`) together in one C text; pure. [`compile`] makes an
//!   object of it.
//! - [`Image`] is such an object. [`try_load`] shows it to the kernel's verifier; [`start`] lets it
//!   schedule, and [`Running`] is the scheduler at work: statistics, tunables, CPUs that came or
//!   went ([`Followed`]), and in the end the reason ([`Exit`]) in the words of the scheduler's
//!   text.
//! - [`Values`] takes what other processes supply for thread imports, and answers the scheduler's
//!   owner: a [`Snapshot`] is how it stands at one moment.
//! - [`Member`] makes the scheduler a node of a cluster, as long as it lives.
//! - [`Replay`] runs a policy's handlers one at a time, in the kernel but without sched_ext, so
//!   that they can be compared.
//! - [`support`] says whether the machine can run any of this.

mod compiler;
mod containers;
mod description;
mod division;
mod expedite;
mod failure;
mod followed;
mod fresh;
mod image;
mod layout;
mod load;
mod loaded;
mod locked_copy;
mod members;
mod memory;
mod node;
mod optional;
mod program_call;
mod records;
mod reload;
mod replay;
mod rescues;
mod running;
mod selection;
pub mod snapshot;
mod source;
mod statistics;
mod supplies;
pub mod support;
mod tables;
#[cfg(test)]
mod tests;
mod timer_functions;
mod tunables;
mod values;

pub use compiler::{Compiler, Error as CompileError, Layout, compile, compiler_flags};
pub use division::{Division, Per};
pub use failure::{Contents, Exit, Found, Kind};
pub use followed::{CpuChange, Followed};
pub use image::{Error as ImageError, Image};
pub use load::{Error as LoadError, NOT_TRANSLATED, Settings, try_load};
pub use members::Members;
pub use node::{Member, Told};
pub use optional::losses;
pub use replay::{
    Answer, Failed, INSTANCES as REPLAY_INSTANCES, Replay, THREADS as REPLAY_THREADS,
};
pub use rescues::Rescued;
pub use running::{Prepared, Running, prepare, start};
pub use snapshot::{Snapshot, SnapshotError};
pub use source::{
    MOST_POLICIES, node_source, replay_node_source, replay_source, shared_source, source,
};
pub use statistics::{PolicyStatistics, Statistics};
pub use tunables::SetError;
pub use tunables::role;
pub use values::Values;
