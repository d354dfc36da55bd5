//! Distributed schedulers: the example clusters in simulated time and as real programs.

pub mod cameras;
mod example;
pub mod hosts;
pub mod partition;
pub mod pool;
mod programs;
pub mod shared;
pub mod sim;
pub mod webapp;
