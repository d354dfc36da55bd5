//! The examples' programs as nodes of a cluster of this machine, and alone.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use attune_linux::child::pin;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::example::Example;
use crate::experiment::Options;
use crate::files;
use crate::median_interval::{self, Median};

/// Shared variables that the nodes of an example ask the owner for.
fn requested(example: &Example) -> impl Iterator<Item = String> {
    example.requested.iter().map(|name| format!("--request={name}"))
}

/// A folder with an example's texts and its compiled node schedulers, `FAMILY.so`.
pub struct Stage {
    attune: PathBuf,
    program: PathBuf,
    folder: PathBuf,
    master: String,
}

/// The CPUs of a manager and of its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    pub manager: u32,
    pub programs: u32,
}

/// One run after the other under the same requests.
#[derive(Serialize)]
pub struct Pair<T> {
    pub alone: T,
    pub cluster: T,
}

/// The median over the pairs, and its interval.
pub fn median<T>(pairs: &[Pair<T>], figure: fn(&Pair<T>) -> f64) -> Result<Median> {
    let values: Vec<f64> = pairs.iter().map(figure).collect();
    median_interval::of(&values).context("no pair")
}

/// Whether the example's program was built.
pub fn check(options: &Options, example: &Example) -> Result<()> {
    for program in ["attune", example.name] {
        let program = options.programs.join(program);
        ensure!(program.exists(), "there is no {}: make build", program.display());
    }
    Ok(())
}

impl Stage {
    pub fn set(options: &Options, example: &Example) -> Result<Stage> {
        let folder = options.folder.join(example.name);
        files::create_folder(&folder)?;
        let master = format!("{}.sched", example.name);
        files::write_atomically(&folder.join(&master), example.master.as_bytes())?;
        for (file, text) in example.nodes {
            files::write_atomically(&folder.join(file), text.as_bytes())?;
        }
        let attune = options.programs.join("attune");
        for (file, _) in example.nodes {
            let family = file.trim_end_matches(".subsched");
            let built = Command::new(&attune)
                .args(["build", &master, "--node", family, "-o", &format!("{family}.so")])
                .args(requested(example))
                .current_dir(&folder)
                .status()
                .context("attune build")?;
            ensure!(built.success(), "attune build failed");
        }
        Ok(Stage { attune, program: options.programs.join(example.name), folder, master })
    }

    /// Runs programs of one cluster at a time, each with these words, and reads what each says,
    /// line by line; then, when all have ended, one more with `last`. Where they run: anywhere, or
    /// the manager and the programs on a CPU each.
    pub fn run_all<T: DeserializeOwned, L: DeserializeOwned>(
        &self,
        programs: &[Vec<String>],
        last: &[&str],
        scheduler: &str,
        place: Option<Place>,
    ) -> Result<(Vec<Vec<T>>, L)> {
        // In memory, as /run is on most machines: a state on a disk waits for the disk.
        let memory = PathBuf::from(format!("/dev/shm/attune-lab-{}", std::process::id()));
        files::create_folder(&memory)?;
        let name = memory.join("socket").to_string_lossy().into_owned();
        let command = || {
            let mut command = Command::new(&self.program);
            command.current_dir(&self.folder).env("ATTUNE_CLUSTER", &name);
            command.env("ATTUNE_SCHED", scheduler);
            if let Some(Place { programs, .. }) = place {
                pin(&mut command, programs);
            }
            command
        };
        let manager = Manager::start(self, &name, place.map(|it| it.manager))?;
        // Into files: a full pipe would stop a program.
        let file = |number: usize| self.folder.join(format!("said-{number}"));
        let start = |(number, words): (usize, &Vec<String>)| -> std::io::Result<Child> {
            command().args(words).stdout(File::create(file(number))?).spawn()
        };
        let started: std::io::Result<Vec<Child>> = programs.iter().enumerate().map(start).collect();
        let mut said = Vec::new();
        for (number, mut child) in started.context("the program")?.into_iter().enumerate() {
            let ended = child.wait().context("the program")?;
            ensure!(ended.success(), "the program failed: {ended}");
            let lines = std::fs::read_to_string(file(number)).context("what it said")?;
            let parsed: Result<Vec<T>, _> = lines.lines().map(serde_json::from_str).collect();
            said.push(parsed.with_context(|| format!("the program said {lines}"))?);
        }
        let output = command().args(last).output().context("the program")?;
        drop(manager);
        // What stays is a socket and a page.
        let _ = std::fs::remove_dir_all(&memory);
        let lines = String::from_utf8_lossy(&output.stdout);
        let last = serde_json::from_str(lines.trim());
        Ok((said, last.with_context(|| format!("the program said {lines}"))?))
    }

    /// Runs the program, with a manager of its own or with none, and reads what it says.
    pub fn run<T: DeserializeOwned>(
        &self,
        clustered: bool,
        arrange: impl FnOnce(&mut Command),
    ) -> Result<T> {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env_remove("ATTUNE_CLUSTER");
        if clustered {
            command.env("ATTUNE_CLUSTER", "./socket");
        }
        arrange(&mut command);
        let manager = clustered.then(|| Manager::start(self, "./socket", None)).transpose()?;
        let output = command.output().context("the program")?;
        drop(manager);
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the program failed: {errors}{said}");
        serde_json::from_str(&said).with_context(|| format!("the program said {said}"))
    }

    /// Which of the two of a pair is first alternates. `run` takes the pair's number, from 1, and
    /// whether the program is to be in the cluster.
    pub fn pairs<T>(
        count: u32,
        mut run: impl FnMut(u32, bool) -> Result<T>,
    ) -> Result<Vec<Pair<T>>> {
        let pairs = (1..=count).map(|number| {
            let cluster_first = number % 2 == 1;
            let first = run(number, cluster_first)?;
            let second = run(number, !cluster_first)?;
            let (cluster, alone) = if cluster_first { (first, second) } else { (second, first) };
            Ok(Pair { alone, cluster })
        });
        pairs.collect()
    }
}

/// A manager that listens.
struct Manager(Child);

impl Manager {
    fn start(stage: &Stage, name: &str, cpu: Option<u32>) -> Result<Manager> {
        let mut command = Command::new(&stage.attune);
        command.args(["manager", &stage.master, "--name", name, "--json"]);
        command.current_dir(&stage.folder).stdout(Stdio::piped());
        if let Some(cpu) = cpu {
            pin(&mut command, cpu);
        }
        let mut child = command.spawn().context("attune manager")?;
        let said = child.stdout.take().context("its output")?;
        let mut manager = Manager(child);
        let mut said = BufReader::new(said);
        let mut line = String::new();
        said.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the manager ended: {:?}", manager.0.wait());
        // It goes on when nobody reads; a full pipe would stop it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(manager)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // It has ended already, or does now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
