//! The machines in which an experiment in the kernel makes its runs.

use attune_vm::{Cache, Error, Kernel, Topology};

/// Where a part's runs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Each run in a deterministic virtual machine (docs/vm.md), in which each instruction of any
    /// CPU takes a nanosecond: the same run gives the same figures on every machine with the same
    /// set-up. Runs differ in the seed of the machine.
    ///
    /// The CPUs of a socket share a last-level cache.
    Deterministic { cpus: u32, sockets: u32, kernel: Kernel },
    /// In real time on two CPUs. One machine runs all contestants of a round, one after the other,
    /// and each round begins with another contestant. Figures are medians over rounds with their
    /// confidence interval; ratios are taken within a round.
    TwoCpus,
}

impl Place {
    pub const ONE_CPU: Place = Place::deterministic(1);

    /// One socket with so many CPUs.
    pub const fn deterministic(cpus: u32) -> Place {
        Place::divided(cpus, 1)
    }

    /// So many CPUs in so many sockets.
    pub const fn divided(cpus: u32, sockets: u32) -> Place {
        Place::Deterministic { cpus, sockets, kernel: Kernel::Cloud }
    }

    /// One socket with so many CPUs, under the kernel that can test sleep.
    pub const fn that_sleeps(cpus: u32) -> Place {
        Place::Deterministic { cpus, sockets: 1, kernel: Kernel::Full }
    }

    /// The set-up that its machines boot from. Err: it has not been made.
    pub fn cache(self) -> Result<Cache, Error> {
        let kernel = match self {
            Place::Deterministic { kernel, .. } => kernel,
            Place::TwoCpus => Kernel::Cloud,
        };
        Cache::open(&Cache::folder_for(kernel))
    }

    pub fn is_deterministic(self) -> bool {
        matches!(self, Place::Deterministic { .. })
    }

    pub fn cpus(self) -> u32 {
        match self {
            Place::Deterministic { cpus, .. } => cpus,
            Place::TwoCpus => 2,
        }
    }

    /// Last-level caches.
    pub fn caches(self) -> u32 {
        match self {
            Place::Deterministic { sockets, .. } => sockets,
            Place::TwoCpus => 1,
        }
    }

    pub fn topology(self) -> Topology {
        Topology::divided(self.cpus(), self.caches())
    }
}
