//! One meaning, tested as such: random schedulers under random events must do the same on every
//! engine.
//!
//! - [`generator`] writes schedulers (a crate of its own, which others use too); [`scheduler`]
//!   checks them;
//! - [`driver`] makes random events that keep to the engines' protocol, for whatever
//!   [`driver::Subject`] runs the scheduler: the interpreter ([`interpreted`]), or a [`pair`] of it
//!   and an [`implementation`], [`compiled`] C or BPF [`replayed`] in the kernel;
//! - [`differential`] compares the two in many cases, and [`shrink`]s what differs;
//! - [`mutants`] says what that comparison is worth;
//! - [`moves`] runs the kernel engine's C with several instances behind a model of the kernel;
//! - [`coverage`] says what of the language the cases execute;
//! - [`proof`] runs what the analysis proved, [`refuted`] what it refuted;
//! - [`worst_case`] counts steps beside the static worst case of each handler;
//! - [`budget`] is how much these three try.

pub mod budget;
pub mod compiled;
pub mod coverage;
pub mod differential;
pub mod driver;
pub mod implementation;
pub mod interpreted;
pub mod moves;
pub mod mutants;
pub mod pair;
pub mod proof;
pub mod refuted;
pub mod replayed;
pub mod scheduler;
pub mod shrink;
pub mod worst_case;

pub use attune_generator::{self as generator, random};
