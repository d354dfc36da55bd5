//! A virtual machine for one command: a kernel with sched_ext under QEMU's software emulation, no
//! privilege and no KVM needed.
//!
//! [`Setup`] fetches a kernel, an emulator and a server of files into a [`Cache`].
//! [`Machine::boot`] starts a machine for a [`Command`]; [`Machine::relay`] passes its input and
//! output and waits for its end; [`run`] does both and keeps the output. There are two kinds of
//! machine ([`Kind`]):
//!
//! - **Host files**: the guest sees the host's files over virtiofs; what it writes stays in its
//!   memory and is gone in the end. Several CPUs, real time.
//! - **Deterministic**: everything is packed into the guest's memory, one instruction takes one
//!   nanosecond, and a run is the same to the last bit each time.
//!
//! Invariant: nothing of a machine outlives its [`Machine`], not even when this process is killed:
//! the guest's files lie in memory, sockets have no names, and the processes get a signal when we
//! end.

mod cache;
mod command;
mod console;
mod emulator;
mod error;
mod fingerprint;
mod frame;
mod initramfs;
mod machine;
mod memory_file;
mod pack;
mod processes;
mod setup;
mod topology;

pub use cache::{Cache, Kernel};
pub use command::Command;
pub use error::{Error, FAULT, NOT_BEGUN};
pub use fingerprint::fingerprint;
pub use machine::{Control, Machine, Output, Streams, run};
pub use setup::{Progress, Setup};
pub use topology::{MOST_CPUS, Topology, TopologyError};

use std::path::PathBuf;
use std::time::Duration;

/// How the machine is to be.
#[derive(Clone, Debug)]
pub struct Options {
    pub topology: Topology,
    /// In MiB, at least 128.
    pub memory: u64,
    pub kind: Kind,
    /// The machine is ended this long after it was started; a deterministic machine, too, in real
    /// time.
    pub timeout: Option<Duration>,
}

impl Default for Options {
    fn default() -> Options {
        Options { topology: Topology::flat(1), memory: 1024, kind: Kind::HostFiles, timeout: None }
    }
}

/// What the guest's files are, and what its time is.
#[derive(Clone, Debug)]
pub enum Kind {
    HostFiles,
    Deterministic {
        /// Files or folders that the command needs besides its program and its libraries; at the
        /// same place in the guest.
        pack: Vec<PathBuf>,
        /// Seed of everything that is random in the machine.
        seed: u64,
    },
}
