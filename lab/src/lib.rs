//! Experiments: workloads, peers, figures.
pub mod cpu;
pub mod experiment;
pub mod kernel;
pub mod load;
pub mod plot;
mod programs;
pub mod report;
pub mod rhythm;
pub mod schedulers;
pub mod webserver;
