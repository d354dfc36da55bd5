//! The sched_ext scheduler beneath the workload: which it is, starting one, and whether it stayed.

use std::fs::{self, File};
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use attune_linux::{process, signal};

use crate::child;

/// A scheduler may take this long to load: some need many seconds in a machine that is emulated.
const PATIENCE: Duration = Duration::from_secs(120);

/// The name of the scheduler that is loaded; none where there is none, or no sched_ext.
pub fn current() -> Option<String> {
    let read = |name: &str| fs::read_to_string(format!("/sys/kernel/sched_ext/{name}")).ok();
    read("state").filter(|state| state.trim() == "enabled")?;
    read("root/ops").map(|name| name.trim().to_owned())
}

/// A scheduler's program, if one is to run, and what it says. Dropping it ends it.
pub struct Scheduler(Option<(Child, File)>);

impl Scheduler {
    /// Starts a program that loads a scheduler, and waits until it is loaded; no words: nothing is
    /// started.
    pub fn start(words: &str) -> Result<Scheduler> {
        let mut words = words.split_whitespace();
        let Some(program) = words.next() else { return Ok(Scheduler(None)) };
        ensure!(
            current().is_none(),
            "a scheduler is loaded already: {}",
            current().unwrap_or_default()
        );
        let log = child::memory_file().context("cannot make a file in memory")?;
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let mut scheduler = Scheduler(Some((child, log)));
        let patience = Instant::now() + PATIENCE;
        while current().is_none() {
            if let Some(status) = scheduler.ended()? {
                bail!(
                    "{program} ended ({status}) instead of loading a scheduler:\n{}",
                    scheduler.last_words()
                );
            }
            ensure!(
                Instant::now() < patience,
                "{program} loads no scheduler:\n{}",
                scheduler.last_words()
            );
            thread::sleep(Duration::from_millis(50));
        }
        // What it does when it has just begun is not measured.
        thread::sleep(Duration::from_secs(1));
        Ok(scheduler)
    }

    /// Err: another scheduler is there than when the workload began, or none: the figures are worth
    /// nothing.
    pub fn still_there(&self, before: &Option<String>) -> Result<()> {
        let after = current();
        let name = |scheduler: &Option<String>| {
            scheduler.clone().unwrap_or_else(|| "the fair class".to_owned())
        };
        ensure!(
            after == *before,
            "{} was thrown out while it was measured; {} has taken over:\n{}",
            name(before),
            name(&after),
            self.last_words()
        );
        Ok(())
    }

    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.as_mut().map_or(Ok(None), |(child, _)| child.try_wait())
    }

    fn last_words(&self) -> String {
        let Some((_, log)) = &self.0 else { return String::new() };
        let text = child::said(log);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.0 {
            // It was not waited for, so the number is its own; it may end by itself just now.
            let _ = process::signal(child.id(), signal::INTERRUPT);
            let patience = Instant::now() + Duration::from_secs(5);
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < patience {
                thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
