//! Experiments in the kernel: our schedulers, the fair class, and other people's sched_ext
//! schedulers under the same workloads.
//!
//! An experiment is a [`Description`]: tables ([`Part`]) that name the contestants
//! ([`Contestant`]), the workloads ([`Workload`]), the machine ([`Place`]) and the figures
//! ([`Figure`]); and a function that judges.
//!
//! | file | what it does |
//! |---|---|
//! | [`bench`] | plans the runs, makes those that the run cache lacks |
//! | [`machine`] | one run: commands in a virtual machine, and the figures that they print |
//! | [`run_cache`] | finds an earlier run by the hash of all that it was made of |
//! | [`fixture`] | what is made once for many runs: [`films`] for real players, a [`database`] |
//! | [`results`] | medians, the worst, ratios |
//! | [`report`] | tables, claims, pictures |
//!
//! A contestant that cannot run (a peer that is not built, a scheduler that the kernel ends) is a
//! row that says why. It never makes a claim hold.

mod bench;
pub mod cgroups;
pub mod clients;
mod contestant;
pub mod coop;
mod database;
mod description;
pub mod fairness;
mod films;
mod fixture;
pub mod flood;
pub mod focus;
pub mod hotplug;
pub mod join;
mod machine;
pub mod machine_messages;
mod part;
mod place;
pub mod random_schedulers;
mod report;
pub mod reserve;
pub mod restless;
mod results;
mod run_cache;
pub mod sleep;
pub mod starvation;
pub mod switch_cost;
pub mod transactions;
pub mod trust;
pub mod wakeup_latency;

pub use contestant::{Contestant, load as load_program};
pub use database::Database;
pub use description::{Description, FIVE_SEEDS, TWO_SEEDS};
pub use films::Films;
pub use fixture::Fixture;
pub use machine::Run;
pub use part::{Figure, Part, Workload, compiler};
pub use place::Place;
pub use report::number;
pub use results::{Results, Row};
