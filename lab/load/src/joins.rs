//! Runs of other policies that join one that has the machine and leave it at random: while three
//! policies share the machine each has its part, and each run ends with its command's own status.
//! Needs root, and the program `attune` beside this one.

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use attune_linux::time::{MILLISECOND, SECOND, Time};
use attune_linux::{process, procfs, signal};
use serde_json::{Value, json};

use crate::random::Random;
use crate::{child, clock, ext, hogs};

/// Small, so that most of a run is no compiler's.
const POLICIES: [&str; 3] = ["round_robin", "fifo", "lottery"];
/// The weights of two commands, each beside all others, and what follows for all three.
const WEIGHTS: [&str; 2] = ["3:1", "2:1"];
const PARTS: [f64; 3] = [3.0 / 6.0, 2.0 / 6.0, 1.0 / 6.0];
/// One for each CPU of the machine that this is made for.
const HOGS: usize = 2;
/// At the same time.
const MOST_RUNS: usize = 4;
/// Between two that begin, and how long a command lasts: up to this.
const CALM: Time = 2 * SECOND;
const COMMAND: Time = 4 * SECOND;
/// A run compiles and loads up to eight policies, after others.
const PATIENCE: Time = 300 * SECOND;
const LOOK: Time = 20 * MILLISECOND;

/// Measures the parts of three policies over `time`, then lets so many runs join.
pub fn run(joins: usize, time: Duration, seed: Option<u64>) -> Result<Value> {
    let seed = seed.unwrap_or_else(clock::now);
    let base = Run::start(&["fair", "--all"])?;
    let has_it = || ext::current().as_deref() == Some("attune_fair");
    until("the first run does not begin", has_it)?;
    let parts = shares(time)?;
    until("the machine is not given back", has_it)?;
    let runs = random_runs(joins, &mut Random(seed));
    let most = runs.with_context(|| format!("with --seed {seed}"))?;
    until("the machine is not given back", has_it)?;
    base.end()?;
    // Relative to what it should be.
    let off = parts.iter().zip(PARTS).map(|(got, part)| (got / part - 1.0).abs());
    let off = off.fold(0.0, f64::max);
    Ok(json!({ "joins": joins, "most_at_once": most, "parts": parts, "worst_deviation": off }))
}

/// The parts of two CPUs that three policies have. All begin to compute when the last run has come:
/// it compiles beside others.
fn shares(time: Duration) -> Result<Vec<f64>> {
    let gate = std::env::temp_dir().join(format!("attune-joins-{}", std::process::id()));
    let own = std::env::current_exe()?.display().to_string();
    let hogs = format!("exec {own} hogs --count {HOGS} --seconds 3600");
    let wait = format!("while ! [ -e {} ]; do sleep 0.1; done; {hogs}", gate.display());
    let begin = |(policy, weight): (&&str, &&str)| -> Result<Run> {
        let mut run = Run::joining(policy, weight, &wait)?;
        run.begins("its command", |run| run.command().is_some())?;
        Ok(run)
    };
    let mut runs = POLICIES.iter().zip(&WEIGHTS).map(begin).collect::<Result<Vec<_>>>()?;
    File::create(&gate)?;
    let begun = runs
        .iter_mut()
        .try_for_each(|run| run.begins("its command's processes", |run| run.hogs().len() == HOGS));
    let _ = std::fs::remove_file(&gate);
    begun?;
    // For all others, which are more than these: what the commands do not have is theirs.
    let _others = (0..HOGS).map(|_| hogs::start(0)).collect::<Result<Vec<_>>>()?;
    let commands: Vec<Vec<u32>> = runs.iter().map(Run::hogs).collect();
    let used = || -> Result<Vec<u64>> {
        let of = |pids: &Vec<u32>| -> Result<u64> {
            let times = pids.iter().map(|pid| clock::cpu_time(*pid));
            Ok(times.sum::<Result<u64, _>>()?)
        };
        commands.iter().map(of).collect()
    };
    clock::sleep_until(clock::now() + SECOND);
    let (begin, at_begin) = (clock::now(), used()?);
    clock::sleep_until(begin + time.as_nanos() as u64);
    let (end, at_end) = (clock::now(), used()?);
    for run in runs {
        run.end_command()?;
    }
    let all = ((end - begin) * HOGS as u64) as f64;
    let mut parts: Vec<f64> =
        at_end.iter().zip(&at_begin).map(|(end, begin)| (end - begin) as f64 / all).collect();
    parts.push(1.0 - parts.iter().sum::<f64>());
    Ok(parts)
}

/// How many there were at once.
fn random_runs(joins: usize, random: &mut Random) -> Result<usize> {
    let (mut runs, mut begun, mut most): (Vec<(Run, u64)>, _, _) = (vec![], 0, 0);
    let mut next = clock::now();
    while begun < joins || !runs.is_empty() {
        if begun < joins && runs.len() < MOST_RUNS && clock::now() >= next {
            let policy = POLICIES[random.below(POLICIES.len() as u64) as usize];
            let weight = format!("{}:{}", 1 + random.below(3), 1 + random.below(3));
            let status = 2 + random.below(100);
            let seconds = random.below(COMMAND) as f64 / SECOND as f64;
            let command = format!("sleep {seconds:.2}; exit {status}");
            runs.push((Run::joining(policy, &weight, &command)?, status));
            begun += 1;
            next = clock::now() + random.below(CALM);
        }
        most = most.max(runs.len());
        let mut go_on = Vec::new();
        for (mut run, wanted) in runs {
            match run.ended()? {
                Some(status) => ensure!(
                    status.code() == Some(wanted as i32),
                    "a run ended with {status} in place of {wanted}:\n{}",
                    child::said(&run.log)
                ),
                None => go_on.push((run, wanted)),
            }
        }
        runs = go_on;
        clock::sleep_until(clock::now() + LOOK);
    }
    Ok(most)
}

/// An `attune run`; killed where it is dropped.
struct Run {
    child: Child,
    log: File,
    since: Time,
}

impl Run {
    /// With a command for the shell.
    fn joining(policy: &str, weight: &str, command: &str) -> Result<Run> {
        Run::start(&[policy, "--weight", weight, "--", "sh", "-c", command])
    }

    fn start(words: &[&str]) -> Result<Run> {
        let program = std::env::current_exe()?.with_file_name("attune");
        let log = child::memory_file()?;
        let mut run = Command::new(program);
        run.args(["run", "--timeout", "30000"]).args(words);
        run.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        let child = run.spawn().context("cannot run attune, which belongs beside this program")?;
        Ok(Run { child, log, since: clock::now() })
    }

    /// None: it goes on. Err: it does not come to an end.
    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let ended = self.child.try_wait()?;
        ensure!(
            ended.is_some() || clock::now() < self.since + PATIENCE,
            "a run does not end:\n{}",
            child::said(&self.log)
        );
        Ok(ended)
    }

    /// Waits until it is so. Err: the run has ended, or does not come so far.
    fn begins(&mut self, what: &str, so: impl Fn(&Run) -> bool) -> Result<()> {
        while !so(self) {
            if let Some(status) = self.ended()? {
                bail!("a run has ended with {status} before {what}:\n{}", child::said(&self.log));
            }
            clock::sleep_until(clock::now() + LOOK);
        }
        Ok(())
    }

    /// The command, once the run has begun; a compiler before.
    fn command(&self) -> Option<u32> {
        let own = |it: &u32| matches!(procfs::name(*it).as_str(), "sh" | "attune-load");
        children(self.child.id()).into_iter().find(own)
    }

    fn hogs(&self) -> Vec<u32> {
        self.command().map_or(Vec::new(), children)
    }

    fn end_command(self) -> Result<()> {
        let command = self.command().context("a command has ended")?;
        process::signal(command, signal::KILL)?;
        self.until_ended()
    }

    /// It has no command.
    fn end(self) -> Result<()> {
        process::signal(self.child.id(), signal::INTERRUPT)?;
        self.until_ended()
    }

    fn until_ended(mut self) -> Result<()> {
        self.since = clock::now();
        while self.ended()?.is_none() {
            clock::sleep_until(clock::now() + LOOK);
        }
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn children(of: u32) -> Vec<u32> {
    procfs::processes().into_iter().filter(|it| procfs::parent(*it) == Some(of)).collect()
}

fn until(otherwise: &'static str, so: impl Fn() -> bool) -> Result<()> {
    clock::wait_until(so, LOOK, PATIENCE).context(otherwise)
}
