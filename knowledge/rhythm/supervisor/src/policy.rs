//! How the kernel schedules a thread: read, and set. Linux's sched_getattr(2) and sched_setattr(2).

use std::io;

/// The policies that matter here, as the kernel numbers them.
pub const NORMAL: u32 = 0;
pub const BATCH: u32 = 3;
pub const IDLE: u32 = 5;
pub const ROUND_ROBIN: u32 = 2;
pub const DEADLINE: u32 = 6;

/// Children and new threads start with the ordinary policy. Without it a thread under reservation can start none.
pub const RESET_ON_FORK: u64 = 1;
/// A thread under reservation may go on with bandwidth that nobody has reserved.
pub const RECLAIM: u64 = 2;

/// A thread's scheduling attributes, as the kernel lays them out (`struct sched_attr`, its first version). Times in ns.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    size: u32,
    pub policy: u32,
    pub flags: u64,
    pub nice: i32,
    pub priority: u32,
    /// The budget of a reservation; the wished slice of an ordinary thread.
    pub runtime: u64,
    pub deadline: u64,
    pub period: u64,
}

const SIZE: u32 = 48;
const _: () = assert!(std::mem::size_of::<Policy>() == SIZE as usize);

impl Policy {
    pub fn new(policy: u32, flags: u64, nice: i32, priority: u32, times: [u64; 3]) -> Policy {
        let [runtime, deadline, period] = times;
        Policy { size: SIZE, policy, flags, nice, priority, runtime, deadline, period }
    }

    /// `budget` of every `period`, in ns.
    pub fn reservation(budget: u64, period: u64) -> Policy {
        Policy::new(DEADLINE, RESET_ON_FORK, 0, 0, [budget, period, period])
    }

    /// What this thread has now.
    pub fn of(thread: u32) -> io::Result<Policy> {
        let mut policy = Policy::default();
        // SAFETY: the kernel writes at most SIZE bytes, the size of `policy`.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut policy, SIZE, 0u32) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        policy.size = SIZE;
        Ok(policy)
    }

    /// Gives it to a thread.
    pub fn give(&self, thread: u32) -> io::Result<()> {
        let policy = Policy { size: SIZE, ..*self };
        // SAFETY: the kernel reads SIZE bytes, the size of `policy`.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const policy, 0u32) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Of the fair class, which knows no guarantees: nobody has asked for one yet.
    pub fn is_ordinary(&self) -> bool {
        matches!(self.policy, NORMAL | BATCH | IDLE)
    }

    pub fn is_reservation(&self) -> bool {
        self.policy == DEADLINE
    }

    /// As it is to be given back. The kernel tells every ordinary thread's slice, wished for or not; giving back the usual one would
    /// make it a wish. `usual`: the slice of a thread that wished for nothing.
    pub fn without_usual_slice(mut self, usual: u64) -> Policy {
        if matches!(self.policy, NORMAL | BATCH) && self.runtime == usual {
            self.runtime = 0;
        }
        self
    }
}

/// Why a thread has no reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel has given out all the bandwidth that it gives.
    Full,
    /// The thread may not run on every CPU.
    Pinned,
    /// Somebody else decides over it: it has a reservation or a real-time priority already.
    Taken,
    /// The kernel takes no such budget or period.
    Invalid,
    /// It is gone.
    Gone,
}

impl Refusal {
    /// What the errno of sched_setattr means, for a caller that may set reservations.
    pub fn from_error(error: &io::Error) -> Refusal {
        match error.raw_os_error() {
            Some(libc::EBUSY) => Refusal::Full,
            Some(libc::EPERM) => Refusal::Pinned,
            Some(libc::ESRCH) => Refusal::Gone,
            _ => Refusal::Invalid,
        }
    }

    /// For a person.
    pub fn advice(self) -> &'static str {
        match self {
            Refusal::Full => {
                "the kernel has no bandwidth left: end other real-time programs, or lower their reservations"
            }
            Refusal::Pinned => {
                "it is pinned to some of the CPUs, and the kernel refuses reservations to pinned threads: let it run on all \
                 of them (taskset -ap 0-N PID), or give it CPUs of its own (an exclusive cpuset)"
            }
            Refusal::Taken => {
                "somebody else has given it a reservation or a real-time priority: it is left alone"
            }
            Refusal::Invalid => "the kernel takes no reservation of that budget and period",
            Refusal::Gone => "it has ended",
        }
    }
}

/// Whether this process may give reservations at all: tries it on the calling thread, for an instant.
pub fn may_reserve() -> bool {
    let Ok(own) = Policy::of(0) else { return false };
    match Policy::reservation(1_000_000, 1_000_000_000).give(0) {
        Ok(()) => own.give(0).is_ok(),
        Err(error) => error.raw_os_error() == Some(libc::EBUSY),
    }
}

/// The share of each CPU that the kernel gives to real-time threads and reservations together; None: it keeps nothing back from them.
pub fn kernel_share() -> Option<f64> {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?;
        text.trim().parse::<f64>().ok()
    };
    match (read("runtime"), read("period")) {
        (Some(runtime), Some(period)) if runtime >= 0.0 && runtime < period => Some(runtime / period),
        _ => None,
    }
}
