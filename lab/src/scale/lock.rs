//! Measures for how many instructions a policy holds its lock: in a deterministic machine with one
//! CPU, in which an instruction takes a nanosecond, with the engine compiled to read the clock as
//! it gives the lock back.
//!
//! The load is two processes that send a byte to and fro. Figures are for one message: a blocking
//! read, a wake-up, and the choice of the other process.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use attune_vm::{Cache, Command, Kind, Options as Machine};
use serde::Serialize;
use serde_json::Value;

use crate::experiment::Options;
use crate::kernel::load_program;
use crate::schedulers;

/// In front of a program's text: it counts the time under its lock.
const TIMED: &str = "#define ATTUNE_TIMES_LOCK 1\n";
/// Longest real time of a machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// So long the kernel lets a thread wait, in ms: the machine boots while the scheduler runs.
const WATCHDOG: &str = "30000";

/// What one message costs under a policy, in instructions.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    pub policy: String,
    /// A message in all.
    pub message: f64,
    /// Under the lock, for each message.
    pub held: f64,
    /// Under the lock, for each time that it is taken.
    pub each: f64,
    /// Under the lock, for each call of `schedule`.
    pub decision: f64,
    /// Handler calls for each message.
    pub calls: f64,
}

/// Runs the load under the policy.
pub fn measure(policy: &str, turns: u32, options: &Options, cache: &Cache) -> Result<Cost> {
    let folder = options.folder.join(super::EXPERIMENT.name);
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let object = folder.join(format!("{policy}.bpf.o"));
    schedulers::compile_for_kernel(policy, TIMED, &object, 1, 1)?;
    let (attune, load) = (options.programs.join("attune"), load_program(&options.programs)?);
    let shown = |path: &Path| path.display().to_string();
    let mut words = vec![shown(&attune), "run".to_owned(), shown(&object)];
    words.extend(["--all", "--timeout", WATCHDOG, "--"].map(str::to_owned));
    words.extend([shown(&load), "ping-pong".to_owned(), "--turns".to_owned(), turns.to_string()]);
    let machine = Machine {
        topology: attune_vm::Topology::flat(1),
        memory: 1024,
        kind: Kind::Deterministic { pack: vec![attune, object, load], seed: 1 },
        timeout: Some(PATIENCE),
    };
    let output = attune_vm::run(cache, &machine, &Command::new(words))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, told) = (text(&output.output), text(&output.error_output));
    ensure!(output.status.success(), "{policy}: {}\n{told}", output.status);
    let figures: Value = serde_json::from_str(said.trim().lines().last().unwrap_or_default())
        .with_context(|| format!("{policy}: {said}"))?;
    let figure = |name: &str| figures["figures"][name].as_f64().context("a figure of ping-pong");
    let counts = Counts::read(&told).with_context(|| format!("{policy}: {told}"))?;
    let messages = figure("all_switches")?;
    Ok(Cost {
        policy: policy.to_owned(),
        message: figure("ns_per_switch")?,
        held: counts.held / messages,
        each: counts.held / counts.locks,
        decision: counts.held / counts.schedule,
        calls: counts.calls / messages,
    })
}

/// From `attune run`'s last words.
struct Counts {
    locks: f64,
    held: f64,
    schedule: f64,
    /// Calls of all handlers.
    calls: f64,
}

impl Counts {
    fn read(words: &str) -> Option<Counts> {
        let number = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
        let (_, lock) = words.split_once("the lock held ")?;
        let (_, held) = lock.split_once(" times for ")?;
        let (_, handlers) = words.split_once("handler calls: ")?;
        let count = |call: &str| call.split_once(' ')?.1.parse::<f64>().ok();
        let calls: Vec<&str> = handlers.lines().next()?.split(", ").collect();
        let schedule = calls.iter().find(|call| call.starts_with("schedule "))?;
        Some(Counts {
            locks: number(lock)?,
            held: number(held)?,
            schedule: count(schedule)?,
            calls: calls.iter().filter_map(|call| count(call)).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_last_words() {
        let words = "attune: 9 dispatches, 0 kept, 1 kicks, 2 timers, the lock held 40 times for \
                     8000 ns; handler calls: newthread 3, schedule 12, switch_out 11\n";
        let counts = Counts::read(words).expect("counts");
        assert_eq!((counts.locks, counts.held), (40.0, 8000.0));
        assert_eq!((counts.schedule, counts.calls), (12.0, 26.0));
        assert!(Counts::read("attune: 9 dispatches; handler calls: schedule 12").is_none());
    }
}
