//! CPUs that go and come under threads that compute and threads that sleep: each goes on, and so
//! does the scheduler. Needs root and a second CPU, which is there again in the end.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::Builder;

use anyhow::{Context, Result, bail, ensure};
use attune_linux::time::{MILLISECOND, SECOND, Time};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::random::Random;
use crate::{clock, ext, numbers};

const STACK: usize = 64 << 10;
/// CPU time of a turn of a computing thread.
const TURN: Time = MILLISECOND;
/// For which a sleeping thread sleeps.
const SLEEP: Time = 10 * MILLISECOND;
/// Between two changes, once all is as it was: up to this.
const CALM: Time = 300 * MILLISECOND;
const LOOK: Time = MILLISECOND;
/// A thread that has not run for so long is lost.
const PATIENCE: Time = 60 * SECOND;

/// Takes the machine's last CPU away and brings it back so many times in all, at random moments,
/// under so many threads.
pub fn run(changes: u32, threads: usize, seed: u64) -> Result<Value> {
    ensure!(changes > 0 && threads > 0, "at least one change, and one thread");
    let cpus = std::thread::available_parallelism()?.get();
    ensure!(cpus > 1, "the only CPU cannot go");
    let (turns, scheduler) = (child::shared(threads)?, ext::current());
    let _crowd = Child::start(|| take_turns(turns))?;
    let cpu = Cpu::last(cpus)?;
    let mut random = Random(seed);
    let until_all_run = || {
        let before: Vec<u64> = turns.iter().map(|turn| turn.load(Relaxed)).collect();
        wait_until("not every thread runs on", || {
            turns.iter().zip(&before).all(|(turn, before)| turn.load(Relaxed) > *before)
        })
    };
    until_all_run()?;
    let (mut took, mut back, mut all_ran) = (vec![], vec![], vec![]);
    for change in 0..changes {
        clock::sleep_until(clock::now() + random.below(CALM));
        let since = clock::now();
        cpu.set(change % 2 == 1)?;
        took.push(clock::now() - since);
        wait_until("the scheduler does not come back", || ext::current() == scheduler)?;
        back.push(clock::now() - since);
        until_all_run()?;
        all_ran.push(clock::now() - since);
    }
    Ok(json!({
        "changes": changes,
        "threads": threads,
        "kernel_ns": numbers::quantiles(&mut took),
        "back_ns": numbers::quantiles(&mut back),
        "all_ran_ns": numbers::quantiles(&mut all_ran),
    }))
}

/// Every second thread computes; the others sleep, and look at the clock.
fn take_turns(turns: &'static [AtomicU64]) -> i32 {
    let mut started = vec![];
    for (number, turn) in turns.iter().enumerate() {
        let work = move || loop {
            turn.fetch_add(1, Relaxed);
            match number % 2 {
                0 => clock::compute(TURN),
                _ => clock::sleep_until(clock::now() + SLEEP),
            }
        };
        match Builder::new().stack_size(STACK).spawn(work) {
            Ok(thread) => started.push(thread),
            Err(error) => {
                eprintln!("attune-load: a thread: {error}");
                return 1;
            }
        }
    }
    // They go on until this process is killed.
    started.into_iter().for_each(|thread| drop(thread.join()));
    1
}

fn wait_until(otherwise: &str, so: impl Fn() -> bool) -> Result<()> {
    let limit = clock::now() + PATIENCE;
    while !so() {
        if clock::now() > limit {
            bail!("{otherwise}, {} s after a CPU came or went", PATIENCE / SECOND);
        }
        clock::sleep_until(clock::now() + LOOK);
    }
    Ok(())
}

/// A CPU that may go; it is there when this is dropped.
struct Cpu(PathBuf);

impl Cpu {
    fn last(cpus: usize) -> Result<Cpu> {
        let file = format!("/sys/devices/system/cpu/cpu{}/online", cpus - 1);
        ensure!(fs::exists(&file)?, "no CPU can go: there is no {file}");
        Ok(Cpu(file.into()))
    }

    fn set(&self, is_there: bool) -> Result<()> {
        fs::write(&self.0, if is_there { "1" } else { "0" })
            .with_context(|| format!("cannot write to {} (needs root)", self.0.display()))
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        let _ = self.set(true);
    }
}
