//! One meaning, tested as such: random schedulers under random events must do the same on every engine.
//!
//! - [`generator`] writes schedulers, made of [`fragment`]s that can be simplified; [`scheduler`] checks them;
//! - [`world`] makes random events that keep to the engines' protocol, for whatever [`world::Subject`] runs the scheduler:
//!   the interpreter ([`interpreted`]);
//! - [`proof`] runs what the analysis proved.

pub mod fragment;
pub mod generator;
pub mod interpreted;
pub mod proof;
pub mod random;
pub mod scheduler;
pub mod world;
