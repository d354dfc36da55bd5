//! Experiments: workloads, peers, figures.

pub mod cluster;
pub mod columns;
pub mod demo;
pub mod embedded;
pub mod experiment;
mod files;
pub mod http;
pub mod kernel;
pub mod median_interval;
pub mod plot;
mod programs;
pub mod registry;
pub mod report;
pub mod rhythm;
pub mod scale;
pub mod schedulers;
pub mod threads;
pub mod webserver;
pub mod workloads;
