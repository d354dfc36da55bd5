//! Class and slice of the workload's processes, which inherit them.

use std::time::Duration;

use anyhow::{Context, Result};
use attune_linux::scheduling::{self, RECLAIM};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SchedulingClass {
    /// The fair class, or the sched_ext scheduler that has taken its place
    Other,
    /// SCHED_RR at the lowest priority (needs root)
    Rr,
    /// SCHED_FIFO at the lowest priority (needs root)
    Fifo,
    /// SCHED_DEADLINE: players and the hogs beside them get equal parts of a CPU in every 10 ms,
    /// periodic processes get their budgets (needs root)
    Deadline,
}

/// The share of a CPU that the kernel lets be reserved, in per cent: 95, less what it keeps for the
/// fair class and for sched_ext.
const RESERVABLE: u64 = 84;
const DEADLINE_PERIOD: u64 = 10_000_000;

/// One of `count` equal reservations on a CPU.
pub fn equal_part(count: usize) -> scheduling::Attributes {
    let budget = DEADLINE_PERIOD * RESERVABLE / 100 / count.max(1) as u64;
    scheduling::Attributes::reservation(budget, DEADLINE_PERIOD).with_flags(RECLAIM)
}

/// Gives class and slice to this process and those that it will start. A reservation belongs to one
/// thread: the workload gives each its own.
pub fn apply(class: SchedulingClass, slice: Option<Duration>) -> Result<()> {
    let attributes = match class {
        SchedulingClass::Other | SchedulingClass::Deadline => {
            scheduling::Attributes::fair(slice.map_or(0, |slice| slice.as_nanos() as u64))
        }
        SchedulingClass::Rr => scheduling::Attributes::round_robin(1),
        SchedulingClass::Fifo => scheduling::Attributes::fifo(1),
    };
    attributes.apply_to(0).with_context(|| format!("cannot set the scheduling class {class:?}"))
}
