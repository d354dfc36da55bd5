//! Which instance of the policy has which CPUs: one for the machine, for each last-level cache, or
//! for each CPU.
//!
//! Invariant: instances count from 0, each has a CPU, and no CPU of an instance is in another cache
//! than the rest of it unless the instance has the whole machine.

use std::fs;
use std::path::Path;

/// What one instance schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    Machine,
    /// The CPUs that share a last-level cache.
    Cache,
    Cpu,
}

/// The instance of each CPU, and its last-level cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    instances: Vec<u32>,
    caches: Vec<u32>,
}

impl Division {
    /// One instance for so many CPUs.
    pub fn whole(cpus: u32) -> Division {
        Division { instances: vec![0; cpus as usize], caches: vec![0; cpus as usize] }
    }

    /// This machine's CPUs, divided.
    pub fn here(per: Per, cpus: u32) -> Division {
        let cpu = Path::new("/sys/devices/system/cpu");
        Division::of(per, (0..cpus).map(|number| cache(cpu, number)).collect())
    }

    /// `caches`: of each CPU its last-level cache, under any number.
    fn of(per: Per, caches: Vec<u32>) -> Division {
        let instances = match per {
            Per::Machine => vec![0; caches.len()],
            Per::Cpu => (0..caches.len() as u32).collect(),
            Per::Cache => numbered(&caches),
        };
        Division { instances, caches: numbered(&caches) }
    }

    /// How many there are, at least 1.
    pub fn instances(&self) -> u32 {
        self.instances.iter().max().map_or(1, |last| last + 1)
    }

    pub(crate) fn instance_of(&self) -> &[u32] {
        &self.instances
    }

    pub(crate) fn cache_of(&self) -> &[u32] {
        &self.caches
    }
}

/// Equal numbers stay equal, and count from 0 in the order in which they come.
fn numbered(numbers: &[u32]) -> Vec<u32> {
    let mut known: Vec<u32> = Vec::new();
    let place = |number: &u32| match known.iter().position(|it| it == number) {
        Some(place) => place as u32,
        None => {
            known.push(*number);
            known.len() as u32 - 1
        }
    };
    numbers.iter().map(place).collect()
}

/// The first CPU that shares this CPU's last-level cache; 0 where the kernel says nothing, as of a
/// CPU that is not there.
fn cache(cpus: &Path, number: u32) -> u32 {
    let read = |index: u32, file: &str| {
        let place = cpus.join(format!("cpu{number}/cache/index{index}/{file}"));
        fs::read_to_string(place).ok()
    };
    let level = |index: u32| read(index, "level")?.trim().parse::<u32>().ok();
    let last = (0..).map_while(|index| Some((level(index)?, index))).max();
    let list = last.and_then(|(_, index)| read(index, "shared_cpu_list"));
    list.and_then(|list| first(&list)).unwrap_or(0)
}

/// The first number of a list such as `4-7,12`.
fn first(list: &str) -> Option<u32> {
    list.trim().split([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_has_a_cache_or_a_cpu_or_all() {
        // Hyperthreads of one core have distant numbers on many machines.
        let caches = vec![0, 0, 2, 2, 0, 0, 2, 2];
        let cache = Division::of(Per::Cache, caches.clone());
        assert_eq!(cache.instance_of(), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(cache.instances(), 2);
        let cpu = Division::of(Per::Cpu, caches.clone());
        assert_eq!(cpu.instances(), 8);
        assert_eq!(cpu.cache_of(), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(Division::of(Per::Machine, caches), {
            let mut whole = Division::whole(8);
            whole.caches = vec![0, 0, 1, 1, 0, 0, 1, 1];
            whole
        });
        assert_eq!(Division::whole(3).instances(), 1);
    }

    #[test]
    fn the_last_level_cache_is_read_from_sysfs() {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, index, level, list) in
            [(0, 0, 1, "0"), (0, 1, 3, "0-1,4"), (1, 0, 3, "0-1,4"), (2, 0, 2, "2")]
        {
            let place = folder.path().join(format!("cpu{cpu}/cache/index{index}"));
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("level"), format!("{level}\n")).unwrap();
            fs::write(place.join("shared_cpu_list"), format!("{list}\n")).unwrap();
        }
        let caches: Vec<u32> = (0..4).map(|cpu| cache(folder.path(), cpu)).collect();
        assert_eq!(caches, [0, 0, 2, 0]);
    }
}
