//! The scheduler of a program's own threads at one moment, as the threads engine tells it.
//!
//! Units: times are in ns; those of the clock are CLOCK_MONOTONIC's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::wire::Tunable;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub process: i32,
    pub scheduler: String,
    /// How its threads wait for descriptors: `uring` or `epoll`, and why not `uring`.
    pub io: String,
    pub io_why: Option<String>,
    /// When the first worker answered; each answers when it switches threads.
    pub at: i64,
    pub tunables: Vec<Tunable>,
    /// By number.
    pub threads: Vec<UserThread>,
}

/// A thread that has not been joined or forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserThread {
    pub thread: u64,
    pub name: String,
    /// From 1.
    pub worker: usize,
    /// What it does or waits for, in words.
    pub state: String,
    /// As the policy calls it.
    pub container: String,
    /// Up to `at`.
    pub run_ns: i64,
    pub ready_ns: i64,
    /// Times that it was chosen.
    pub chosen: u64,
    /// What the policy keeps of it: numbers, and times in ns.
    pub values: BTreeMap<String, i64>,
}
