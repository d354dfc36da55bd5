//! Policy and slice of the workload's processes, which inherit them.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Policy {
    /// The fair class, or the sched_ext scheduler that has taken its place
    Other,
    /// SCHED_RR at the lowest priority (needs root)
    Rr,
    /// SCHED_FIFO at the lowest priority (needs root)
    Fifo,
}

pub struct Attributes {
    pub policy: Policy,
    /// What the fair class is asked for.
    pub slice: Option<Duration>,
}

/// sched_setattr's record, first version.
#[repr(C)]
struct Record {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Attributes {
    /// To this process and those that it will start.
    pub fn apply(&self) -> Result<()> {
        let (policy, priority) = match self.policy {
            Policy::Other => (libc::SCHED_OTHER, 0),
            Policy::Rr => (libc::SCHED_RR, 1),
            Policy::Fifo => (libc::SCHED_FIFO, 1),
        };
        let record = Record {
            size: size_of::<Record>() as u32,
            policy: policy as u32,
            flags: 0,
            nice: 0,
            priority,
            runtime: self.slice.map_or(0, |slice| slice.as_nanos() as u64),
            deadline: 0,
            period: 0,
        };
        // SAFETY: the record is as long as it says.
        match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &record, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error())
                .with_context(|| format!("cannot set policy {:?}", self.policy)),
        }
    }
}
