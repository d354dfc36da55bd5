//! Plans the runs of an experiment, makes those that the run cache lacks, and collects their
//! figures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use attune_vm::{Cache, Kernel};

use super::contestant::{self, Contestant, Ready};
use super::description::Description;
use super::machine::{Order, Run};
use super::part::{Part, Workload};
use super::place::Place;
use super::results::{Results, Row, Rows};
use super::run_cache::{self, RunCache};
use crate::experiment::{Options, Progress};
use crate::files;
use crate::programs::typed;

/// Rounds on two CPUs: twelve have a 95 % interval from the third to the tenth, six from the first
/// to the last.
const ROUNDS: [u64; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const QUICK_ROUNDS: usize = 6;

/// The contestants of a part, and what each needs.
struct Field {
    contestants: Vec<Contestant>,
    ready: Vec<Result<Ready, String>>,
}

/// One machine: a contestant's run, or a round of all of them.
struct Job {
    part: usize,
    workload: usize,
    seed: u64,
    /// In their running order.
    contestants: Vec<usize>,
}

type Found = std::result::Result<Run, String>;

/// Whether this machine can run the workloads; contestants that cannot run are rows that say why.
/// Err: all that is missing.
pub fn check(description: &Description, options: &Options) -> Result<()> {
    let workloads = || description.parts.iter().flat_map(|part| part.workloads);
    let machines = description.parts.iter().map(|part| Ok(part.place.cache().map(drop)?));
    let load = contestant::load(&options.programs).map(drop);
    let files = workloads().map(|workload| (workload.needs)(options).map(drop));
    let fixtures = workloads()
        .filter_map(|workload| workload.fixture)
        .map(|fixture| fixture.check(&options.folder));
    let missing: BTreeSet<String> = machines
        .chain([load])
        .chain(files)
        .chain(fixtures)
        .filter_map(Result::err)
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(missing.is_empty(), "{}", missing.into_iter().collect::<Vec<_>>().join("; "));
    Ok(())
}

/// Makes all runs. Err: no contestant can run.
pub fn run(description: &Description, options: &Options, progress: Progress) -> Result<Results> {
    let caches: Vec<Cache> =
        description.parts.iter().map(|part| part.place.cache()).collect::<Result<_, _>>()?;
    let first = caches.first().context("an experiment has a part")?;
    // All experiments share it: the same run has the same words.
    let folder = options.folder.join("schedulers");
    files::create_folder(&folder)?;
    let runs = RunCache::at(options.folder.join("runs"))?;
    let mut made = BTreeMap::new();
    let fields: Vec<Field> =
        description.parts.iter().map(|part| prepare(part, options, &folder, &mut made)).collect();
    if fields.iter().all(|field| field.ready.iter().all(Result::is_err)) {
        let reasons = fields.into_iter().flat_map(|field| field.ready).filter_map(Result::err);
        bail!("no contestant can run: {}", reasons.collect::<Vec<_>>().join("; "));
    }
    for ((contestant, machine), ready) in &made {
        if let Err(reason) = ready {
            progress(&format!("without {contestant} (machine: {machine}): {reason}"));
        }
    }
    let measuring =
        Measuring { caches: &caches, runs: &runs, description, fields: &fields, options };
    let jobs = plan(description, &fields, options.quick);
    let found = measuring.all(&jobs, progress);
    let parts = description.parts.iter().enumerate().map(|(index, part)| Rows {
        title: part.title,
        rows: rows(
            part,
            &fields[index],
            options.quick,
            jobs.iter().zip(&found).filter(|(job, _)| job.part == index),
        ),
    });
    Ok(Results {
        kernel: first.kernel_release().to_owned(),
        qemu: first.qemu_version().to_owned(),
        seeds: seeds(description, Place::ONE_CPU, options.quick).to_vec(),
        parts: parts.collect(),
        commands: jobs
            .iter()
            .filter(|job| job.seed == 1)
            .flat_map(|job| measuring.commands(job))
            .collect(),
        description: description.parts,
    })
}

fn seeds(description: &Description, place: Place, quick: bool) -> &'static [u64] {
    match place {
        Place::Deterministic { .. } => {
            &description.seeds[..if quick { 1 } else { description.seeds.len() }]
        }
        Place::TwoCpus => &ROUNDS[..if quick { QUICK_ROUNDS } else { ROUNDS.len() }],
    }
}

fn prepare(
    part: &Part,
    options: &Options,
    folder: &Path,
    made: &mut BTreeMap<(String, String), Result<Ready, String>>,
) -> Field {
    let all = (part.contestants)().into_iter();
    let contestants: Vec<_> = all.filter(|contestant| contestant.is_in(options.quick)).collect();
    let ready = contestants.iter().map(|contestant| {
        let prepare = || contestant.prepare(&options.programs, folder, part.place);
        let ready = made.entry((contestant.name.clone(), part.place.topology().to_string()));
        ready.or_insert_with(|| prepare().map_err(|error| format!("{error:#}"))).clone()
    });
    Field { ready: ready.collect(), contestants }
}

fn plan(description: &Description, fields: &[Field], quick: bool) -> Vec<Job> {
    let mut jobs = vec![];
    for (part, (its, field)) in description.parts.iter().zip(fields).enumerate() {
        let able: Vec<usize> =
            (0..field.ready.len()).filter(|index| field.ready[*index].is_ok()).collect();
        let workloads =
            (0..its.workloads.len()).filter(|workload| its.workloads[*workload].is_in(quick));
        for (workload, seed) in workloads.flat_map(|workload| {
            seeds(description, its.place, quick).iter().map(move |seed| (workload, *seed))
        }) {
            let job = |contestants| Job { part, workload, seed, contestants };
            match its.place {
                Place::Deterministic { .. } => {
                    let first = description.seeds.first() == Some(&seed);
                    let its = able
                        .iter()
                        .filter(|contestant| first || !field.contestants[**contestant].is_brief);
                    jobs.extend(its.map(|contestant| job(vec![*contestant])));
                }
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

/// A part's rows from its jobs and their outcomes.
fn rows<'a>(
    part: &Part,
    field: &Field,
    quick: bool,
    found: impl Iterator<Item = (&'a Job, &'a Vec<Found>)> + Clone,
) -> Vec<Row> {
    let of = |contestant: usize, workload: usize| match &field.ready[contestant] {
        Err(reason) => Err(reason.clone()),
        Ok(_) => found
            .clone()
            .filter(|(job, _)| job.workload == workload)
            .filter_map(|(job, runs)| {
                let run =
                    runs.get(job.contestants.iter().position(|index| *index == contestant)?)?;
                Some(run.clone().map(|run| (job.seed, run)))
            })
            .collect(),
    };
    let row = |(index, contestant): (usize, &Contestant)| Row {
        name: contestant.name.clone(),
        is_peer: contestant.is_peer(),
        lines: contestant.lines(),
        is_brief: quick || contestant.is_brief,
        runs: part
            .workloads
            .iter()
            .enumerate()
            .filter(|(_, workload)| workload.is_in(quick))
            .map(|(number, workload)| (workload.name, of(index, number)))
            .collect(),
    };
    field.contestants.iter().enumerate().map(row).collect()
}

struct Measuring<'a> {
    /// By part.
    caches: &'a [Cache],
    runs: &'a RunCache,
    description: &'a Description,
    fields: &'a [Field],
    options: &'a Options,
}

impl Measuring<'_> {
    fn workload(&self, job: &Job) -> &'static Workload {
        &self.description.parts[job.part].workloads[job.workload]
    }

    /// The jobs' results, in their order. Jobs in real time run first, one by one, while the user
    /// still leaves the machine alone; then the deterministic ones, as many at a time as there are
    /// CPUs.
    fn all(&self, jobs: &[Job], progress: Progress) -> Vec<Vec<Found>> {
        let found: Vec<Mutex<Vec<Found>>> = jobs.iter().map(|_| Mutex::new(vec![])).collect();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        for (deterministic, workers) in [(false, 1), (true, cpus)] {
            let its: Vec<usize> = (0..jobs.len())
                .filter(|index| {
                    self.description.parts[jobs[*index].part].place.is_deterministic()
                        == deterministic
                })
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
                            *found[*index]
                                .lock()
                                .unwrap_or_else(|poisoned| poisoned.into_inner()) = runs;
                        }
                    });
                }
                drop(say);
                said.iter().for_each(|text| progress(&text));
            });
        }
        found
            .into_iter()
            .map(|runs| runs.into_inner().unwrap_or_else(|poison| poison.into_inner()))
            .collect()
    }

    /// A job's runs, from the cache or made now.
    fn once(&self, job: &Job, say: &dyn Fn(String)) -> Vec<Found> {
        let name = self.name(job);
        let fail = |error: anyhow::Error| {
            job.contestants.iter().map(|_| Err(format!("{error:#}"))).collect()
        };
        let (order, hash) = match self.order(job) {
            Ok(both) => both,
            Err(error) => return fail(error),
        };
        let before = if self.options.fresh { None } else { self.runs.find(&hash) };
        if let Some(runs) = before.filter(|runs| runs.len() == job.contestants.len()) {
            say(format!("{name}: measured before"));
            return runs.into_iter().map(Ok).collect();
        }
        say(name.clone());
        let found = order.run(&self.caches[job.part], &|words| say(format!("{name}: {words}")));
        let good: Vec<Run> = found.iter().filter_map(|run| run.as_ref().ok().cloned()).collect();
        if good.len() == found.len()
            && let Err(error) = self.runs.keep(&hash, &good)
        {
            say(format!("cannot keep this run: {error:#}"));
        }
        found
    }

    fn name(&self, job: &Job) -> String {
        let (field, workload) = (&self.fields[job.part], self.workload(job).name);
        match self.description.parts[job.part].place {
            Place::TwoCpus => format!("{workload}, two CPUs, round {}", job.seed),
            Place::Deterministic { .. } => {
                let names =
                    job.contestants.iter().map(|index| field.contestants[*index].name.as_str());
                format!(
                    "{workload} under {}, seed {}",
                    names.collect::<Vec<_>>().join(", "),
                    job.seed
                )
            }
        }
    }

    /// The machine for a job, and the hash of all that it is made of.
    fn order(&self, job: &Job) -> Result<(Order, String)> {
        let workload = self.workload(job);
        let ready: Vec<(&Contestant, &Ready)> = self.ready(job).collect();
        let mut pack: Vec<PathBuf> =
            ready.iter().flat_map(|(_, ready)| ready.files.clone()).collect();
        let own = pack.len();
        pack.extend(self.needs(workload)?);
        let order = Order {
            place: self.description.parts[job.part].place,
            seed: job.seed,
            memory: workload.memory,
            commands: ready.iter().map(|(who, ready)| self.words(job, who, ready)).collect(),
            seconds: ready.iter().filter_map(|(who, _)| workload.lasts(self.is_brief(who))).sum(),
            pack,
        };
        let fingerprint = order.fingerprint(&self.caches[job.part])?;
        let files: Vec<&Path> = order.pack[..own].iter().map(PathBuf::as_path).collect();
        let hash = run_cache::hash(&fingerprint, &files, &format!("round {}", job.seed))?;
        Ok((order, hash))
    }

    /// The workload's files; makes a missing fixture.
    fn needs(&self, workload: &Workload) -> Result<Vec<PathBuf>> {
        let Options { folder, programs, .. } = self.options;
        let fixture = workload.fixture.map(|fixture| fixture.made(folder, programs)).transpose()?;
        Ok((workload.needs)(self.options)?.into_iter().chain(fixture).collect())
    }

    fn is_brief(&self, who: &Contestant) -> bool {
        self.options.quick || who.is_brief
    }

    fn words(&self, job: &Job, who: &Contestant, ready: &Ready) -> Vec<String> {
        let Options { folder, programs, .. } = self.options;
        let workload = self.workload(job);
        let programs = programs.display().to_string();
        let own = workload.words(self.is_brief(who), job.seed).into_iter().map(|word| {
            let word = word.replace("{programs}", &programs);
            match &workload.fixture {
                Some(fixture) => word
                    .replace(fixture.placeholder(), &fixture.folder(folder).display().to_string()),
                None => word,
            }
        });
        ready.words.iter().cloned().chain(own).collect()
    }

    fn ready(&self, job: &Job) -> impl Iterator<Item = (&Contestant, &Ready)> {
        let field = &self.fields[job.part];
        let both =
            |index: &usize| Some((&field.contestants[*index], field.ready[*index].as_ref().ok()?));
        job.contestants.iter().filter_map(both)
    }

    /// As a user would type them.
    fn commands(&self, job: &Job) -> Vec<String> {
        let (workload, place) = (self.workload(job), self.description.parts[job.part].place);
        let (needs, memory) = (self.needs(workload).unwrap_or_default(), workload.memory);
        let command = |(who, ready): (&Contestant, &Ready)| {
            let words = typed(&self.words(job, who, ready));
            let files = ready.files.iter().chain(&needs);
            let pack: String = files.map(|path| format!(" --pack {}", path.display())).collect();
            match place {
                Place::TwoCpus => format!("attune vm --cpus 2 --memory {memory} -- {words}"),
                Place::Deterministic { cpus, sockets, kernel } => {
                    let full = if kernel == Kernel::Full { " --full" } else { "" };
                    let cpus = match (cpus, sockets) {
                        (1, _) => String::new(),
                        (cpus, 1) => format!(" --cpus {cpus}"),
                        _ => format!(" --topology {}", place.topology()),
                    };
                    let seed = job.seed;
                    format!(
                        "attune vm{full} --memory {memory} --deterministic{cpus} --seed \
                            {seed}{pack} -- {words}"
                    )
                }
            }
        };
        self.ready(job).map(command).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{FIVE_SEEDS, Figure};
    use serde_json::json;

    const DESCRIPTION: Description = Description {
        name: "test",
        about: "",
        title: "",
        text: &[],
        published: "",
        parts: &[Part {
            title: "",
            place: Place::ONE_CPU,
            contestants: || vec![Contestant::fair_class().briefly(), Contestant::ours("coop")],
            workloads: &[
                Workload::new("one", ""),
                Workload::new("other", ""),
                Workload::new("long", "").thorough(),
            ],
            figures: &[],
        }],
        seeds: FIVE_SEEDS,
        drawn: "",
        claims: |_| vec![],
    };

    fn field() -> Field {
        let contestants = (DESCRIPTION.parts[0].contestants)();
        let ready =
            contestants.iter().map(|_| Ok(Ready { words: vec![], files: vec![] })).collect();
        Field { contestants, ready }
    }

    /// The seeds of a contestant and workload.
    fn seeds_of(jobs: &[Job], contestant: usize, workload: usize) -> Vec<u64> {
        let its =
            jobs.iter().filter(|job| job.contestants == [contestant] && job.workload == workload);
        its.map(|job| job.seed).collect()
    }

    #[test]
    fn a_baseline_runs_once_and_others_run_with_all_seeds() {
        let full = plan(&DESCRIPTION, &[field()], false);
        let quick = plan(&DESCRIPTION, &[field()], true);
        for workload in [0, 1] {
            assert_eq!(seeds_of(&full, 0, workload), [1]);
            assert_eq!(seeds_of(&full, 1, workload), [1, 2, 3, 4, 5]);
            assert_eq!(seeds_of(&quick, 0, workload), [1]);
            assert_eq!(seeds_of(&quick, 1, workload), [1]);
        }
    }

    #[test]
    fn quick_runs_leave_thorough_workloads_out_of_plan_and_rows() {
        for (quick, runs) in [(false, 5), (true, 0)] {
            let jobs = plan(&DESCRIPTION, &[field()], quick);
            assert_eq!(seeds_of(&jobs, 1, 2).len(), runs);
            let found: Vec<Vec<Found>> = jobs.iter().map(|_| vec![]).collect();
            let rows = rows(&DESCRIPTION.parts[0], &field(), quick, jobs.iter().zip(&found));
            assert_eq!(rows[1].runs.contains_key("long"), !quick);
        }
    }

    #[test]
    fn quick_runs_leave_thorough_contestants_out() {
        const PART: Part = Part {
            contestants: || vec![Contestant::fair_class().thorough(), Contestant::ours("coop")],
            ..DESCRIPTION.parts[0]
        };
        for (quick, names) in
            [(false, &["fair class", "attune coop"][..]), (true, &["attune coop"])]
        {
            // Without programs none can run, and each is a row all the same.
            let nowhere = PathBuf::from("/nonexistent");
            let options =
                Options { quick, fresh: false, programs: nowhere.clone(), folder: nowhere.clone() };
            let field = prepare(&PART, &options, &nowhere, &mut BTreeMap::new());
            let found: Vec<_> = field.contestants.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(found, names);
        }
    }

    #[test]
    fn runs_are_found_again_under_their_seeds() {
        let jobs = plan(&DESCRIPTION, &[field()], false);
        let figure = |job: &Job| json!(job.seed * 10 + job.contestants[0] as u64);
        let found: Vec<Vec<Found>> = jobs
            .iter()
            .map(|job| vec![Ok(Run { figures: json!({ "x": figure(job) }), choices: None })])
            .collect();
        let rows = rows(&DESCRIPTION.parts[0], &field(), false, jobs.iter().zip(&found));
        assert_eq!(
            rows.iter().map(|row| (row.count(), row.is_brief)).collect::<Vec<_>>(),
            [(1, true), (5, false)]
        );
        let x = Figure::new("x", "one", "/x", 1.0);
        assert_eq!(rows[1].median(&x).map(|median| median.value), Some(31.0));
        // Only seed 1 is common to both.
        assert_eq!(rows[1].ratio(&x, &rows[0]).map(|ratio| ratio.value), Some(11.0 / 10.0));
    }
}
