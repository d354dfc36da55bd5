//! Counts what happens while the machine runs, per thread and per group of threads.
//!
//! Invariant: a group's figures are those of all its threads, also of threads too many to be listed
//! each. Times are nanoseconds.

mod jain;
mod summary;

pub use jain::jain_index;
pub use summary::Summary;

use crate::scheduler::Time;

/// Threads that get figures of their own, the first to be created; later ones count in their group
/// only.
pub const LISTED_THREADS: u32 = 1000;

/// How a CPU spent its time; the rest was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Threads made progress.
    pub busy: Time,
    /// Lost to switching, and to the scheduler's lock.
    pub overhead: Time,
    /// Waited for the scheduler's lock.
    pub lock_wait: Time,
    /// Changes to a different thread.
    pub switches: u64,
}

/// The figures of a thread, or of a group.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub name: String,
    /// Index of the group; of a group, its own.
    pub group: u16,
    /// Stands for the world outside: has jobs, but no use of CPUs.
    pub outside: bool,
    /// Threads that are counted here.
    pub threads: u64,
    pub created: Time,
    pub ended: Option<Time>,
    /// Progress made on CPUs.
    pub cpu: Time,
    /// Times that it got a CPU.
    pub dispatches: u64,
    /// Dispatches on a CPU that had run another thread: context switches.
    pub switches: u64,
    /// Dispatches on another CPU than the time before.
    pub migrations: u64,
    /// Times that it went to another instance.
    pub moves: u64,
    /// Times that it lost the CPU though it wanted to go on: its slice was used up, or it was
    /// preempted.
    pub preemptions: u64,
    /// Jobs done.
    pub jobs: u64,
    /// Jobs that were not done by their deadline, whether or not they were done later.
    pub missed: u64,
    /// Jobs that were released and not done when the run ended.
    pub unfinished: u64,
    /// Releases that a late periodic thread left out.
    pub skipped: u64,
    /// Threads that were ready when the run ended and never got a CPU.
    pub never_dispatched: u64,
    /// The longest time that a thread was ready and had no CPU, also if it never got one.
    pub longest_wait: Time,
    /// From ready to running, each time that it got a CPU.
    pub latency: Summary,
    /// From a job's release to its end.
    pub response: Summary,
    /// How much later than its deadline a job was done; 0 in time.
    pub tardiness: Summary,
}

impl Tally {
    /// Some of its jobs had a deadline that came within the run.
    pub fn has_deadlines(&self) -> bool {
        self.tardiness.count() > 0 || self.missed > 0
    }

    /// Adds the figures of another, but not its identity.
    pub fn add(&mut self, other: &Tally) {
        self.threads += other.threads;
        self.cpu += other.cpu;
        self.dispatches += other.dispatches;
        self.switches += other.switches;
        self.migrations += other.migrations;
        self.moves += other.moves;
        self.preemptions += other.preemptions;
        self.jobs += other.jobs;
        self.missed += other.missed;
        self.skipped += other.skipped;
        self.unfinished += other.unfinished;
        self.never_dispatched += other.never_dispatched;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.latency.add(&other.latency);
        self.response.add(&other.response);
        self.tardiness.add(&other.tardiness);
    }
}

pub struct Metrics {
    pub groups: Vec<Tally>,
    /// The first [`LISTED_THREADS`] threads, by serial number.
    pub threads: Vec<Tally>,
}

/// Whose figures: a thread's serial number and its group.
#[derive(Clone, Copy)]
pub struct Who {
    pub serial: u32,
    pub group: u16,
}

impl Metrics {
    pub fn new(groups: &[String]) -> Metrics {
        let named = |(number, name): (usize, &String)| Tally {
            name: name.clone(),
            group: number as u16,
            outside: true,
            ..Tally::default()
        };
        Metrics { groups: groups.iter().enumerate().map(named).collect(), threads: Vec::new() }
    }

    /// A thread exists. Serial numbers ascend from 0 without a gap.
    pub fn enlist(&mut self, who: Who, name: impl FnOnce() -> String, outside: bool) {
        let group = &mut self.groups[who.group as usize];
        group.threads += 1;
        group.outside &= outside;
        if who.serial < LISTED_THREADS {
            self.threads.push(Tally {
                name: name(),
                group: who.group,
                outside,
                threads: 1,
                ..Tally::default()
            });
        }
    }

    /// Changes the figures of a thread and of its group alike.
    #[inline]
    pub fn update(&mut self, who: Who, change: impl Fn(&mut Tally)) {
        change(&mut self.groups[who.group as usize]);
        if let Some(thread) = self.threads.get_mut(who.serial as usize) {
            change(thread);
        }
    }

    pub fn created(&mut self, who: Who, now: Time) {
        if let Some(thread) = self.threads.get_mut(who.serial as usize) {
            thread.created = now;
        }
    }

    pub fn ended(&mut self, who: Who, now: Time) {
        if let Some(thread) = self.threads.get_mut(who.serial as usize) {
            thread.ended = Some(now);
        }
    }
}
