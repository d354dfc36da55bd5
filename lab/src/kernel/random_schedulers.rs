//! Experiment `random-schedulers`: what `attune check --engine kernel` accepts, the kernel's
//! verifier takes.
//!
//! The experiment compiles random schedulers here and loads them in a virtual machine; none of them
//! runs there. Every other one is long: over [`LONG`] lines, with a `foreach` inside another,
//! arrays and sorted containers. The report names one that the verifier refuses, its text and its
//! object stay in the experiment's folder, and the verifier's last words stand in the report. One
//! that the verifier takes and the kernel's compiler does not is laid out in another way, as
//! `attune run` does, and counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use attune_generator as generator;
use attune_kernel::{Compiler, Image, Layout, NOT_TRANSLATED};
use attune_language::engine::Engine;
use attune_language::ir::{Block, Extent, Program, StatementKind};
use attune_vm::{Cache, Command, Kind, Options as Machine};
use serde::Serialize;
use serde_json::json;

use crate::experiment::{Options, Procedure, Progress};
use crate::plot::{self, Line};
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: NAME,
    about: "random schedulers that the check accepts for the kernel engine are taken by the \
        kernel's verifier",
    check: machine_is_set_up,
    run,
};

const NAME: &str = "random-schedulers";
/// Lines, from which on a scheduler is long.
const LONG: usize = 150;
/// Schedulers of an experiment, and of a quick one.
const MANY: usize = 200;
const FEW: usize = 12;
/// Statements in a handler, about.
const SIZE: usize = 6;
const SIZE_LONG: usize = 24;
/// CPUs that the programs are made for: containers are read for one CPU only where there are
/// several.
const CPUS: u32 = 4;
/// Objects that one machine loads.
const BATCH: usize = 25;
/// Longest real time for one machine.
const PATIENCE: Duration = Duration::from_secs(900);

/// One random scheduler.
#[derive(Clone, Serialize)]
struct Case {
    seed: u64,
    lines: usize,
    long: bool,
    /// The BPF instructions of the program.
    instructions: u64,
    #[serde(skip)]
    object: PathBuf,
    /// The kernel's compiler wanted it in the plain layout.
    laid_out_anew: bool,
    /// None: the kernel takes it.
    refused: Option<String>,
}

fn machine_is_set_up(_: &Options) -> Result<()> {
    Ok(Cache::open(&Cache::default_folder()).map(drop)?)
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let cache = Cache::open(&Cache::default_folder())?;
    let folder = options.folder.join(NAME);
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut cases = make(if options.quick { FEW } else { MANY }, &folder, progress)?;
    load(&mut cases, &cache, &options.programs.join("attune"), progress)?;
    tell(&cases, &cache)
}

/// Random schedulers that the kernel engine accepts, compiled.
fn make(count: usize, folder: &Path, progress: Progress) -> Result<Vec<Case>> {
    let compiler = Compiler::find()?;
    let mut cases = Vec::new();
    let mut seed = 0;
    while cases.len() < count {
        seed += 1;
        let long = cases.len() % 2 == 1;
        let sources = generator::for_kernel(seed, if long { SIZE_LONG } else { SIZE });
        let checked = sources.checked();
        let report = checked.engine(Engine::Kernel);
        let Some(program) = checked.program.as_ref().filter(|_| report.accepted) else { continue };
        let text = sources.listing();
        let lines = text.lines().count();
        if long != (lines > LONG) || (long && !is_rich(program)) {
            continue;
        }
        let c = attune_kernel::source(program, &report.verdicts, &checked.sources)?;
        let name = format!("random_{seed:05}");
        fs::write(folder.join(format!("{name}.sched")), &text)?;
        fs::write(folder.join(format!("{name}.bpf.c")), &c)?;
        let object = folder.join(format!("{name}.bpf.o"));
        cases.push(Case {
            seed,
            lines,
            long,
            instructions: 0,
            object,
            laid_out_anew: false,
            refused: None,
        });
    }
    progress(&format!("compiling {count} schedulers, of seeds up to {seed}"));
    side_by_side(&mut cases, |case| {
        compile(&compiler, case, Layout::Usual)?;
        case.instructions = Image::read(fs::read(&case.object)?)?.instructions();
        Ok(())
    })?;
    Ok(cases)
}

fn compile(compiler: &Compiler, case: &Case, layout: Layout) -> Result<()> {
    let c = fs::read_to_string(case.object.with_extension("c"))?;
    attune_kernel::compile(compiler, &c, &case.object, CPUS, 1, layout)
        .with_context(|| format!("the scheduler of seed {}", case.seed))
}

/// A `foreach` inside another, arrays and sorted containers.
fn is_rich(program: &Program) -> bool {
    fn nested(block: &Block, inside: bool) -> bool {
        block.statements.iter().any(|statement| match &statement.kind {
            StatementKind::Foreach { body, .. } => inside || nested(body, true),
            StatementKind::If { then, otherwise, .. } => {
                nested(then, inside) || nested(otherwise, inside)
            }
            StatementKind::Loop(each) => nested(&each.body, inside),
            _ => false,
        })
    }
    let mut parts = program.handlers.iter().flat_map(|handler| &handler.parts);
    let is_array = |extent: Extent| matches!(extent, Extent::Array(_));
    parts.any(|part| nested(&part.routine.body, false))
        && program.containers.values().any(|container| container.sort.is_some())
        && (program.containers.values().any(|container| is_array(container.extent))
            || program.globals.values().any(|global| is_array(global.extent))
            || program.locals.values().any(|local| local.length.is_some()))
}

/// Loads all, a batch in each machine.
fn load(cases: &mut [Case], cache: &Cache, attune: &Path, progress: Progress) -> Result<()> {
    let count = cases.len();
    let mut batches: Vec<&mut [Case]> = cases.chunks_mut(BATCH).collect();
    progress(&format!("loading {count} schedulers in {} machines", batches.len()));
    side_by_side(&mut batches, |batch| {
        let objects: Vec<&Path> = batch.iter().map(|case| case.object.as_path()).collect();
        let (said, _) = check(cache, attune, &objects)?;
        for case in batch.iter_mut().filter(|case| !is_taken(&said, case)) {
            case.refused = Some(String::new());
        }
        Ok(())
    })?;
    // Alone, so that the words are about this one.
    for case in cases.iter_mut().filter(|case| case.refused.is_some()) {
        progress(&format!("{} once more, by itself", case.object.display()));
        load_alone(case, cache, attune)?;
    }
    Ok(())
}

fn load_alone(case: &mut Case, cache: &Cache, attune: &Path) -> Result<()> {
    let (mut said, mut complaints) = check(cache, attune, &[&case.object])?;
    if complaints.contains(NOT_TRANSLATED) {
        case.laid_out_anew = true;
        compile(&Compiler::find()?, case, Layout::Plain)?;
        (said, complaints) = check(cache, attune, &[&case.object])?;
    }
    case.refused = (!is_taken(&said, case)).then(|| last_words(&complaints));
    Ok(())
}

fn is_taken(said: &str, case: &Case) -> bool {
    said.contains(&format!("{}: the kernel takes it", case.object.display()))
}

/// What `attune check --load` says in a machine: on standard output, on standard error.
fn check(cache: &Cache, attune: &Path, objects: &[&Path]) -> Result<(String, String)> {
    let words = [attune, Path::new("check"), Path::new("--load")];
    let words =
        words.into_iter().chain(objects.iter().copied()).map(|word| word.display().to_string());
    let machine = Machine {
        topology: attune_vm::Topology::flat(1),
        memory: 2048,
        kind: Kind::HostFiles,
        timeout: Some(PATIENCE),
    };
    let output = attune_vm::run(cache, &machine, &Command::new(words))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.output), text(&output.error_output)))
}

/// The verifier says why at the end of a long log.
fn last_words(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// Does a job for each, as many at a time as there are CPUs; the first error ends it.
fn side_by_side<T: Send>(all: &mut [T], job: impl Fn(&mut T) -> Result<()> + Sync) -> Result<()> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(all.len().max(1));
    let next = AtomicUsize::new(0);
    let waiting: Vec<Mutex<&mut T>> = all.iter_mut().map(Mutex::new).collect();
    let failed = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(one) = waiting.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut one = one.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    if let Err(error) = job(&mut one) {
                        failed
                            .lock()
                            .unwrap_or_else(|poisoned| poisoned.into_inner())
                            .get_or_insert(error);
                        next.store(waiting.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
}

fn tell(cases: &[Case], cache: &Cache) -> Result<Report> {
    let of = |long: bool| cases.iter().filter(|case| case.long == long).collect::<Vec<_>>();
    let (short, long) = (of(false), of(true));
    let refused: Vec<&Case> = cases.iter().filter(|case| case.refused.is_some()).collect();
    let loaded = cases.len() - refused.len();
    let notes = refused.iter().map(|case| {
        let words = case.refused.as_deref().unwrap_or_default();
        format!("refused: {} (beside it its text, .sched):\n{words}", case.object.display())
    });
    let about = format!("Kernel {}; programs for {CPUS} CPUs.", cache.kernel_release());
    let table = Table {
        title: "Random schedulers".to_owned(),
        columns: [
            "",
            "schedulers",
            "lines, median",
            "lines, most",
            "BPF instructions, median",
            "most",
            "laid out anew",
            "loaded",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: vec![
            row(&format!("up to {LONG} lines"), &short),
            row(&format!("over {LONG} lines"), &long),
        ],
        notes: notes.chain([about]).collect(),
    };
    let points = |cases: &[&Case]| {
        let mut sizes: Vec<u64> = cases.iter().map(|case| case.instructions).collect();
        sizes.sort_unstable();
        sizes.iter().enumerate().map(|(index, size)| (index as f64 + 1.0, *size as f64)).collect()
    };
    let line = |name: &str, cases: &[&Case]| Line {
        name: name.to_owned(),
        points: points(cases),
        dashed: false,
    };
    let lines = [line("short", &short), line("long", &long)];
    Ok(Report {
        tables: vec![table],
        claims: vec![Claim::new(
            format!("all {} random schedulers that the check accepts load", cases.len()),
            Some((refused.is_empty(), format!("{loaded} of {} load", cases.len()))),
        )],
        pictures: vec![Picture::new(
            "Size of the programs, from the smallest to the largest",
            plot::lines("scheduler", "BPF instructions", &lines)?,
        )],
        commands: vec![
            "attune vm --memory 2048 -- attune check --load random-schedulers/*.o".to_owned(),
        ],
        data: json!({ "cases": cases }),
        ..Report::new(NAME, "Random schedulers in the kernel").saying(&[
            "Random schedulers without floats, written by the generator of the conformance tests; \
                those that `attune check --engine kernel` accepts are compiled and loaded by \
                `attune check --load` in a virtual machine. Long ones have a foreach inside \
                another, arrays and sorted containers.",
        ])
    })
}

fn row(name: &str, cases: &[&Case]) -> Vec<String> {
    let sorted = |value: fn(&Case) -> u64| {
        let mut values: Vec<u64> = cases.iter().map(|case| value(case)).collect();
        values.sort_unstable();
        let at = |index: usize| values.get(index).copied().unwrap_or(0).to_string();
        [at(values.len() / 2), at(values.len().saturating_sub(1))]
    };
    let [lines, most_lines] = sorted(|case| case.lines as u64);
    let [size, most] = sorted(|case| case.instructions);
    let count =
        |wanted: fn(&Case) -> bool| cases.iter().filter(|case| wanted(case)).count().to_string();
    let (anew, loaded) = (count(|case| case.laid_out_anew), count(|case| case.refused.is_none()));
    vec![name.to_owned(), cases.len().to_string(), lines, most_lines, size, most, anew, loaded]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_and_a_failure_is_told() {
        let mut numbers: Vec<u32> = (0..100).collect();
        side_by_side(&mut numbers, |number| {
            *number += 1;
            Ok(())
        })
        .expect("no job fails");
        assert_eq!(numbers, (1..=100).collect::<Vec<u32>>());
        assert!(side_by_side(&mut numbers, |_| anyhow::bail!("no")).is_err());
        assert!(side_by_side::<u32>(&mut [], |_| Ok(())).is_ok());
    }

    #[test]
    fn last_words_are_the_end_of_a_log() {
        assert_eq!(last_words("a\n\nb\n"), "a\nb");
        let log: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert!(last_words(&log).starts_with("88\n") && last_words(&log).ends_with("99"));
    }
}
