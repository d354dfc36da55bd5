//! What a simulation found.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::metrics::{Metrics, Tally, Usage, jain_index};
use crate::recorder::Recorder;
use crate::scheduler::Time;
use crate::workload::thread_name;

/// Why the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its duration was over.
    Duration,
    AllEnded,
    /// Threads are left that wait for what will never come; the warnings name them.
    Stalled,
    EventLimit,
}

impl Ending {
    /// As in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Duration => "duration",
            Ending::AllEnded => "all_ended",
            Ending::Stalled => "stalled",
            Ending::EventLimit => "event_limit",
        }
    }
}

/// Everything that the machine hands over at the end.
pub(crate) struct Figures {
    pub policy: String,
    pub workload: String,
    pub seed: u64,
    pub ending: Ending,
    pub elapsed: Time,
    pub events: u64,
    pub calls: u64,
    pub context_switch: Time,
    pub migration: Time,
    pub timeline: Time,
    pub cpus: Vec<Usage>,
    /// The CPUs of each instance.
    pub instances: Vec<Range<u32>>,
    pub metrics: Metrics,
    pub recorder: Recorder,
    /// Names and counts of templates.
    pub names: Vec<(String, u32)>,
    /// Messages that found no room, by channel of bounded capacity.
    pub lost: Vec<(String, u64)>,
    pub warnings: Vec<Diagnostic>,
}

pub struct Outcome {
    pub(crate) figures: Figures,
    total: Tally,
}

impl Outcome {
    pub(crate) fn new(figures: Figures) -> Outcome {
        let mut total = Tally { name: "total".into(), ..Tally::default() };
        for group in &figures.metrics.groups {
            // Time outside is nobody's CPU, so that only response times of clients would mix with
            // those of threads.
            if !group.outside {
                total.add(group);
            }
        }
        Outcome { figures, total }
    }

    pub fn policy(&self) -> &str {
        &self.figures.policy
    }

    pub fn workload(&self) -> &str {
        &self.figures.workload
    }

    pub fn seed(&self) -> u64 {
        self.figures.seed
    }

    pub fn ending(&self) -> Ending {
        self.figures.ending
    }

    /// Virtual time that went by, in nanoseconds.
    pub fn elapsed(&self) -> Time {
        self.figures.elapsed
    }

    /// Events of the machine: timers of CPUs and threads, alarms, changes of globals.
    pub fn events(&self) -> u64 {
        self.figures.events
    }

    /// Handlers that were called.
    pub fn calls(&self) -> u64 {
        self.figures.calls
    }

    /// What the reader of the workload left out, and threads that wait for ever.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.figures.warnings
    }

    pub fn cpus(&self) -> &[Usage] {
        &self.figures.cpus
    }

    /// The CPUs that each instance of the policy schedules.
    pub fn instances(&self) -> &[Range<u32>] {
        &self.figures.instances
    }

    /// The time of each CPU in which nothing ran and nothing was switched.
    pub fn idle(&self) -> impl Iterator<Item = Time> + '_ {
        self.figures.cpus.iter().map(|cpu| self.figures.elapsed - cpu.busy - cpu.overhead)
    }

    /// All threads but those outside.
    pub fn total(&self) -> &Tally {
        &self.total
    }

    pub fn groups(&self) -> &[Tally] {
        &self.figures.metrics.groups
    }

    /// The first [`crate::metrics::LISTED_THREADS`] threads, in the order in which they were made.
    pub fn threads(&self) -> &[Tally] {
        &self.figures.metrics.threads
    }

    /// How many messages found no room in each channel of bounded capacity.
    pub fn lost(&self) -> &[(String, u64)] {
        &self.figures.lost
    }

    /// Jain's index over the CPU time of all listed threads inside.
    pub fn jain_threads(&self) -> Option<f64> {
        jain_index(
            self.threads().iter().filter(|thread| !thread.outside).map(|thread| thread.cpu as f64),
        )
    }

    /// Jain's index over the CPU time of the listed threads of one group.
    pub fn jain_within(&self, group: u16) -> Option<f64> {
        let members =
            self.threads().iter().filter(|thread| thread.group == group && !thread.outside);
        jain_index(members.map(|thread| thread.cpu as f64))
    }

    /// Jain's index over the CPU time of groups.
    pub fn jain_groups(&self) -> Option<f64> {
        jain_index(
            self.groups().iter().filter(|group| !group.outside).map(|group| group.cpu as f64),
        )
    }

    /// The share of all progress made that was this one's, 0 to 1.
    pub fn share(&self, tally: &Tally) -> f64 {
        if self.total.cpu == 0 { 0.0 } else { tally.cpu as f64 / self.total.cpu as f64 }
    }

    /// The name of a thread of the recording.
    pub(crate) fn recorded_name(&self, serial: u32) -> String {
        let recorded = self.figures.recorder.threads[serial as usize];
        let (name, count) = &self.figures.names[recorded.template as usize];
        thread_name(name, *count, recorded.index)
    }
}
