//! Plans the runs of an experiment, makes those that were not made before, and collects their figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use attune_vm::Cache;
use serde::Serialize;

use super::confidence::{self, Median};
use super::contestant::{Lines, Ready};
use super::kept::{self, Kept};
use super::machine::{MEMORY, Order, Run};
use super::{Contestant, Description, Figure, Part, Place, Workload};
use crate::experiment::{Options, Progress};

/// Rounds on two CPUs: twelve have a 95 % interval from the third to the tenth, six from the first to the last.
const ROUNDS: [u64; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const QUICK_ROUNDS: usize = 6;

/// All that was measured.
#[derive(Serialize)]
pub struct Results {
    pub kernel: String,
    pub qemu: String,
    pub seeds: Vec<u64>,
    /// In the order of the description's parts.
    pub parts: Vec<Rows>,
    pub commands: Vec<String>,
    #[serde(skip)]
    description: &'static [Part],
}

/// One part's.
#[derive(Serialize)]
pub struct Rows {
    pub title: &'static str,
    /// In the order of the contestants.
    pub rows: Vec<Row>,
}

/// One contestant's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub is_peer: bool,
    /// Of the scheduler's text; None: the kernel's own.
    pub lines: Option<Lines>,
    /// By workload, in the order of the seeds or rounds. Err: why it was not measured.
    pub runs: BTreeMap<&'static str, std::result::Result<Vec<Run>, String>>,
}

impl Row {
    /// A figure of each run. None: it was not measured.
    fn values(&self, figure: &Figure) -> Option<Vec<f64>> {
        let runs = self.runs.get(figure.workload)?.as_ref().ok()?;
        runs.iter().map(|run| Some(run.figures.pointer(figure.pointer)?.as_f64()? / figure.unit)).collect()
    }

    pub fn median(&self, figure: &Figure) -> Option<Median> {
        confidence::median(&self.values(figure)?)
    }

    /// The median of the ratios to another's runs of the same seeds or rounds.
    pub fn ratio(&self, figure: &Figure, other: &Row) -> Option<Median> {
        let (own, other) = (self.values(figure)?, other.values(figure)?);
        confidence::median(&own.iter().zip(&other).map(|(own, other)| own / other).collect::<Vec<_>>())
    }

    /// How often the policy chose in the first run of a workload.
    pub fn choices(&self, workload: &str) -> Option<u64> {
        self.runs.get(workload)?.as_ref().ok()?.first()?.choices
    }
}

impl Results {
    fn part_of(&self, figure: &str) -> Option<(&Rows, &Figure)> {
        let parts = self.description.iter().zip(&self.parts);
        parts
            .into_iter()
            .find_map(|(part, rows)| Some((rows, part.figures.iter().find(|known| known.name == figure)?)))
    }

    /// The rows of the table that has the figure.
    pub fn rows(&self, figure: &str) -> &[Row] {
        self.part_of(figure).map_or(&[], |(part, _)| &part.rows)
    }

    fn row(&self, contestant: &str, figure: &str) -> Option<(&Row, &Rows, &Figure)> {
        let (part, figure) = self.part_of(figure)?;
        Some((part.rows.iter().find(|row| row.name == contestant)?, part, figure))
    }

    /// A figure's median. None: it was not measured.
    pub fn median(&self, contestant: &str, figure: &str) -> Option<f64> {
        let (row, _, figure) = self.row(contestant, figure)?;
        Some(row.median(figure)?.value)
    }

    /// The largest of a figure's runs. None: it was not measured.
    pub fn worst(&self, contestant: &str, figure: &str) -> Option<f64> {
        let (row, _, figure) = self.row(contestant, figure)?;
        row.values(figure)?.into_iter().max_by(f64::total_cmp)
    }

    /// The ratio to the first contestant of its table.
    pub fn ratio(&self, contestant: &str, figure: &str) -> Option<Median> {
        let (row, part, figure) = self.row(contestant, figure)?;
        row.ratio(figure, part.rows.first()?)
    }

    /// The peer with the least median.
    pub fn best_peer(&self, figure: &str) -> Option<(f64, &str)> {
        let (part, known) = self.part_of(figure)?;
        let peers = part.rows.iter().filter(|row| row.is_peer);
        let of = |row: &'_ Row| Some(row.median(known)?.value);
        let measured = peers.filter_map(|row| Some((of(row)?, row.name.as_str())));
        measured.min_by(|one, other| one.0.total_cmp(&other.0))
    }
}

/// Whom each part compares, and what they need; made once for each that is named several times.
struct Field {
    contestants: Vec<Contestant>,
    ready: Vec<Result<Ready, String>>,
}

/// One machine: a contestant's run, or a round of all of them.
struct Job {
    part: usize,
    workload: usize,
    seed: u64,
    /// In the order in which they run.
    contestants: Vec<usize>,
}

type Found = std::result::Result<Run, String>;

/// Measures all. Err: nothing could be measured.
pub fn run(description: &Description, options: &Options, progress: Progress) -> Result<Results> {
    let cache = Cache::open(&Cache::default_folder())?;
    let folder = options.folder.join(description.name);
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let kept = Kept::at(options.folder.join("runs"))?;
    let mut made = BTreeMap::new();
    let fields: Vec<Field> =
        description.parts.iter().map(|part| prepare(part, options, &folder, &mut made)).collect();
    if fields.iter().all(|field| field.ready.iter().all(Result::is_err)) {
        let reasons = fields.into_iter().flat_map(|field| field.ready).filter_map(Result::err);
        bail!("nobody can be run: {}", reasons.collect::<Vec<_>>().join("; "));
    }
    let measuring = Measuring { cache: &cache, kept: &kept, description, fields: &fields, options };
    let jobs = plan(description, &fields, options.quick);
    let found = measuring.all(&jobs, progress);
    let parts = description.parts.iter().enumerate().map(|(index, part)| Rows {
        title: part.title,
        rows: rows(part, &fields[index], jobs.iter().zip(&found).filter(|(job, _)| job.part == index)),
    });
    Ok(Results {
        kernel: cache.kernel_release().to_owned(),
        qemu: cache.qemu_version().to_owned(),
        seeds: seeds(description, Place::Deterministic, options.quick).to_vec(),
        parts: parts.collect(),
        commands: jobs.iter().filter(|job| job.seed == 1).flat_map(|job| measuring.commands(job)).collect(),
        description: description.parts,
    })
}

fn seeds(description: &Description, place: Place, quick: bool) -> &'static [u64] {
    match place {
        Place::Deterministic => &description.seeds[..if quick { 1 } else { description.seeds.len() }],
        Place::TwoCpus => &ROUNDS[..if quick { QUICK_ROUNDS } else { ROUNDS.len() }],
    }
}

fn prepare(
    part: &Part,
    options: &Options,
    folder: &Path,
    made: &mut BTreeMap<String, Result<Ready, String>>,
) -> Field {
    let contestants = (part.contestants)();
    let cpus = if part.place == Place::TwoCpus { 2 } else { 1 };
    let ready = contestants.iter().map(|contestant| {
        let prepare = || contestant.prepare(&options.programs, folder, cpus);
        let ready = made.entry(format!("{}, {cpus}", contestant.name));
        ready.or_insert_with(|| prepare().map_err(|error| format!("{error:#}"))).clone()
    });
    Field { ready: ready.collect(), contestants }
}

fn plan(description: &Description, fields: &[Field], quick: bool) -> Vec<Job> {
    let mut jobs = vec![];
    for (part, (its, field)) in description.parts.iter().zip(fields).enumerate() {
        let able: Vec<usize> = (0..field.ready.len()).filter(|index| field.ready[*index].is_ok()).collect();
        for (workload, seed) in (0..its.workloads.len()).flat_map(|workload| {
            seeds(description, its.place, quick).iter().map(move |seed| (workload, *seed))
        }) {
            let job = |contestants| Job { part, workload, seed, contestants };
            match its.place {
                Place::Deterministic => jobs.extend(able.iter().map(|contestant| job(vec![*contestant]))),
                Place::TwoCpus => {
                    let mut order = able.clone();
                    order.rotate_left(seed as usize % able.len().max(1));
                    jobs.push(job(order));
                }
            }
        }
    }
    jobs
}

/// A part's rows from its jobs and what came of them.
fn rows<'a>(
    part: &Part,
    field: &Field,
    found: impl Iterator<Item = (&'a Job, &'a Vec<Found>)> + Clone,
) -> Vec<Row> {
    let of = |contestant: usize, workload: usize| match &field.ready[contestant] {
        Err(reason) => Err(reason.clone()),
        Ok(_) => found
            .clone()
            .filter(|(job, _)| job.workload == workload)
            .filter_map(|(job, runs)| {
                runs.get(job.contestants.iter().position(|index| *index == contestant)?).cloned()
            })
            .collect(),
    };
    let row = |(index, contestant): (usize, &Contestant)| Row {
        name: contestant.name.clone(),
        is_peer: contestant.is_peer(),
        lines: contestant.lines(),
        runs: part
            .workloads
            .iter()
            .enumerate()
            .map(|(number, workload)| (workload.name, of(index, number)))
            .collect(),
    };
    field.contestants.iter().enumerate().map(row).collect()
}

/// What all runs have in common.
struct Measuring<'a> {
    cache: &'a Cache,
    kept: &'a Kept,
    description: &'a Description,
    fields: &'a [Field],
    options: &'a Options,
}

impl Measuring<'_> {
    fn workload(&self, job: &Job) -> &'static Workload {
        &self.description.parts[job.part].workloads[job.workload]
    }

    /// The jobs' results, in their order. Those in real time are made first and one by one, while whoever asked still leaves the machine
    /// alone; then those in deterministic machines, which do not mind, as many at a time as there are CPUs.
    fn all(&self, jobs: &[Job], progress: Progress) -> Vec<Vec<Found>> {
        let found: Vec<Mutex<Vec<Found>>> = jobs.iter().map(|_| Mutex::new(vec![])).collect();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        for (place, workers) in [(Place::TwoCpus, 1), (Place::Deterministic, cpus)] {
            let its: Vec<usize> = (0..jobs.len())
                .filter(|index| self.description.parts[jobs[*index].part].place == place)
                .collect();
            let next = AtomicUsize::new(0);
            let (say, said) = std::sync::mpsc::channel::<String>();
            thread::scope(|scope| {
                for _ in 0..workers.min(its.len()) {
                    let (say, next, found, its) = (say.clone(), &next, &found, &its);
                    scope.spawn(move || {
                        while let Some(index) = its.get(next.fetch_add(1, Ordering::Relaxed)) {
                            let job = &jobs[*index];
                            let runs = self.once(job, &|text| {
                                let _ = say.send(format!("{}/{} {text}", index + 1, jobs.len()));
                            });
                            *found[*index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = runs;
                        }
                    });
                }
                drop(say);
                said.iter().for_each(|text| progress(&text));
            });
        }
        found.into_iter().map(|runs| runs.into_inner().unwrap_or_else(|poison| poison.into_inner())).collect()
    }

    /// A job's runs, as they were made before or anew.
    fn once(&self, job: &Job, say: &dyn Fn(String)) -> Vec<Found> {
        let name = self.name(job);
        let fail = |error: anyhow::Error| job.contestants.iter().map(|_| Err(format!("{error:#}"))).collect();
        let (order, hash) = match self.order(job) {
            Ok(both) => both,
            Err(error) => return fail(error),
        };
        let before = if self.options.fresh { None } else { self.kept.find(&hash) };
        if let Some(runs) = before.filter(|runs| runs.len() == job.contestants.len()) {
            say(format!("{name}: measured before"));
            return runs.into_iter().map(Ok).collect();
        }
        say(name);
        let found = order.run(self.cache);
        let good: Vec<Run> = found.iter().filter_map(|run| run.as_ref().ok().cloned()).collect();
        if good.len() == found.len()
            && let Err(error) = self.kept.keep(&hash, &good)
        {
            say(format!("this run is not kept: {error:#}"));
        }
        found
    }

    fn name(&self, job: &Job) -> String {
        let (field, workload) = (&self.fields[job.part], self.workload(job).name);
        match self.description.parts[job.part].place {
            Place::TwoCpus => format!("{workload}, two CPUs, round {}", job.seed),
            Place::Deterministic => {
                let names = job.contestants.iter().map(|index| field.contestants[*index].name.as_str());
                format!("{workload} under {}, seed {}", names.collect::<Vec<_>>().join(", "), job.seed)
            }
        }
    }

    /// The machine that a job needs, and the hash of all that it is made of.
    fn order(&self, job: &Job) -> Result<(Order, String)> {
        let workload = self.workload(job);
        let ready: Vec<&Ready> = self.ready(job).collect();
        let mut pack: Vec<PathBuf> = ready.iter().flat_map(|ready| ready.files.clone()).collect();
        let own = pack.len();
        pack.extend(self.needs(workload)?);
        let order = Order {
            place: self.description.parts[job.part].place,
            seed: job.seed,
            commands: ready.iter().map(|ready| self.words(ready, workload)).collect(),
            pack,
        };
        let fingerprint = order.fingerprint(self.cache)?;
        let files: Vec<&Path> = order.pack[..own].iter().map(PathBuf::as_path).collect();
        let hash = kept::hash(&fingerprint, &files, &format!("round {}", job.seed))?;
        Ok((order, hash))
    }

    /// The workload's files: films are made if they are not there.
    fn needs(&self, workload: &Workload) -> Result<Vec<PathBuf>> {
        let films = workload.films.map(|films| films.made(&self.options.folder)).transpose()?;
        Ok((workload.needs)(self.options)?.into_iter().chain(films).collect())
    }

    fn words(&self, ready: &Ready, workload: &Workload) -> Vec<String> {
        let films = workload.films.map(|films| films.folder(&self.options.folder).display().to_string());
        let own = workload.words.iter().map(|word| match &films {
            Some(films) => word.replace("{films}", films),
            None => (*word).to_owned(),
        });
        ready.words.iter().cloned().chain(own).collect()
    }

    fn ready(&self, job: &Job) -> impl Iterator<Item = &Ready> {
        let field = &self.fields[job.part];
        job.contestants.iter().filter_map(|index| field.ready[*index].as_ref().ok())
    }

    /// As a person would type them.
    fn commands(&self, job: &Job) -> Vec<String> {
        let (workload, place) = (self.workload(job), self.description.parts[job.part].place);
        let needs = self.needs(workload).unwrap_or_default();
        let command = |ready: &Ready| {
            let words = self.words(ready, workload).join(" ");
            let files = ready.files.iter().chain(&needs);
            let pack: String = files.map(|path| format!(" --pack {}", path.display())).collect();
            match place {
                Place::TwoCpus => format!("attune vm --cpus 2 --memory {MEMORY} -- {words}"),
                Place::Deterministic => format!(
                    "attune vm --memory {MEMORY} --deterministic --seed {}{pack} -- {words}",
                    job.seed
                ),
            }
        };
        self.ready(job).map(command).collect()
    }
}
