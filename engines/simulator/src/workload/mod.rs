//! What is simulated: threads and what they do, read from a TOML file or from rt-app's JSON.
//!
//! Invariant: a [`Workload`] is complete and consistent; every mistake that can be found without
//! running was reported, with its place, when it was read. Times are nanoseconds.

mod actions;
mod builder;
pub mod cluster;
pub mod distribution;
pub mod expression;
mod json;
pub mod program;
mod rt_app;
#[cfg(test)]
mod tests;
mod toml;
mod toml_values;

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Location, Source};
use crate::scheduler::{CpuSet, Time};
use expression::Expression;
use program::{Address, Operation, Variable};

/// Threads alive at once, unless the workload says otherwise.
pub const DEFAULT_MAX_THREADS: u32 = 10_000;
/// The most that a workload may ask for.
pub const MOST_THREADS: u32 = 1_000_000;

#[derive(Clone, Debug)]
pub struct Workload {
    pub name: String,
    /// The run ends then at the latest. None: when all threads have ended.
    pub duration: Option<Time>,
    /// CPUs of the machine, unless the options say otherwise.
    pub cpus: Option<u32>,
    /// CPUs that share a last-level cache; None: all.
    pub cpus_per_cache: Option<u32>,
    /// What the scheduler's lock costs.
    pub lock: LockCosts,
    /// Time that a CPU loses when it changes to a different thread.
    pub context_switch: Time,
    /// Time that it loses in addition when the thread ran on another CPU before.
    pub migration: Time,
    pub max_threads: u32,
    /// What the reader left out or took differently, with its place.
    pub notes: Vec<Diagnostic>,

    pub(crate) source: Source,
    pub(crate) groups: Vec<String>,
    pub(crate) templates: Vec<Template>,
    pub(crate) operations: Vec<Operation>,
    /// Where each operation stands in the text.
    pub(crate) places: Vec<Range<usize>>,
    pub(crate) variables: Vec<ThreadVariable>,
    pub(crate) globals: Vec<Global>,
    /// Ascending by time.
    pub(crate) changes: Vec<Change>,
    pub(crate) semaphores: Vec<Semaphore>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) locks: Vec<String>,
    pub(crate) conditions: Vec<String>,
    pub(crate) barriers: Vec<Barrier>,
    /// Variables of a cluster that threads use outside of handlers.
    pub(crate) cluster_variables: Vec<String>,
}

/// What it costs a CPU to call a handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockCosts {
    /// How long the lock is held for one call.
    pub hold: Time,
    /// To take it over from another CPU of the same cache.
    pub near: Time,
    /// To take it over from a CPU of another cache.
    pub far: Time,
}

impl LockCosts {
    pub fn is_free(self) -> bool {
        self == LockCosts::default()
    }
}

/// Threads of one name.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub name: String,
    pub group: u16,
    /// Threads that the run begins with; none if they are only spawned.
    pub count: u32,
    /// It stands for the world outside: needs no CPU, and the scheduler does not know it.
    pub outside: bool,
    pub start: Expression,
    pub affinity: CpuSet,
    pub initial: Vec<(Variable, Expression)>,
    /// Its work is not divided into jobs, so that its life is one.
    pub life_is_job: bool,
    /// Its jobs are released by the clock.
    pub periodic: Option<Periodic>,
    pub entry: Address,
    pub place: Range<usize>,
}

/// Jobs that the clock releases, whether or not the thread gets to run them.
#[derive(Clone, Debug)]
pub(crate) struct Periodic {
    /// The thread's variable that holds the release time of its next or present job.
    pub release: u16,
    pub period: Expression,
    /// From a job's release.
    pub deadline: Expression,
    /// A release that has gone by is left out.
    pub skip: bool,
    /// How many jobs there are, and the thread's variable that counts those after the present one;
    /// None: without end.
    pub limit: Option<(Expression, u16)>,
}

/// A variable that every thread has, and the scheduler's import if it has one of that name.
#[derive(Clone, Debug)]
pub(crate) struct ThreadVariable {
    /// With a `#` it is the reader's own.
    pub name: String,
    /// No expression uses it: it can only be meant for the scheduler.
    pub only_set: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Global {
    pub name: String,
    pub initial: f64,
}

/// Globals that change by themselves at a time.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub at: Time,
    pub set: Vec<(Variable, Expression)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Semaphore {
    pub name: String,
    pub initial: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub name: String,
    /// Messages that find no room are lost and counted.
    pub capacity: Option<usize>,
    /// Lies outside the machine: nodes of a cluster meet there.
    pub shared: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    pub name: String,
    pub parties: u32,
}

impl Workload {
    /// Reads a workload in Attune's own form, see docs/workloads.md. `name` is the file's name, for
    /// messages.
    pub fn from_toml(text: &str, name: &str) -> Result<Workload, Diagnostic> {
        toml::read(Source::new(name, text))
    }

    /// Reads a workload of rt-app. What it holds that has no meaning here is said in
    /// [`Workload::notes`].
    pub fn from_rt_app(text: &str, name: &str) -> Result<Workload, Diagnostic> {
        rt_app::read(Source::new(name, text))
    }

    /// Reads either form, by the file's ending.
    pub fn from_file_text(text: &str, name: &str) -> Result<Workload, Diagnostic> {
        if name.ends_with(".json") {
            Workload::from_rt_app(text, name)
        } else {
            Workload::from_toml(text, name)
        }
    }

    pub(crate) fn locate(&self, operation: Address) -> Location {
        self.source.locate(&self.places[operation as usize])
    }

    /// Whether a thread outside spawns others.
    pub(crate) fn outside_spawns(&self) -> bool {
        self.templates.iter().enumerate().filter(|(_, template)| template.outside).any(
            |(number, template)| {
                let end = self
                    .templates
                    .get(number + 1)
                    .map_or(self.operations.len(), |next| next.entry as usize);
                self.operations[template.entry as usize..end]
                    .iter()
                    .any(|operation| matches!(operation, Operation::Spawn { .. }))
            },
        )
    }

    /// The variables of a cluster that its threads read and update outside of handlers, by number.
    pub fn cluster_variables(&self) -> &[String] {
        &self.cluster_variables
    }

    /// The name of a channel.
    pub fn channel_name(&self, channel: u16) -> &str {
        &self.channels[channel as usize].name
    }

    /// Threads that the run begins with, without those outside.
    pub fn threads(&self) -> u32 {
        self.templates
            .iter()
            .filter(|template| !template.outside)
            .map(|template| template.count)
            .sum()
    }
}

/// The name of a thread: `hog` if the workload has one of them, else `hog.3`.
pub(crate) fn thread_name(template: &str, count: u32, index: u32) -> String {
    if count == 1 && index == 0 { template.to_string() } else { format!("{template}.{index}") }
}
