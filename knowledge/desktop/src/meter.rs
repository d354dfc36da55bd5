//! How much CPU time each process of the machine used since the last look.

use std::collections::BTreeMap;

use attune_linux::procfs;
use attune_linux::time::{MILLISECOND, Time, process_cpu_time};

use crate::observation::Used;
use crate::process::Process;

/// Processes that are told of: those that used the most.
const MOST: usize = 64;
/// A process that used less is not told of until it has used so much.
const LEAST: Time = MILLISECOND;

#[derive(Default)]
pub struct Meter {
    /// What each had used when it was told of last.
    told: BTreeMap<Process, Time>,
    begun: bool,
}

impl Meter {
    /// What was used since the last call, the most first; nothing at the first.
    pub fn take(&mut self) -> Vec<Used> {
        let mut now = BTreeMap::new();
        for pid in procfs::processes() {
            if let (Some(process), Ok(time)) = (Process::now(pid), process_cpu_time(pid)) {
                now.insert(process, time);
            }
        }
        let mut all = Vec::new();
        for (&process, &time) in &now {
            // One that is new has used all of it since the last look.
            let before = self.told.get(&process).copied().unwrap_or(0);
            let used = time.saturating_sub(before);
            if self.begun && used >= LEAST {
                all.push(Used { process, time: used });
            }
        }
        all.sort_by_key(|used| std::cmp::Reverse(used.time));
        let told: Vec<Process> = all.iter().map(|used| used.process).collect();
        let quiet = |process: &Process| self.begun && !told.contains(process);
        for (process, time) in &mut now {
            if quiet(process) {
                *time = self.told.get(process).copied().unwrap_or(0);
            }
        }
        (self.told, self.begun) = (now, true);
        all.truncate(MOST);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_computes_is_seen_once() {
        let mut meter = Meter::default();
        assert_eq!(meter.take(), []);
        let begin = process_cpu_time(std::process::id()).unwrap();
        while process_cpu_time(std::process::id()).unwrap() < begin + 20 * MILLISECOND {}
        let own = |all: &[Used]| {
            let own = all.iter().find(|used| used.process.pid == std::process::id());
            own.map_or(0, |used| used.time)
        };
        let first = own(&meter.take());
        let end = process_cpu_time(std::process::id()).unwrap();
        assert!(first >= 20 * MILLISECOND && first <= end - begin + 20 * MILLISECOND, "{first}");
        let second = own(&meter.take());
        let since = process_cpu_time(std::process::id()).unwrap() - begin;
        assert!(first + second <= since + 20 * MILLISECOND, "{first}, {second} of {since}");
    }
}
