//! A program whose threads are all created on worker 1 and move, or are spread over the workers and
//! stay: on one worker and on two.
//!
//! The two take turns, so a machine that changes its speed changes both sides of a pair.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::contestant::call;
use crate::experiment::{Options, Progress};
use crate::median_interval::{self, Median};
use crate::{files, schedulers};

/// Threads that compute, and how often each yields.
const THREADS: u32 = 8;
const YIELDS: u32 = 5000;

/// For each pair the milliseconds on one worker and on two.
#[derive(Serialize)]
pub struct Moving {
    pub pairs: Vec<[f64; 2]>,
}

/// Where its threads are.
#[derive(Clone, Copy)]
pub enum Threads {
    Move,
    AreSpread,
}

pub fn measure(
    options: &Options,
    threads: Threads,
    count: usize,
    progress: Progress,
) -> Result<Moving> {
    let word = match threads {
        Threads::Move => "moves",
        Threads::AreSpread => "spread",
    };
    progress(&format!("compiling the program for two workers ({word})"));
    let folder = options.folder.join(word);
    files::create_folder(&folder)?;
    for (name, text) in [
        ("attune.h", include_str!("../../../engines/threads/include/attune.h")),
        ("moves.c", include_str!("../../peers/threads/moves.c")),
    ] {
        files::write_atomically(&folder.join(name), text.as_bytes())?;
    }
    let place = format!("-L{}", options.programs.display());
    let path = format!("-Wl,-rpath,{}", options.programs.display());
    let words = ["-O2", "-I.", "-o", "program", "moves.c", &place, &path, "-lattune_threads"];
    call(Command::new("cc").args(words), &folder)?;
    let policy = folder.join("round_robin.so");
    schedulers::compile("round_robin", &policy)?;
    let program = Program { command: folder.join("program"), policy, word };
    let mut pairs = vec![];
    for pair in 0..count {
        progress(&format!("two workers ({word}), pair {} of {count}", pair + 1));
        let mut times = [0.0; 2];
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        for place in order {
            times[place] = program.run(place + 1)?;
        }
        pairs.push(times);
    }
    Ok(Moving { pairs })
}

struct Program {
    command: PathBuf,
    policy: PathBuf,
    word: &'static str,
}

impl Program {
    fn run(&self, workers: usize) -> Result<f64> {
        let mut command = Command::new(&self.command);
        command.args([THREADS.to_string(), YIELDS.to_string()]).arg(self.word);
        command.env("ATTUNE_SCHED", &self.policy).env("ATTUNE_WORKERS", workers.to_string());
        let output = command.output().context("the program for two workers")?;
        let said = String::from_utf8_lossy(&output.stdout);
        match said.trim().parse() {
            Ok(figure) if output.status.success() => Ok(figure),
            _ => bail!("it failed: {said}{}", String::from_utf8_lossy(&output.stderr)),
        }
    }
}

impl Moving {
    /// Milliseconds on one worker, and on two.
    pub fn median(&self, workers: usize) -> Option<Median> {
        self.over(|pair| pair[workers - 1])
    }

    /// The time on two workers by that on one.
    pub fn ratio(&self) -> Option<Median> {
        self.over(|[one, two]| two / one)
    }

    fn over(&self, figure: impl Fn(&[f64; 2]) -> f64) -> Option<Median> {
        median_interval::of(&self.pairs.iter().map(figure).collect::<Vec<_>>())
    }
}
