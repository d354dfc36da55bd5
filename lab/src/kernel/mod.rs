//! Experiments in the kernel: our schedulers, the fair class, and other people's sched_ext schedulers under the same workloads.
//!
//! Each run is a deterministic virtual machine of its own with one CPU (docs/vm.md), in which a nanosecond is an instruction: the same
//! run gives the same figures on every machine with the same set-up. Runs differ in the seed of the machine.
//!
//! An experiment is a few constants: whom to compare ([`Contestant`]), under what ([`Workload`]), what to read from it
//! ([`Figure`]); and a function that judges. [`bench`] runs it, [`story`] tells it.
//!
//! A contestant that cannot be run (a peer that is not built, a scheduler that is thrown out) is a row that says why. It never makes a
//! claim hold.

mod bench;
mod contestant;
pub mod coop_user_level;
pub mod fairness;
mod story;
pub mod switch_cost;
pub mod wakeup_latency;

pub use bench::{Results, Row, Run};
pub use contestant::Contestant;
pub use story::run;

use crate::report::Claim;

/// What runs while it is measured: words for `attune-load`.
pub struct Workload {
    pub name: &'static str,
    pub words: &'static [&'static str],
}

/// One number of a run.
pub struct Figure {
    /// A column's head; unique in its experiment.
    pub name: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// Where it stands in the workload's figures, as a JSON pointer.
    pub pointer: &'static str,
    /// It is divided by this to be in the unit of its head.
    pub unit: f64,
}

/// An experiment in the kernel.
pub struct Description {
    pub name: &'static str,
    pub title: &'static str,
    /// How it is measured and how to read it, in paragraphs.
    pub text: &'static [&'static str],
    /// What others have published, or that nobody has.
    pub published: &'static str,
    pub workloads: &'static [Workload],
    pub figures: &'static [Figure],
    /// The figure that is drawn.
    pub drawn: &'static str,
    pub contestants: fn() -> Vec<Contestant>,
    pub claims: fn(&Results) -> Vec<Claim>,
}
