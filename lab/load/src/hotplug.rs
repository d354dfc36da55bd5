//! CPUs that go and come under threads that compute and threads that sleep: each goes on, and so
//! does the scheduler. Needs root and a second CPU, which is there again in the end.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use attune_linux::time::{MILLISECOND, Time};
use serde_json::{Value, json};

use crate::random::Random;
use crate::turns::{Crowd, wait_until};
use crate::{clock, ext, numbers};

/// Between two changes, once all is as it was: up to this.
const CALM: Time = 300 * MILLISECOND;

/// Takes the machine's last CPU away and brings it back so many times in all, at random moments,
/// under so many threads.
pub fn run(changes: u32, threads: usize, seed: u64) -> Result<Value> {
    ensure!(changes > 0, "at least one change");
    let cpus = std::thread::available_parallelism()?.get();
    ensure!(cpus > 1, "the only CPU cannot go");
    let scheduler = ext::current();
    let crowd = Crowd::start(threads)?;
    let cpu = Cpu::last(cpus)?;
    let mut random = Random(seed);
    let (mut took, mut back, mut all_ran) = (vec![], vec![], vec![]);
    for change in 0..changes {
        let is_there = change % 2 == 1;
        let event = if is_there { "a CPU came" } else { "a CPU went" };
        clock::sleep_until(clock::now() + random.below(CALM));
        let since = clock::now();
        cpu.set(is_there)?;
        took.push(clock::now() - since);
        wait_until("the scheduler does not come back", event, || ext::current() == scheduler)?;
        back.push(clock::now() - since);
        crowd.wait_until_all_ran(event)?;
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
