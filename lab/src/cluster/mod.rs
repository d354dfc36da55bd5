//! Experiments with distributed schedulers.

pub mod sim;
