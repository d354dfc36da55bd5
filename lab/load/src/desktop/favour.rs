//! What favours the programs that a person deals with.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use attune_linux::procfs;
use attune_linux::scheduling::{Attributes, RESET_ON_FORK};
use serde_json::{Value, json};

use super::Figures;
use crate::child;
use crate::running::{Environment, Running};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Favour {
    Nobody,
    /// A person gives all programs on the desktop nice -20
    Nice,
    /// Each program has a cgroup; that of the focused window has five times the weight
    Cgroup,
    /// `attune focus` rates programs, for a policy that reads ratings
    Ratings,
    /// `attune focus` rates programs, and `attuned` makes weights of it
    Weights,
}

const CGROUPS: &str = "/sys/fs/cgroup";
/// A cgroup's weight is 100 unless another was set.
const FOCUSED: &str = "500";
/// For the monitor to say something.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Favoured {
    how: Favour,
    monitor: Option<Running>,
    daemon: Option<Running>,
    /// The cgroups lie in it.
    folder: PathBuf,
    /// Bytes that the monitor had said when ratings were forgotten.
    forgotten: Cell<usize>,
}

fn program(words: &str, environment: &Environment) -> Result<Running> {
    Running::start_in(&crate::running::words(words), environment)
}

impl Favoured {
    pub fn start(how: Favour, environment: &Environment) -> Result<Favoured> {
        Favoured::start_with(how, environment, "attune focus --json")
    }

    /// The same; the monitor writes what it observes into a file.
    pub fn start_recorded(
        how: Favour,
        environment: &Environment,
        recording: &Path,
    ) -> Result<Favoured> {
        let monitor = format!("attune focus --json --record {}", recording.display());
        Favoured::start_with(how, environment, &monitor)
    }

    fn start_with(how: Favour, environment: &Environment, monitor: &str) -> Result<Favoured> {
        let rated = matches!(how, Favour::Ratings | Favour::Weights);
        let daemon =
            (how == Favour::Weights).then(|| program("attuned", environment)).transpose()?;
        let monitor = rated.then(|| program(monitor, environment)).transpose()?;
        let folder = Path::new(CGROUPS).join(format!("attune-load-{}", std::process::id()));
        let mut favoured = Favoured { how, monitor, daemon, folder, forgotten: Cell::new(0) };
        if how == Favour::Cgroup {
            fs::create_dir(&favoured.folder).context("cgroups need root and cgroup v2")?;
            for above in [Path::new(CGROUPS), &favoured.folder] {
                write(&above.join("cgroup.subtree_control"), "+cpu")?;
            }
        }
        let patience = Instant::now() + PATIENCE;
        while favoured
            .monitor
            .as_ref()
            .is_some_and(|monitor| !child::said(&monitor.log).contains('{'))
        {
            favoured.lives()?;
            ensure!(Instant::now() < patience, "the monitor says nothing");
            thread::sleep(Duration::from_millis(100));
        }
        Ok(favoured)
    }

    pub fn monitor(&self) -> Option<u32> {
        self.monitor.as_ref().map(|monitor| monitor.child.id())
    }

    /// Another program, which nothing favours.
    pub fn other(&self, process: u32, number: usize) -> Result<()> {
        self.group(&format!("other-{number}"), process).map(drop)
    }

    /// The programs on the desktop, the focused one first.
    pub fn known(&self, processes: &[u32]) -> Result<()> {
        if self.how == Favour::Nice {
            // Two films leave nothing for this process, and would be over before it has looked.
            Attributes { nice: -20, flags: RESET_ON_FORK, ..Attributes::default() }.apply_to(0)?;
        }
        for (number, process) in processes.iter().enumerate() {
            for process in with_descendants(*process) {
                if self.how == Favour::Nice {
                    let nice = Attributes { nice: -20, ..Attributes::default() };
                    for thread in procfs::threads(process) {
                        // A thread may end meanwhile.
                        let _ = nice.apply_to(thread);
                    }
                }
                let group = self.group(&format!("program-{number}"), process)?;
                if let Some(group) = group.filter(|_| number == 0) {
                    write(&group.join("cpu.weight"), FOCUSED)?;
                }
            }
        }
        Ok(())
    }

    fn group(&self, name: &str, process: u32) -> Result<Option<PathBuf>> {
        if self.how != Favour::Cgroup {
            return Ok(None);
        }
        let group = self.folder.join(name);
        fs::create_dir_all(&group).with_context(|| format!("making {}", group.display()))?;
        write(&group.join("cgroup.procs"), &process.to_string())?;
        Ok(Some(group))
    }

    pub fn forget_ratings(&self) {
        self.forgotten.set(self.said_since(0).1);
    }

    /// The monitor's lines behind so many bytes, one for each second, and the bytes with them.
    pub fn said_since(&self, bytes: usize) -> (Vec<Value>, usize) {
        let Some(monitor) = &self.monitor else { return (vec![], bytes) };
        let length = monitor.log.metadata().map_or(0, |about| about.len() as usize);
        if length <= bytes {
            return (vec![], bytes);
        }
        let said = child::said(&monitor.log);
        let end = said.rfind('\n').map_or(0, |end| end + 1);
        let lines = said.get(bytes..end).unwrap_or_default().lines();
        (lines.filter_map(|line| serde_json::from_str(line).ok()).collect(), end.max(bytes))
    }

    /// The programs that the monitor has rated since: the least and the greatest input and output
    /// rating of each, and in which part of all lines it is rated.
    pub fn ratings(&self) -> Figures {
        let (lines, _) = self.said_since(self.forgotten.get());
        let mut found: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
        for program in lines.iter().filter_map(|line| line["programs"].as_array()).flatten() {
            let of = |which: &str| program[which].as_f64().unwrap_or(0.0);
            let name = program["name"].as_str().unwrap_or_default().to_owned();
            found.entry(name).or_default().push([of("input"), of("output")]);
        }
        let figures = |(name, all): (String, Vec<[f64; 2]>)| {
            let bounds = |which: usize| {
                let values = || all.iter().map(|ratings| ratings[which]);
                let least = values().fold(f64::INFINITY, f64::min);
                json!({ "min": least, "max": values().fold(0.0, f64::max) })
            };
            let part = 100.0 * all.len() as f64 / lines.len().max(1) as f64;
            (name, json!({ "input": bounds(0), "output": bounds(1), "lines_percent": part }))
        };
        found.into_iter().map(figures).collect()
    }

    /// Err: the monitor or the daemon has ended.
    pub fn lives(&mut self) -> Result<()> {
        for program in self.monitor.iter_mut().chain(&mut self.daemon) {
            program.lives()?;
        }
        Ok(())
    }
}

pub fn with_descendants(process: u32) -> Vec<u32> {
    let all = procfs::processes();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        found.extend(all.iter().filter(|child| procfs::parent(**child) == Some(parent)));
    }
    found
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("writing {text} to {}", file.display()))
}
