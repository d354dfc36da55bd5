//! The `attune` program as its users meet it, a file for each group of commands. One program,
//! because each more would be linked anew. Tests that this machine cannot run say so and pass;
//! with CI=true they fail.

mod bad_days;
mod cluster;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod coop;
mod coop_kernel;
mod distributed;
mod gateway;
mod lab;
mod machines;
mod program;
mod requests;
mod rhythm;
mod support;
mod trace;
mod tune;
mod values;
mod vm;
