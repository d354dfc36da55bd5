//! Experiments in the kernel: our schedulers, the fair class, and other people's sched_ext schedulers under the same workloads.
//!
//! An experiment is a few constants ([`Description`]): tables ([`Part`]) that say whom to compare ([`Contestant`]), under what
//! ([`Workload`]), in which machine ([`Place`]) and what to read from it ([`Figure`]); and a function that judges.
//!
//! | file | what it does |
//! |---|---|
//! | [`bench`] | plans the runs, makes those that were not made before |
//! | [`results`] | what can be asked of them: medians, the worst, ratios |
//! | [`machine`] | one run: a command in a virtual machine of its own, and the figures that it prints |
//! | [`content`] | films for real players |
//! | [`kept`] | runs that were made before, known again by all that they were made of |
//! | [`confidence`] | medians with their confidence interval |
//! | [`story`] | tables, claims, pictures |
//!
//! A contestant that cannot be run (a peer that is not built, a scheduler that is thrown out) is a row that says why. It never makes a
//! claim hold.

mod bench;
mod confidence;
mod content;
mod contestant;
pub mod coop;
pub mod fairness;
mod kept;
mod machine;
pub mod random_schedulers;
pub mod reserve;
mod results;
mod story;
pub mod switch_cost;
pub mod wakeup_latency;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

pub use content::Films;
pub use contestant::Contestant;
pub use machine::Run;
pub use results::{Results, Row};

use crate::experiment::{Method, Options, Progress};
use crate::report::{Claim, Report};

/// An experiment in the kernel.
pub struct Description {
    pub name: &'static str,
    pub title: &'static str,
    /// How it is measured and how to read it, in paragraphs.
    pub text: &'static [&'static str],
    /// What others have published, or that nobody has.
    pub published: &'static str,
    pub parts: &'static [Part],
    /// Of deterministic machines: so many runs are made of each kind; one with --quick, and of who is there to be compared with
    /// ([`Contestant::briefly`]).
    pub seeds: &'static [u64],
    /// The figure that is drawn.
    pub drawn: &'static str,
    pub claims: fn(&Results) -> Vec<Claim>,
}

impl Method for Description {
    fn check(&self, options: &Options) -> Result<()> {
        bench::check(self, options)
    }

    fn run(&self, options: &Options, progress: Progress) -> Result<Report> {
        story::run(self, options, progress)
    }
}

/// For claims of the worst.
pub const FIVE_SEEDS: &[u64] = &[1, 2, 3, 4, 5];
/// For costs and shares, which differ by less than a hundredth between seeds.
pub const TWO_SEEDS: &[u64] = &[1, 2];

/// One table.
pub struct Part {
    pub title: &'static str,
    pub place: Place,
    /// The first is the measure of the others.
    pub contestants: fn() -> Vec<Contestant>,
    pub workloads: &'static [Workload],
    pub figures: &'static [Figure],
}

/// Where a part's runs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Each in a deterministic virtual machine (docs/vm.md), in which a nanosecond is an instruction, of whichever CPU: the same run gives
    /// the same figures on every machine with the same set-up. Runs differ in the seed of the machine.
    Deterministic { cpus: u32 },
    /// In real time on two CPUs, all contestants of a round in one machine, one after the other, each round beginning with another
    /// one; figures are medians over rounds with their confidence interval, and ratios within a round.
    TwoCpus,
}

impl Place {
    pub const ONE_CPU: Place = Place::Deterministic { cpus: 1 };

    fn is_deterministic(self) -> bool {
        matches!(self, Place::Deterministic { .. })
    }

    fn cpus(self) -> u32 {
        match self {
            Place::Deterministic { cpus } => cpus,
            Place::TwoCpus => 2,
        }
    }
}

/// MiB of most machines.
const MEMORY: u64 = 1024;

/// What runs while it is measured.
pub struct Workload {
    pub name: &'static str,
    /// For `attune-load`.
    pub words: &'static [&'static str],
    /// Behind those.
    pub more: &'static [&'static str],
    /// What it needs beside `attune-load` in a deterministic machine.
    pub needs: fn(&Options) -> Result<Vec<PathBuf>>,
    /// Their folder takes the place of `{films}` in the words.
    pub films: Option<Films>,
    /// MiB of its machine.
    pub memory: u64,
    /// In full, and in brief runs; they take the place of `{seconds}` in the words.
    pub seconds: Option<[u32; 2]>,
}

impl Workload {
    pub const fn new(name: &'static str, words: &'static [&'static str]) -> Workload {
        Workload { name, words, more: &[], needs: |_| Ok(vec![]), films: None, memory: MEMORY, seconds: None }
    }

    /// The same with words behind its own.
    pub const fn with(self, more: &'static [&'static str]) -> Workload {
        Workload { more, ..self }
    }

    /// The same for so many seconds, and in brief runs ([`Contestant::briefly`], --quick) for so many.
    pub const fn lasting(self, seconds: u32, brief: u32) -> Workload {
        Workload { seconds: Some([seconds, brief]), ..self }
    }

    /// The same in a machine with so much memory, in MiB.
    pub const fn with_memory(self, memory: u64) -> Workload {
        Workload { memory, ..self }
    }

    /// The same with the machine's C compiler.
    pub const fn with_compiler(self) -> Workload {
        Workload { needs: compiler, ..self }
    }

    /// The same with programs and films. In a deterministic machine they have half of the memory that their archive leaves; and ffmpeg's
    /// libraries are large.
    pub const fn playing(self, films: Films, needs: fn(&Options) -> Result<Vec<PathBuf>>) -> Workload {
        Workload { needs, films: Some(films), memory: MEMORY + 512, ..self }
    }

    /// How long a run lasts, if the lab says so.
    fn lasts(&self, brief: bool) -> Option<u32> {
        self.seconds.map(|[full, short]| if brief { short } else { full })
    }

    fn words(&self, brief: bool) -> impl Iterator<Item = String> {
        let seconds = self.lasts(brief).map(|seconds| seconds.to_string());
        self.words.iter().chain(self.more).map(move |word| match &seconds {
            Some(seconds) => word.replace("{seconds}", seconds),
            None => (*word).to_owned(),
        })
    }
}

/// The programs of which `cc` is made when it does not link.
fn compiler(_: &Options) -> Result<Vec<PathBuf>> {
    let place = |name: &str| -> Result<PathBuf> {
        let output = Command::new("cc").arg(format!("-print-prog-name={name}")).output();
        let output = output.context("there is no C compiler named cc")?;
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        // A bare name: it is found by PATH.
        Ok(if path.is_absolute() { path } else { PathBuf::from("/usr/bin").join(path) })
    };
    Ok(vec![PathBuf::from("/usr/bin/cc"), place("cc1")?, place("as")?])
}

/// One number of a run.
pub struct Figure {
    /// A column's head; unique in its experiment.
    pub name: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// Where it stands in the workload's figures, as a JSON pointer.
    pub pointer: &'static str,
    /// It is divided by this to be in the unit of its head.
    pub unit: f64,
    /// The table has a column with the ratio to the part's first contestant.
    pub ratio: bool,
}

impl Figure {
    pub const fn new(name: &'static str, workload: &'static str, pointer: &'static str, unit: f64) -> Figure {
        Figure { name, workload, pointer, unit, ratio: false }
    }

    /// The same with its ratio beside it.
    pub const fn with_ratio(self) -> Figure {
        Figure { ratio: true, ..self }
    }
}
