//! The parts of an experiment in the kernel: which contestants run which workloads in which
//! machine, and which figures a table shows.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::contestant::Contestant;
use super::database::Database;
use super::films::Films;
use super::fixture::Fixture;
use super::place::Place;
use crate::experiment::Options;
use crate::programs::words_of;

/// One table.
pub struct Part {
    pub title: &'static str,
    pub place: Place,
    /// Ratios are to the first.
    pub contestants: fn() -> Vec<Contestant>,
    pub workloads: &'static [Workload],
    pub figures: &'static [Figure],
}

/// MiB of most machines.
const MEMORY: u64 = 1024;

/// A command of `attune-load`.
pub struct Workload {
    pub name: &'static str,
    /// As in a shell; `{programs}` stands for the folder of the project's programs.
    pub words: &'static str,
    /// Follow `words`.
    pub more: &'static str,
    /// Files that a deterministic machine needs beside `attune-load`.
    pub needs: fn(&Options) -> Result<Vec<PathBuf>>,
    /// Its placeholder in the words stands for its folder.
    pub fixture: Option<Fixture>,
    /// MiB of its machine.
    pub memory: u64,
    /// `--quick` leaves it out.
    pub is_thorough: bool,
    /// `{seconds}` and `{count}` in the words stand for it; `{seed}` for the run's seed or round.
    pub length: Option<Length>,
}

/// How much a full and a brief run do.
#[derive(Clone, Copy)]
pub enum Length {
    Seconds([u32; 2]),
    Count([u32; 2]),
}

impl Workload {
    pub const fn new(name: &'static str, words: &'static str) -> Workload {
        Workload {
            name,
            words,
            more: "",
            needs: |_| Ok(vec![]),
            fixture: None,
            memory: MEMORY,
            is_thorough: false,
            length: None,
        }
    }

    /// The same with words behind its own.
    pub const fn with(self, more: &'static str) -> Workload {
        Workload { more, ..self }
    }

    /// The same for `seconds`; brief runs ([`Contestant::briefly`], `--quick`) last `brief`.
    pub const fn lasting(self, seconds: u32, brief: u32) -> Workload {
        Workload { length: Some(Length::Seconds([seconds, brief])), ..self }
    }

    /// The same so many times; brief runs do it `brief` times.
    pub const fn counting(self, count: u32, brief: u32) -> Workload {
        Workload { length: Some(Length::Count([count, brief])), ..self }
    }

    /// The same for full runs alone: `--quick` leaves it out.
    pub const fn thorough(self) -> Workload {
        Workload { is_thorough: true, ..self }
    }

    /// The same in a machine with `memory` MiB.
    pub const fn with_memory(self, memory: u64) -> Workload {
        Workload { memory, ..self }
    }

    /// The same with the machine's C compiler.
    pub const fn with_compiler(self) -> Workload {
        self.needing(compiler)
    }

    /// The same with files that a deterministic machine needs.
    pub const fn needing(self, needs: fn(&Options) -> Result<Vec<PathBuf>>) -> Workload {
        Workload { needs, ..self }
    }

    /// The same with programs and films, in a larger machine: files may take half of its memory,
    /// and ffmpeg's libraries are large.
    pub const fn playing(
        self,
        films: Films,
        needs: fn(&Options) -> Result<Vec<PathBuf>>,
    ) -> Workload {
        Workload { needs, fixture: Some(Fixture::Films(films)), memory: MEMORY + 512, ..self }
    }

    /// The same with a database and what its server and clients need.
    pub const fn on_database(
        self,
        database: Database,
        needs: fn(&Options) -> Result<Vec<PathBuf>>,
    ) -> Workload {
        Workload { needs, fixture: Some(Fixture::Database(database)), ..self }
    }

    /// Whether such a run of the experiment has it.
    pub fn is_in(&self, quick: bool) -> bool {
        !(quick && self.is_thorough)
    }

    /// How long a run lasts, if the lab says so.
    pub fn lasts(&self, brief: bool) -> Option<u32> {
        match self.length? {
            Length::Seconds(seconds) => Some(seconds[usize::from(brief)]),
            Length::Count(_) => None,
        }
    }

    /// Its words in a run with this seed or round, one by one.
    pub fn words(&self, brief: bool, seed: u64) -> Vec<String> {
        let command = format!("{} {}", self.words, self.more).replace("{seed}", &seed.to_string());
        let (placeholder, lengths) = match self.length {
            None => return words_of(&command),
            Some(Length::Seconds(seconds)) => ("{seconds}", seconds),
            Some(Length::Count(counts)) => ("{count}", counts),
        };
        words_of(&command.replace(placeholder, &lengths[usize::from(brief)].to_string()))
    }
}

/// The programs that `cc` starts when it does not link.
pub fn compiler(_: &Options) -> Result<Vec<PathBuf>> {
    let place = |name: &str| -> Result<PathBuf> {
        let output = Command::new("cc").arg(format!("-print-prog-name={name}")).output();
        let output = output.context("there is no C compiler named cc")?;
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        // A bare name is found by PATH.
        Ok(if path.is_absolute() { path } else { PathBuf::from("/usr/bin").join(path) })
    };
    Ok(vec![PathBuf::from("/usr/bin/cc"), place("cc1")?, place("as")?])
}

/// One number of a run.
pub struct Figure {
    /// A column's head, unique in its experiment.
    pub name: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// A JSON pointer into the workload's figures.
    pub pointer: &'static str,
    /// Divides the figure, so that it has the unit of its head.
    pub unit: f64,
    /// The table has a column with the ratio to the part's first contestant.
    pub ratio: bool,
    /// The largest of several runs counts, not their median.
    pub at_worst: bool,
}

impl Figure {
    pub const fn new(
        name: &'static str,
        workload: &'static str,
        pointer: &'static str,
        unit: f64,
    ) -> Figure {
        Figure { name, workload, pointer, unit, ratio: false, at_worst: false }
    }

    /// The same with its ratio beside it.
    pub const fn with_ratio(self) -> Figure {
        Figure { ratio: true, ..self }
    }

    /// The same, of which the largest of several runs counts.
    pub const fn at_worst(self) -> Figure {
        Figure { at_worst: true, ..self }
    }
}
