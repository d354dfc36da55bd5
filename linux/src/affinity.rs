//! The CPUs that a thread may run on.

use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::number::pid;

/// A set of CPUs, of numbers below [`Cpus::LIMIT`]. Its text is the kernel's: `0-3,8`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cpus(CpuSet);

impl Cpus {
    /// The kernel's sets have this many places.
    pub const LIMIT: u32 = CpuSet::MAX_CPU as u32;

    /// No CPU.
    pub fn none() -> Cpus {
        Cpus(CpuSet::new())
    }

    /// One CPU. A number beyond the limit gives an empty set, which no thread can be given.
    pub fn one(cpu: u32) -> Cpus {
        [cpu].into_iter().collect()
    }

    /// Where the calling thread may run.
    pub fn of_this_thread() -> io::Result<Cpus> {
        Ok(Cpus(sched_getaffinity(None)?))
    }

    /// Where a thread may run.
    pub fn of(thread: u32) -> io::Result<Cpus> {
        Ok(Cpus(sched_getaffinity(Some(pid(thread)?))?))
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..Cpus::LIMIT).filter(|cpu| self.contains(*cpu))
    }

    pub fn contains(&self, cpu: u32) -> bool {
        cpu < Cpus::LIMIT && self.0.is_set(cpu as usize)
    }

    pub fn count(&self) -> usize {
        self.0.count() as usize
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// From now on the calling thread runs on these CPUs only. Makes one system call and allocates
    /// nothing, so a child may call it after a fork.
    pub fn apply(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.0)?)
    }

    /// From now on the thread runs on these CPUs only.
    pub fn apply_to(&self, thread: u32) -> io::Result<()> {
        Ok(sched_setaffinity(Some(pid(thread)?), &self.0)?)
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Cpus {
        let mut set = CpuSet::new();
        cpus.into_iter().filter(|cpu| *cpu < Cpus::LIMIT).for_each(|cpu| set.set(cpu as usize));
        Cpus(set)
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut first = true;
        let mut cpu = 0;
        while cpu < Cpus::LIMIT {
            if !self.contains(cpu) {
                cpu += 1;
                continue;
            }
            let begin = cpu;
            while self.contains(cpu + 1) {
                cpu += 1;
            }
            let comma = if first { "" } else { "," };
            match cpu - begin {
                0 => write!(f, "{comma}{begin}")?,
                _ => write!(f, "{comma}{begin}-{cpu}")?,
            }
            first = false;
            cpu += 1;
        }
        Ok(())
    }
}

impl fmt::Debug for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Cpus({self})")
    }
}

/// A text that names no set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoCpus(String);

impl fmt::Display for NoCpus {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "\"{}\" is no list of CPUs: write numbers and ranges below {}, such as 0-3,8",
            self.0,
            Cpus::LIMIT
        )
    }
}

impl std::error::Error for NoCpus {}

impl FromStr for Cpus {
    type Err = NoCpus;

    fn from_str(text: &str) -> Result<Cpus, NoCpus> {
        let number = |text: &str| text.parse().ok().filter(|cpu| *cpu < Cpus::LIMIT);
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last): (u32, u32) = (number(first)?, number(last)?);
            (first <= last).then_some(first..=last)
        };
        let text = text.trim();
        if text.is_empty() {
            return Ok(Cpus::none());
        }
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        let ranges = ranges.ok_or_else(|| NoCpus(text.to_owned()))?;
        Ok(ranges.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_was_told_and_may_go_back() {
        std::thread::spawn(|| {
            let before = Cpus::of_this_thread().unwrap();
            let last = before.iter().last().unwrap();
            Cpus::one(last).apply().unwrap();
            assert_eq!(Cpus::of_this_thread().unwrap(), Cpus::one(last));
            assert_eq!(Cpus::of(crate::process::this_thread()).unwrap(), Cpus::one(last));
            before.apply_to(crate::process::this_thread()).unwrap();
            assert_eq!(Cpus::of_this_thread().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn no_thread_runs_nowhere() {
        assert!(Cpus::none().apply().is_err());
        assert!(Cpus::one(Cpus::LIMIT).apply().is_err());
        assert!(Cpus::of(u32::MAX).is_err() && Cpus::of(0).is_err());
    }

    #[test]
    fn a_set_is_read_back_from_its_text() {
        for text in ["", "0", "0-3,8", "1,3,5-7,1020-1023"] {
            assert_eq!(text.parse::<Cpus>().unwrap().to_string(), text);
        }
        assert_eq!("3,1,2".parse::<Cpus>().unwrap().to_string(), "1-3");
        assert_eq!("0-3,8".parse::<Cpus>().unwrap().count(), 5);
    }

    #[test]
    fn what_is_no_list_of_cpus_is_refused_with_an_example() {
        for text in ["x", "3-1", "1-", "0,,1", "1024", "-1"] {
            let message = text.parse::<Cpus>().unwrap_err().to_string();
            assert!(message.contains(text) && message.contains("0-3,8"), "{message}");
        }
    }
}
