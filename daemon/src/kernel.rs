//! Says what the kernel lets a supervisor reserve, and why it refuses.

use std::io;

use attune_linux::Errno;
use attune_linux::scheduling::{Attributes, Class, RESET_ON_FORK};

/// What all reservations depend on.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The slice of a thread that asked for none.
    pub usual_slice: u64,
    /// It keeps CPU time back from real-time threads and reservations, whatever they do.
    pub keeps_some: bool,
}

impl Kernel {
    /// Call it before this thread's own attributes are changed.
    pub fn of_this_machine() -> Kernel {
        let usual_slice = Attributes::of(0).map(|own| own.runtime).unwrap_or(0);
        Kernel { usual_slice, keeps_some: kernel_share().is_some() }
    }

    /// The attributes to give back to a thread that had these. The kernel tells every ordinary
    /// thread's slice, asked for or not; giving back the usual one would make it a wish.
    pub fn to_restore(self, before: Attributes) -> Attributes {
        let asks_for_slices = matches!(before.class, Class::NORMAL | Class::BATCH);
        match asks_for_slices && before.runtime == self.usual_slice {
            true => Attributes { runtime: 0, ..before },
            false => before,
        }
    }
}

/// Why a thread has no reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel has given out all the bandwidth that it gives.
    Full,
    /// The thread may not run on every CPU.
    Pinned,
    /// Another program decides over it: it has a reservation or a real-time priority already.
    Taken,
    /// The kernel takes no such budget or period.
    Invalid,
    /// It is gone.
    Gone,
}

impl Refusal {
    /// What the errno of sched_setattr means, for a caller that may set reservations.
    pub fn from_error(error: &io::Error) -> Refusal {
        match attune_linux::errno(error) {
            Some(Errno::BUSY) => Refusal::Full,
            Some(Errno::PERM) => Refusal::Pinned,
            Some(Errno::SRCH) => Refusal::Gone,
            _ => Refusal::Invalid,
        }
    }

    /// Tells a person what to change.
    pub fn advice(self) -> &'static str {
        match self {
            Refusal::Full => {
                "the kernel has no bandwidth left: end other real-time programs, or lower their \
                 reservations"
            }
            Refusal::Pinned => {
                "it is pinned to some of the CPUs, and the kernel refuses reservations to pinned \
                 threads: let it run on all of them (taskset -ap 0-N PID), or give it CPUs of its \
                 own (an exclusive cpuset)"
            }
            Refusal::Taken => {
                "another program has given it a reservation or a real-time priority: it is left \
                 alone"
            }
            Refusal::Invalid => "the kernel takes no reservation of that budget and period",
            Refusal::Gone => "it has ended",
        }
    }
}

/// Whether this process may give reservations at all: tries it on the calling thread, for an
/// instant.
pub fn may_reserve() -> bool {
    let Ok(own) = Attributes::of(0) else { return false };
    // A thread that overruns its budget waits a period for each budget of the overrun. On a virtual
    // machine an instant can last as long as the host keeps the CPU, so half of the period is the
    // budget: an overrun costs twice its length.
    let trial = Attributes::reservation(10_000_000, 20_000_000).with_flags(RESET_ON_FORK);
    match trial.apply_to(0) {
        Ok(()) => own.apply_to(0).is_ok(),
        Err(error) => attune_linux::errno(&error) == Some(Errno::BUSY),
    }
}

/// The share of each CPU that the kernel gives to real-time threads and reservations together;
/// None: it keeps nothing back from them.
pub fn kernel_share() -> Option<f64> {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?;
        text.trim().parse::<f64>().ok()
    };
    match (read("runtime"), read("period")) {
        (Some(runtime), Some(period)) if runtime >= 0.0 && runtime < period => {
            Some(runtime / period)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_slice_is_not_given_back_as_a_wish() {
        let kernel = Kernel { usual_slice: 3_000_000, keeps_some: true };
        let restored = |class, runtime| {
            kernel.to_restore(Attributes { class, runtime, ..Attributes::default() }).runtime
        };
        assert_eq!(restored(Class::NORMAL, 3_000_000), 0);
        assert_eq!(restored(Class::NORMAL, 500_000), 500_000);
        assert_eq!(restored(Class::DEADLINE, 3_000_000), 3_000_000);
    }
}
