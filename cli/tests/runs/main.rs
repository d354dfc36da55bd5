//! Runs of policies on a real kernel, in the virtual machine, as their operator meets them: what is
//! set and seen while a run goes on, runs that join another or a cluster, the service, CPUs that go
//! and come, cgroups.
//!
//! Without a set-up machine (`attune vm setup`) the tests say so and pass; where CI=true they fail.

mod cgroups;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod crowded;
mod hotplug;
mod joining;
mod nodes;
mod service;
