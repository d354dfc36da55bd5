//! The CPUs of the machine: which of them share a last-level cache, and which one instance
//! schedules.
//!
//! Invariant: caches and instances are ranges of CPUs, ascending, without gaps; an instance never
//! reaches across two caches unless it is the whole machine.

use std::ops::Range;

/// What one instance of the scheduler schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    #[default]
    Machine,
    /// The CPUs that share a last-level cache.
    Cache,
    Cpu,
}

impl Per {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Per::Machine => "machine",
            Per::Cache => "cache",
            Per::Cpu => "cpu",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Topology {
    pub cpus: u32,
    cpus_per_cache: u32,
}

impl Topology {
    /// `cpus_per_cache`: None for one cache.
    pub fn new(cpus: u32, cpus_per_cache: Option<u32>) -> Topology {
        Topology { cpus, cpus_per_cache: cpus_per_cache.unwrap_or(cpus).clamp(1, cpus.max(1)) }
    }

    /// The CPUs that share a last-level cache with this one.
    pub fn cache_of(&self, cpu: u32) -> Range<u32> {
        let first = cpu / self.cpus_per_cache * self.cpus_per_cache;
        first..(first + self.cpus_per_cache).min(self.cpus)
    }

    /// The CPUs of each instance.
    pub fn instances(&self, per: Per) -> Vec<Range<u32>> {
        let size = match per {
            Per::Machine => self.cpus,
            Per::Cache => self.cpus_per_cache,
            Per::Cpu => 1,
        };
        let first = |number: u32| number * size;
        (0..self.cpus.div_ceil(size))
            .map(|number| first(number)..first(number + 1).min(self.cpus))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_cover_every_cpu_once_and_stay_inside_a_cache() {
        for (cpus, per_cache) in [(1, None), (8, None), (8, Some(4)), (10, Some(4)), (3, Some(9))] {
            let topology = Topology::new(cpus, per_cache);
            for per in [Per::Machine, Per::Cache, Per::Cpu] {
                let instances = topology.instances(per);
                let all: Vec<u32> = instances.iter().cloned().flatten().collect();
                assert_eq!(all, (0..cpus).collect::<Vec<_>>());
                if per != Per::Machine {
                    for range in instances {
                        let cache = topology.cache_of(range.start);
                        assert!(cache.start <= range.start && range.end <= cache.end);
                    }
                }
            }
        }
        assert_eq!(Topology::new(10, Some(4)).instances(Per::Cache), [0..4, 4..8, 8..10]);
    }
}
