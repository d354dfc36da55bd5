//! What is simulated: threads and what they do, read from a TOML file or from rt-app's JSON.
//!
//! Invariant: a [`Workload`] is complete and consistent; every mistake that can be found without running was
//! reported, with its place, when it was read. Times are nanoseconds.

mod actions;
mod builder;
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
use crate::policy::{CpuSet, Time};
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
    pub entry: Address,
    pub place: Range<usize>,
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
}

#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    pub name: String,
    pub parties: u32,
}

impl Workload {
    /// Reads a workload in Attune's own form, see docs/workloads.md. `name` is the file's name, for messages.
    pub fn from_toml(text: &str, name: &str) -> Result<Workload, Diagnostic> {
        toml::read(Source::new(name, text))
    }

    /// Reads a workload of rt-app. What it holds that has no meaning here is said in [`Workload::notes`].
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
                let end =
                    self.templates.get(number + 1).map_or(self.operations.len(), |next| next.entry as usize);
                self.operations[template.entry as usize..end]
                    .iter()
                    .any(|operation| matches!(operation, Operation::Spawn { .. }))
            },
        )
    }

    /// Threads that the run begins with, without those outside.
    pub fn threads(&self) -> u32 {
        self.templates.iter().filter(|template| !template.outside).map(|template| template.count).sum()
    }
}
