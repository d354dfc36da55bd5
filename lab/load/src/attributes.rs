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
    /// SCHED_DEADLINE: of players and the hogs beside them equal parts of a CPU in every 10 ms, of periodic processes their budgets (needs root)
    Deadline,
}

pub struct Attributes {
    pub policy: Policy,
    /// What the fair class is asked for.
    pub slice: Option<Duration>,
}

/// What a thread can be scheduled as.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Other {
        slice: u64,
    },
    RoundRobin,
    Fifo {
        priority: u32,
    },
    /// `budget` of every `period`, in ns; who reclaims has also what nobody has reserved or uses.
    Deadline {
        budget: u64,
        period: u64,
        reclaims: bool,
    },
}

/// What the kernel lets be reserved of a CPU, in per cent: 95, less what it keeps for the fair class and for sched_ext.
const RESERVABLE: u64 = 84;
const DEADLINE_PERIOD: u64 = 10_000_000;
/// SCHED_FLAG_RECLAIM.
const RECLAIM: u64 = 2;

/// One of so many equal parts of a CPU.
pub fn equal_part(count: usize) -> Record {
    let budget = DEADLINE_PERIOD * RESERVABLE / 100 / count.max(1) as u64;
    Record::of(Kind::Deadline { budget, period: DEADLINE_PERIOD, reclaims: true })
}

/// sched_setattr's record, first version.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Record {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Record {
    pub fn of(kind: Kind) -> Record {
        let (policy, priority, [runtime, deadline, period]) = match kind {
            Kind::Other { slice } => (libc::SCHED_OTHER, 0, [slice, 0, 0]),
            Kind::RoundRobin => (libc::SCHED_RR, 1, [0; 3]),
            Kind::Fifo { priority } => (libc::SCHED_FIFO, priority, [0; 3]),
            Kind::Deadline { budget, period, .. } => (libc::SCHED_DEADLINE, 0, [budget, period, period]),
        };
        let size = size_of::<Record>() as u32;
        let flags = if matches!(kind, Kind::Deadline { reclaims: true, .. }) { RECLAIM } else { 0 };
        Record { size, policy: policy as u32, flags, nice: 0, priority, runtime, deadline, period }
    }

    /// To the calling thread.
    pub fn apply(&self) -> io::Result<()> {
        // SAFETY: the record is as long as it says.
        match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, self, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Attributes {
    /// To this process and those that it will start. A reservation is of one thread: the workload gives each its own.
    pub fn apply(&self) -> Result<()> {
        let slice = self.slice.map_or(0, |slice| slice.as_nanos() as u64);
        let record = Record::of(match self.policy {
            Policy::Other | Policy::Deadline => Kind::Other { slice },
            Policy::Rr => Kind::RoundRobin,
            Policy::Fifo => Kind::Fifo { priority: 1 },
        });
        record.apply().with_context(|| format!("cannot set policy {:?}", self.policy))
    }
}
