//! The CPUs of a machine and what they share: `2:4:1` is two sockets of four cores of one thread
//! each.
//!
//! Each socket has a last-level cache of its own, which its cores share; the threads of a core
//! share all of its caches. Invariant: a machine has 1 to 64 CPUs.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The most CPUs that a machine has.
pub const MOST_CPUS: u32 = 64;

/// Sockets, cores of each socket, and threads of each core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    sockets: u32,
    cores: u32,
    threads: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    #[error("SOCKETS:CORES:THREADS is meant, three numbers from 1 on, such as 2:4:1")]
    NoTopology,
    #[error("that makes {0} CPUs: at most {MOST_CPUS} are possible")]
    TooManyCpus(u64),
}

impl Topology {
    /// One socket with so many cores of one thread each.
    pub fn flat(cpus: u32) -> Topology {
        Topology { sockets: 1, cores: cpus.clamp(1, MOST_CPUS), threads: 1 }
    }

    /// So many sockets, which share the CPUs evenly, of cores of one thread each.
    pub fn divided(cpus: u32, sockets: u32) -> Topology {
        let sockets = sockets.clamp(1, MOST_CPUS);
        Topology { sockets, cores: (cpus / sockets).clamp(1, MOST_CPUS / sockets), threads: 1 }
    }

    /// How many CPUs there are in all.
    pub fn cpus(self) -> u32 {
        self.sockets * self.cores * self.threads
    }

    /// QEMU's words for it.
    pub(crate) fn smp(self) -> String {
        let Topology { sockets, cores, threads } = self;
        format!("{},sockets={sockets},cores={cores},threads={threads}", self.cpus())
    }
}

/// As on the command line.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.sockets, self.cores, self.threads)
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Topology, TopologyError> {
        let number = |text: &str| text.parse().map(NonZeroU32::get);
        let numbers: Result<Vec<u32>, _> = text.split(':').map(number).collect();
        let Ok([sockets, cores, threads]) = numbers.as_deref() else {
            return Err(TopologyError::NoTopology);
        };
        let all = [*sockets, *cores, *threads].into_iter().map(u64::from);
        let cpus = all.fold(1u64, u64::saturating_mul);
        if cpus > u64::from(MOST_CPUS) {
            return Err(TopologyError::TooManyCpus(cpus));
        }
        Ok(Topology { sockets: *sockets, cores: *cores, threads: *threads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_is_three_numbers_from_one_on() {
        let topology: Topology = "2:4:1".parse().unwrap();
        assert_eq!((topology.cpus(), topology.to_string().as_str()), (8, "2:4:1"));
        assert_eq!(topology.smp(), "8,sockets=2,cores=4,threads=1");
        assert_eq!(Topology::divided(8, 2), topology);
        assert_eq!(Topology::flat(3).smp(), "3,sockets=1,cores=3,threads=1");
        assert_eq!("8:4:2".parse::<Topology>().map(Topology::cpus), Ok(64));
        for wrong in
            ["", "2", "2:4", "2:4:1:1", "0:4:1", "2:-4:1", "2:x:1", "2::1", "99999999999:1:1"]
        {
            assert_eq!(wrong.parse::<Topology>(), Err(TopologyError::NoTopology), "{wrong}");
        }
        assert_eq!("13:5:1".parse::<Topology>(), Err(TopologyError::TooManyCpus(65)));
        let huge = "4294967295:4294967295:4294967295".parse::<Topology>();
        assert_eq!(huge, Err(TopologyError::TooManyCpus(u64::MAX)));
    }
}
