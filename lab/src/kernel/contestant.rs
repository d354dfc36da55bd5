//! The schedulers that an experiment compares, and the command that runs a workload under one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use attune_kernel::Per;
use attune_peers::{PEERS, Peer, count_lines};
use serde::Serialize;

use super::place::Place;
use crate::programs::words_of;
use crate::schedulers;

/// In front of a program's text: it counts how often CPUs go idle (`engines/kernel/bpf/idle.h`).
const COUNTS_IDLE: &str = "#define ATTUNE_COUNTS_IDLE 1\n";

/// A scheduler under which workloads run.
#[derive(Clone, Debug)]
pub struct Contestant {
    pub name: String,
    /// See [`Contestant::briefly`].
    pub is_brief: bool,
    /// `--quick` leaves it out.
    is_thorough: bool,
    kind: Kind,
    /// For `attune-load`, before the workload's own.
    words: &'static str,
    /// Programs of ours that these words start.
    starts: &'static [&'static str],
}

#[derive(Clone, Debug)]
enum Kind {
    /// A class of the kernel, with these words for `attune-load`.
    Kernel(&'static str),
    Peer(&'static Peer),
    Ours(Ours),
}

/// A scheduler of the library in the kernel engine.
#[derive(Clone, Copy, Debug)]
struct Ours {
    scheduler: &'static str,
    /// For `attune run`.
    words: &'static str,
    /// None: one instance.
    per: Option<Per>,
    /// Its program counts how often CPUs go idle, which costs instructions.
    counts_idle: bool,
}

/// A command and the files that it needs, ready for a machine.
#[derive(Clone, Debug)]
pub struct Ready {
    pub words: Vec<String>,
    /// The programs among them.
    pub files: Vec<PathBuf>,
}

/// How long a scheduler's text is, without comments and empty lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lines {
    pub own: usize,
    /// Lines of the library schedulers that it extends.
    pub bases: usize,
}

impl Contestant {
    fn new(name: impl Into<String>, kind: Kind) -> Contestant {
        Contestant {
            name: name.into(),
            is_brief: false,
            is_thorough: false,
            kind,
            words: "",
            starts: &[],
        }
    }

    /// The same under another name, with words for `attune-load` that start programs of ours.
    pub fn with(
        self,
        name: &str,
        words: &'static str,
        starts: &'static [&'static str],
    ) -> Contestant {
        Contestant { name: name.to_owned(), words, starts, ..self }
    }

    /// The same as a baseline: in deterministic machines it runs once, with the first seed, each
    /// workload for its brief time.
    pub fn briefly(self) -> Contestant {
        Contestant { is_brief: true, ..self }
    }

    /// The same for full runs alone: `--quick` leaves it out.
    pub fn thorough(self) -> Contestant {
        Contestant { is_thorough: true, ..self }
    }

    /// Whether such a run of the experiment has it.
    pub fn is_in(&self, quick: bool) -> bool {
        !(quick && self.is_thorough)
    }

    /// The fair class as it is.
    pub fn fair_class() -> Contestant {
        Contestant::new("fair class", Kind::Kernel(""))
    }

    /// The fair class, asked for slices of 0.3 ms.
    pub fn fair_class_slices() -> Contestant {
        Contestant::new("fair class, 0.3 ms", Kind::Kernel("--slice 300"))
    }

    /// The fair class, asked for the shortest slices that it gives.
    pub fn fair_class_short_slices() -> Contestant {
        Contestant::new("fair class, 0.1 ms", Kind::Kernel("--slice 100"))
    }

    /// The fair class, with players that pass the CPU to each other through shared memory.
    pub fn cooperating() -> Contestant {
        let words = "--coop shared:/tmp/attune-coop";
        Contestant::new("fair class, cooperating", Kind::Kernel(words))
    }

    /// SCHED_RR as it is.
    pub fn round_robin_class() -> Contestant {
        Contestant::new("SCHED_RR", Kind::Kernel("--class rr"))
    }

    /// SCHED_DEADLINE, with an equal part of the CPU reserved for each process in every 10 ms; for
    /// players alone.
    pub fn deadline_class() -> Contestant {
        let words = "--class deadline";
        Contestant::new("SCHED_DEADLINE, 10 ms", Kind::Kernel(words))
    }

    /// SCHED_DEADLINE, with the reservation that each process asks for; only for periodic
    /// processes.
    pub fn reserving_class() -> Contestant {
        Contestant::new("SCHED_DEADLINE", Kind::Kernel("--class deadline"))
    }

    /// All the peers.
    pub fn peers() -> impl Iterator<Item = Contestant> {
        PEERS.iter().map(|peer| Contestant::new(peer.name, Kind::Peer(peer)))
    }

    /// A scheduler of the library.
    pub fn ours(scheduler: &'static str) -> Contestant {
        Contestant::ours_changed(scheduler, scheduler, "")
    }

    /// A scheduler of the library, changed by words for `attune run`, under a name of its own.
    pub fn ours_changed(name: &str, scheduler: &'static str, words: &'static str) -> Contestant {
        let ours = Ours { scheduler, words, per: None, counts_idle: false };
        Contestant::new(format!("attune {name}"), Kind::Ours(ours))
    }

    /// One of ours with an instance for the machine, each cache or each CPU.
    pub fn per(mut self, per: Per) -> Contestant {
        if let Kind::Ours(ours) = &mut self.kind {
            ours.per = Some(per);
            self.name = format!("{} --per {}", self.name, word(per));
        }
        self
    }

    /// One of ours whose program counts how often CPUs go idle: figures `/idle/..`.
    pub fn counting_idle(mut self) -> Contestant {
        if let Kind::Ours(ours) = &mut self.kind {
            ours.counts_idle = true;
            self.name = format!("{}, counted", self.name);
        }
        self
    }

    pub fn is_peer(&self) -> bool {
        matches!(self.kind, Kind::Peer(_))
    }

    /// None: a class of the kernel.
    pub fn lines(&self) -> Option<Lines> {
        match &self.kind {
            Kind::Kernel(_) => None,
            Kind::Peer(peer) => {
                Some(Lines { own: attune_peers::Cache::default_place().lines(peer), bases: 0 })
            }
            Kind::Ours(ours) => lines_of(ours.scheduler),
        }
    }

    /// Builds what it needs in that machine; `programs` is the folder of the project's programs,
    /// `folder` a place to write. Err: why it cannot run.
    pub fn prepare(&self, programs: &Path, folder: &Path, place: Place) -> Result<Ready> {
        let mut ready = self.scheduler(programs, folder, place)?;
        ready.words.extend(words_of(self.words));
        for program in self.starts.iter().map(|name| programs.join(name)) {
            ensure!(program.exists(), "there is no {}; `make build` builds it", program.display());
            if !ready.files.contains(&program) {
                ready.files.push(program);
            }
        }
        Ok(ready)
    }

    fn scheduler(&self, programs: &Path, folder: &Path, place: Place) -> Result<Ready> {
        let load = load(programs)?;
        let load_word = load.display().to_string();
        Ok(match &self.kind {
            Kind::Kernel(words) => {
                Ready { words: [vec![load_word], words_of(words)].concat(), files: vec![load] }
            }
            Kind::Peer(peer) => {
                let peers = attune_peers::Cache::default_place();
                let program =
                    peers.program(peer).context("not built; `attune lab peers build` builds it")?;
                let words = vec![load_word, "--scx".to_owned(), program.display().to_string()];
                Ready { words, files: vec![load, program] }
            }
            Kind::Ours(ours) => {
                let attune = programs.join("attune");
                let object = ours.build(&attune, folder, place)?;
                let mut words = vec![attune.display().to_string(), "run".to_owned()];
                words.extend([object.display().to_string(), "--all".to_owned()]);
                words.extend(
                    ours.per.iter().flat_map(|per| ["--per", word(*per)]).map(str::to_owned),
                );
                words.extend(words_of(ours.words));
                words.extend(["--".to_owned(), load_word]);
                Ready { words, files: vec![attune, object, load] }
            }
        })
    }
}

/// The program that makes the workloads.
pub fn load(programs: &Path) -> Result<PathBuf> {
    let load = programs.join("attune-load");
    ensure!(load.exists(), "there is no {}; `make build` builds it", load.display());
    Ok(load)
}

/// As `attune run --per` knows it.
fn word(per: Per) -> &'static str {
    match per {
        Per::Machine => "machine",
        Per::Cache => "cache",
        Per::Cpu => "cpu",
    }
}

impl Ours {
    /// Compiles it for the kernel: the object.
    fn build(self, attune: &Path, folder: &Path, place: Place) -> Result<PathBuf> {
        let (scheduler, cpus) = (self.scheduler, place.cpus());
        let instances = match self.per {
            None | Some(Per::Machine) => 1,
            Some(Per::Cache) => place.caches(),
            Some(Per::Cpu) => cpus,
        };
        let mut name = format!("{scheduler}-{cpus}");
        if instances > 1 {
            name += &format!("-{instances}");
        }
        if self.counts_idle {
            let object = folder.join(format!("{name}-counted.bpf.o"));
            schedulers::compile_for_kernel(scheduler, COUNTS_IDLE, &object, cpus, instances)?;
            return Ok(object);
        }
        let object = folder.join(format!("{name}.bpf.o"));
        let mut command = Command::new(attune);
        let counts = [cpus.to_string(), instances.to_string()];
        command.args(["build", scheduler, "--engine", "kernel", "--cpus", &counts[0]]);
        command.args(["--instances", &counts[1], "-o"]).arg(&object);
        let output =
            command.output().with_context(|| format!("cannot run {}", attune.display()))?;
        if !output.status.success() || fs::metadata(&object).is_err() {
            let words = String::from_utf8_lossy(&output.stderr);
            bail!(
                "cannot be compiled for the kernel: {}",
                words.lines().next().unwrap_or("no reason was given")
            );
        }
        Ok(object)
    }
}

/// None: it is not in the library.
fn lines_of(scheduler: &str) -> Option<Lines> {
    let entry = attune_schedulers::find(scheduler)?;
    let mut words = entry.text.split_whitespace().skip_while(|word| *word != "extends");
    let base =
        words.nth(1).map(|base| base.trim_end_matches('{')).filter(|base| *base != scheduler);
    let bases = base.and_then(lines_of).map_or(0, |base| base.own + base.bases);
    Some(Lines { own: count_lines(entry.text), bases })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_the_command_that_builds_it() {
        let folder = Path::new("/nonexistent");
        let error = Contestant::fair_class()
            .prepare(folder, folder, Place::ONE_CPU)
            .expect_err("no program");
        assert!(error.to_string().contains("make build"), "{error}");
    }

    #[test]
    fn the_lines_of_a_scheduler_are_its_own_and_its_bases() {
        let own = |name| count_lines(attune_schedulers::find(name).expect("in the library").text);
        assert_eq!(lines_of("lifecycle"), Some(Lines { own: own("lifecycle"), bases: 0 }));
        assert_eq!(lines_of("fifo"), Some(Lines { own: own("fifo"), bases: own("lifecycle") }));
        assert_eq!(lines_of("no such scheduler"), None);
    }
}
