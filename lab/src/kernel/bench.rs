//! Runs the workloads of an experiment under its contestants, each in a machine of its own, as many at a time as there are CPUs.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use attune_vm::{Cache, Command, Kind, Options as Machine};
use serde::Serialize;
use serde_json::Value;

use super::contestant::Ready;
use super::{Contestant, Description};
use crate::experiment::{Options, Progress};

/// Longest real time of a run; most take half a minute.
const PATIENCE: Duration = Duration::from_secs(600);
/// MiB of a machine.
const MEMORY: u64 = 1024;
/// Machines' seeds, as many as there are runs of each kind.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// All that was measured.
#[derive(Serialize)]
pub struct Results {
    pub kernel: String,
    pub qemu: String,
    pub seeds: Vec<u64>,
    /// In the order of the contestants.
    pub rows: Vec<Row>,
    pub commands: Vec<String>,
    #[serde(skip)]
    pub(super) figures: &'static [super::Figure],
}

/// One contestant's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub is_peer: bool,
    /// Of the scheduler's text; None: the kernel's own.
    pub lines: Option<usize>,
    /// By workload, in the order of the seeds. Err: why it was not measured.
    pub runs: BTreeMap<&'static str, std::result::Result<Vec<Run>, String>>,
}

/// One run of a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub figures: Value,
    /// How often the policy was asked to choose in the whole run, where the scheduler says so.
    pub choices: Option<u64>,
}

impl Results {
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The median over the seeds. None: it was not measured.
    pub fn median(&self, row: &Row, figure: &str) -> Option<f64> {
        let figure = self.figures.iter().find(|known| known.name == figure)?;
        let runs = row.runs.get(figure.workload)?.as_ref().ok()?;
        let values =
            runs.iter().map(|run| Some(run.figures.pointer(figure.pointer)?.as_f64()? / figure.unit));
        let mut values = values.collect::<Option<Vec<f64>>>()?;
        values.sort_by(f64::total_cmp);
        values.get(values.len().checked_sub(1)? / 2).copied()
    }
}

/// Measures all. Err: nothing could be measured.
pub fn run(description: &Description, options: &Options, progress: Progress) -> Result<Results> {
    let cache = Cache::open(&Cache::default_folder())?;
    let folder = options.folder.join(description.name);
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let seeds = if options.quick { &SEEDS[..1] } else { &SEEDS[..] };

    let contestants = (description.contestants)();
    let ready: Vec<Result<Ready, String>> = contestants
        .iter()
        .map(|contestant| {
            contestant.prepare(&options.programs, &folder).map_err(|error| format!("{error:#}"))
        })
        .collect();
    let mut jobs = vec![];
    for (contestant, ready) in ready.iter().enumerate() {
        for workload in description.workloads.iter().filter(|_| ready.is_ok()) {
            jobs.extend(seeds.iter().map(|seed| Job { contestant, workload, seed: *seed }));
        }
    }
    if jobs.is_empty() {
        let reasons = ready.into_iter().filter_map(Result::err).collect::<Vec<_>>();
        bail!("nobody can be run: {}", reasons.join("; "));
    }
    let found = measure_all(&cache, &jobs, &ready, &contestants, progress);
    let rows = contestants.iter().zip(&ready).enumerate().map(|(index, (contestant, ready))| {
        let of = |workload: &super::Workload| match ready {
            Err(reason) => Err(reason.clone()),
            Ok(_) => {
                let its = jobs
                    .iter()
                    .zip(&found)
                    .filter(|(job, _)| job.contestant == index && job.workload.name == workload.name);
                its.map(|(_, run)| run.clone()).collect()
            }
        };
        Row {
            name: contestant.name.clone(),
            is_peer: contestant.is_peer(),
            lines: ready.as_ref().ok().and_then(|ready| ready.lines),
            runs: description.workloads.iter().map(|workload| (workload.name, of(workload))).collect(),
        }
    });
    Ok(Results {
        kernel: cache.kernel_release().to_owned(),
        qemu: cache.qemu_version().to_owned(),
        seeds: seeds.to_vec(),
        rows: rows.collect(),
        commands: jobs
            .iter()
            .filter(|job| job.seed == seeds[0])
            .filter_map(|job| job.command(&ready))
            .collect(),
        figures: description.figures,
    })
}

/// One run to make.
struct Job {
    contestant: usize,
    workload: &'static super::Workload,
    seed: u64,
}

impl Job {
    fn words(&self, ready: &Ready) -> Vec<String> {
        let load = self.workload.words.iter().map(|word| (*word).to_owned());
        ready.words.iter().cloned().chain(load).collect()
    }

    /// As a person would type it.
    fn command(&self, ready: &[Result<Ready, String>]) -> Option<String> {
        let ready = ready[self.contestant].as_ref().ok()?;
        let pack: String = ready.pack.iter().map(|path| format!(" --pack {}", path.display())).collect();
        let words = self.words(ready).join(" ");
        Some(format!("attune vm --memory {MEMORY} --deterministic --seed {}{pack} -- {words}", self.seed))
    }
}

type Found = std::result::Result<Run, String>;

/// The jobs' results, in the jobs' order.
fn measure_all(
    cache: &Cache,
    jobs: &[Job],
    ready: &[Result<Ready, String>],
    contestants: &[Contestant],
    progress: Progress,
) -> Vec<Found> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let found: Vec<Mutex<Option<Found>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let (say, said) = std::sync::mpsc::channel::<usize>();
    thread::scope(|scope| {
        for _ in 0..workers {
            let (say, next, found) = (say.clone(), &next, &found);
            scope.spawn(move || {
                while let Some((index, job)) = take(next, jobs) {
                    let _ = say.send(index);
                    let run = match &ready[job.contestant] {
                        Ok(ready) => measure(cache, job, ready).map_err(|error| format!("{error:#}")),
                        Err(reason) => Err(reason.clone()),
                    };
                    *found[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(run);
                }
            });
        }
        drop(say);
        for index in said {
            let (job, count) = (&jobs[index], jobs.len());
            let (who, what) = (&contestants[job.contestant].name, job.workload.name);
            progress(&format!("{}/{count} {what} under {who}, seed {}", index + 1, job.seed));
        }
    });
    let taken =
        found.into_iter().map(|run| run.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()));
    taken.map(|run| run.unwrap_or_else(|| Err("not run".to_owned()))).collect()
}

fn take<'a>(next: &AtomicUsize, jobs: &'a [Job]) -> Option<(usize, &'a Job)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}

/// One run in a machine of its own.
fn measure(cache: &Cache, job: &Job, ready: &Ready) -> Result<Run> {
    let kind = Kind::Deterministic { pack: ready.pack.clone(), seed: job.seed };
    let machine = Machine { cpus: 1, memory: MEMORY, kind, timeout: Some(PATIENCE) };
    let output = attune_vm::run(cache, &machine, &Command::new(job.words(ready)))?;
    let (text, errors) =
        (String::from_utf8_lossy(&output.output), String::from_utf8_lossy(&output.error_output));
    if !output.status.success() {
        bail!("{} failed ({}): {}", job.workload.name, output.status, errors.trim());
    }
    let line = text.lines().rev().find(|line| line.starts_with('{')).context("it printed no figures")?;
    let result: Value = serde_json::from_str(line).context("its figures cannot be read")?;
    Ok(Run { figures: result["figures"].clone(), choices: choices(&errors) })
}

/// From `attune run`'s last words: `.. handler calls: newthread 3, schedule 12`.
fn choices(words: &str) -> Option<u64> {
    let calls = words.lines().find_map(|line| line.split_once("handler calls: "))?.1;
    calls.split(", ").find_map(|call| call.strip_prefix("schedule ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_from_the_last_words() {
        let words = "attune: fifo schedules this machine\nattune: 7 dispatches; handler calls: newthread 3, schedule 12\n";
        assert_eq!(choices(words), Some(12));
        assert_eq!(choices("handler calls: newthread 3"), None);
        assert_eq!(choices(""), None);
    }

    #[test]
    fn a_median_is_a_run_and_what_failed_has_none() {
        const FIGURES: &[crate::kernel::Figure] =
            &[crate::kernel::Figure { name: "ms", workload: "w", pointer: "/a/b", unit: 10.0 }];
        let run = |value: f64| Run { figures: serde_json::json!({ "a": { "b": value } }), choices: None };
        let row = |runs| Row {
            name: "x".to_owned(),
            is_peer: false,
            lines: None,
            runs: BTreeMap::from([("w", runs)]),
        };
        let results = Results {
            kernel: String::new(),
            qemu: String::new(),
            seeds: vec![],
            rows: vec![row(Ok(vec![run(30.0), run(10.0), run(20.0)])), row(Err("thrown out".to_owned()))],
            commands: vec![],
            figures: FIGURES,
        };
        assert_eq!(results.median(&results.rows[0], "ms"), Some(2.0));
        assert_eq!(results.median(&results.rows[1], "ms"), None);
        assert_eq!(results.median(&results.rows[0], "unknown"), None);
    }
}
