//! `attune run`: the machine's own threads follow a scheduler, as long as a command runs or until Ctrl-C.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use attune_broker::Broker;
use attune_kernel::{Compiler, Exit, Image, Kind, Running, Settings, Statistics, support};
use attune_language::event::Engine;
use attune_values::wire;

use crate::args::{RunArgs, SourceArgs};
use crate::failure::Failure;
use crate::source::{accepted, checked};

/// How often the scheduler and the command are looked at.
const LOOK: Duration = Duration::from_millis(50);

pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    support::check().map_err(|missing| Failure::usage(missing.to_string()))?;
    let cpus = support::possible_cpus();
    let image = image(&args.scheduler, &args.source, cpus)?;
    let settings = Settings {
        seed: args.seed,
        cpus,
        partial: args.partial,
        timeout_ms: args.timeout.clamp(100, 30_000),
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::usage(format!("cannot listen to signals: {error}")))?;
    }
    let running =
        attune_kernel::start(image, &settings).map_err(|error| Failure::wrong(error.to_string()))?;
    for change in &args.set {
        set(&running, change)?;
    }
    let _values = values(&running);
    eprintln!("attune: {} schedules {}", running.scheduler(), whom(args.partial));
    let mut child = match args.command.split_first() {
        None => None,
        Some((program, rest)) => Some(
            Command::new(program)
                .args(rest)
                .spawn()
                .map_err(|error| Failure::usage(format!("cannot run {program}: {error}")))?,
        ),
    };
    let status = watch(&running, child.as_mut(), &stop, args.stats.map(Duration::from_secs))?;
    finish(running, child, status)
}

/// Programs may supply values from now on. Without that the scheduler runs all the same.
fn values(running: &Running) -> Option<Broker> {
    let store = match running.values() {
        Ok(store) => store?,
        Err(error) => {
            eprintln!("attune: programs cannot supply values: {error}");
            return None;
        }
    };
    let path = wire::path();
    match Broker::start(&path, store) {
        Ok(broker) => Some(broker),
        Err(error) => {
            eprintln!("attune: programs cannot supply values: {}: {error}", path.display());
            None
        }
    }
}

fn whom(partial: bool) -> &'static str {
    if partial { "the threads of class SCHED_EXT; all others go first" } else { "this machine" }
}

/// `attune check --load`: whether the kernel's verifier takes a scheduler.
pub fn try_load(scheduler: &Path, source: &SourceArgs) -> Result<(), Failure> {
    support::check().map_err(|missing| Failure::usage(missing.to_string()))?;
    let cpus = support::possible_cpus();
    let settings = Settings { seed: 0, cpus, partial: false, timeout_ms: 5000 };
    attune_kernel::try_load(image(scheduler, source, cpus)?, &settings)
        .map_err(|error| Failure::wrong(error.to_string()))
}

/// A compiled object as it is, anything else through the compiler.
fn image(scheduler: &Path, source: &SourceArgs, cpus: u32) -> Result<Image, Failure> {
    if is_object(scheduler) {
        return read(scheduler);
    }
    let checked = checked(scheduler, source)?;
    let (program, report) = accepted(&checked, Engine::Kernel)?;
    let source = attune_kernel::source(program, &report.verdicts, &checked.sources)
        .map_err(|refusal| Failure::wrong(refusal.to_string()))?;
    let folder =
        tempfile::tempdir().map_err(|error| Failure::usage(format!("no temporary folder: {error}")))?;
    let object = folder.path().join("scheduler.bpf.o");
    let compiler = Compiler::find().map_err(|error| Failure::usage(error.to_string()))?;
    attune_kernel::compile(&compiler, &source, &object, cpus)
        .map_err(|error| Failure::usage(error.to_string()))?;
    read(&object)
}

/// Whether the file is what `attune build --engine kernel` makes.
pub fn is_object(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "o")
}

fn read(path: &Path) -> Result<Image, Failure> {
    let bytes = fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    Image::read(bytes).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

fn set(running: &Running, change: &str) -> Result<(), Failure> {
    let (name, value) = change
        .split_once('=')
        .ok_or_else(|| Failure::usage(format!("`{change}`: a setting is NAME=VALUE, such as period=10ms")))?;
    running.set(name.trim(), value).map_err(|error| Failure::usage(error.to_string()))
}

/// Until the command ends, the scheduler ends, or somebody says stop. The command's status if it has ended.
fn watch(
    running: &Running,
    mut child: Option<&mut Child>,
    stop: &AtomicBool,
    every: Option<Duration>,
) -> Result<Option<ExitStatus>, Failure> {
    let mut reported = Instant::now();
    let mut before = running.statistics();
    loop {
        if let Some(child) = &mut child {
            let status = child.try_wait().map_err(|error| Failure::usage(format!("the command: {error}")))?;
            if status.is_some() {
                return Ok(status);
            }
        }
        if stop.load(Ordering::Relaxed) || running.exit().is_some() {
            return Ok(None);
        }
        if every.is_some_and(|every| reported.elapsed() >= every) {
            let now = running.statistics();
            eprintln!("attune: {}", since(&before, &now, reported.elapsed()));
            (before, reported) = (now, Instant::now());
        }
        thread::sleep(LOOK);
    }
}

/// A second's worth of counters, in a line.
fn since(before: &Statistics, now: &Statistics, elapsed: Duration) -> String {
    let rate = |before: u64, now: u64| (now - before) as f64 / elapsed.as_secs_f64();
    format!(
        "{:.0} dispatches/s, {:.0} handler calls/s, {} ready",
        rate(before.dispatches, now.dispatches),
        rate(before.handler_calls(), now.handler_calls()),
        now.ready
    )
}

/// Detaches, then waits for the command: it goes on under the fair class.
fn finish(running: Running, child: Option<Child>, status: Option<ExitStatus>) -> Result<ExitCode, Failure> {
    let statistics = running.statistics();
    let thrown_out = running.exit();
    let scheduler = running.scheduler().to_string();
    let exit = running.stop();
    eprintln!("attune: {}", summary(&statistics));
    let exit = thrown_out.unwrap_or(exit);
    let verdict = verdict(&scheduler, &exit);
    if let Some(verdict) = &verdict {
        eprintln!("attune: {verdict}");
    }
    let status = match (status, child) {
        (None, Some(mut child)) => {
            Some(child.wait().map_err(|error| Failure::usage(format!("the command: {error}")))?)
        }
        (status, _) => status,
    };
    let code = status.map_or(0, |status| status.code().unwrap_or(1).clamp(0, 255) as u8);
    Ok(ExitCode::from(if verdict.is_some() && code == 0 { 1 } else { code }))
}

fn summary(statistics: &Statistics) -> String {
    let calls: Vec<String> =
        statistics.calls.iter().map(|(event, count)| format!("{event} {count}")).collect();
    format!(
        "{} dispatches, {} kept, {} kicks, {} timers; handler calls: {}",
        statistics.dispatches,
        statistics.kept,
        statistics.kicks,
        statistics.timers,
        calls.join(", ")
    )
}

/// What to say of an end that was not asked for.
fn verdict(scheduler: &str, exit: &Exit) -> Option<String> {
    let kernel = format!(
        "{}{}",
        exit.reason,
        if exit.message.is_empty() { String::new() } else { format!(": {}", exit.message) }
    );
    let took_over = "The fair class has taken over; nothing else is lost.";
    match (exit.kind, &exit.failure) {
        (Kind::Unloaded, _) => None,
        (_, Some(failure)) => Some(format!(
            "the kernel has ended {scheduler}: {failure}\n  The kernel says: {kernel}. {took_over}"
        )),
        (_, None) => Some(format!("the kernel has ended {scheduler}: {kernel}. {took_over}")),
    }
}
