//! Other people's sched_ext schedulers from crates.io, built on demand and kept, to be measured
//! beside ours in the same machine.
//!
//! [`PEERS`] says which, in which version; [`Cache::build`] builds one. They are programs that load
//! a scheduler when they start and unload it when they end.

mod build;
mod lines;

pub use build::Cache;
pub use lines::count_lines;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The name of its crate and its program.
    pub name: &'static str,
    /// The version that is compared with. Another one would be another scheduler.
    pub version: &'static str,
    /// In half a sentence.
    pub about: &'static str,
    /// Lines of its text in that version, counted as [`Cache::build`] counts them in the crate as
    /// published on crates.io.
    published_lines: usize,
    /// What its build wants in its environment.
    environment: &'static [(&'static str, &'static str)],
}

/// All of them.
pub const PEERS: &[Peer] = &[
    Peer {
        name: "scx_bpfland",
        version: "1.1.4",
        about: "virtual time, threads that often block go first",
        published_lines: 1344,
        environment: &[],
    },
    Peer {
        name: "scx_cosmos",
        version: "1.1.7",
        about: "keeps threads on their CPUs, deadlines when these are busy",
        published_lines: 2389,
        environment: &[("SCX_SKIP_PAHOLE_CHECK", "1")],
    },
    Peer {
        name: "scx_flash",
        version: "1.1.4",
        about: "earliest deadline first, for latency",
        published_lines: 1321,
        environment: &[],
    },
    Peer {
        name: "scx_rusty",
        version: "1.1.4",
        about: "domains of CPUs, balanced from user space",
        published_lines: 4027,
        environment: &[],
    },
    Peer {
        name: "scx_lavd",
        version: "1.1.4",
        about: "latency-critical threads first, for games",
        published_lines: 7776,
        environment: &[],
    },
];

/// The peer of that name, with or without `scx_`.
pub fn find(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name || peer.name.strip_prefix("scx_") == Some(name))
}
