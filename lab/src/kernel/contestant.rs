//! Who is compared, and the command that runs a workload under it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use attune_peers::{PEERS, Peer, count_lines};

/// A scheduler under which a workload is run.
#[derive(Clone, Debug)]
pub struct Contestant {
    pub name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// What the kernel has, with these words for `attune-load`.
    Kernel(&'static [&'static str]),
    Peer(&'static Peer),
    /// A scheduler of the library, with the kernel engine.
    Ours(&'static str),
}

/// A command and the files that it needs, ready for a machine.
#[derive(Clone, Debug)]
pub struct Ready {
    pub words: Vec<String>,
    pub pack: Vec<PathBuf>,
    /// Lines of the scheduler's text; None: it is the kernel's own.
    pub lines: Option<usize>,
}

impl Contestant {
    /// The fair class as it is.
    pub fn fair_class() -> Contestant {
        Contestant { name: "fair class".to_owned(), kind: Kind::Kernel(&[]) }
    }

    /// The fair class, asked for the shortest slices that it gives.
    pub fn fair_class_short_slices() -> Contestant {
        Contestant { name: "fair class, 0.1 ms".to_owned(), kind: Kind::Kernel(&["--slice", "100"]) }
    }

    /// The fair class, with players that pass the CPU to each other through shared memory.
    pub fn cooperating() -> Contestant {
        let words = &["--coop", "shared:/tmp/attune-coop"];
        Contestant { name: "fair class, cooperating".to_owned(), kind: Kind::Kernel(words) }
    }

    /// SCHED_RR as it is.
    pub fn round_robin_class() -> Contestant {
        Contestant { name: "SCHED_RR".to_owned(), kind: Kind::Kernel(&["--policy", "rr"]) }
    }

    /// All the peers.
    pub fn peers() -> impl Iterator<Item = Contestant> {
        PEERS.iter().map(|peer| Contestant { name: peer.name.to_owned(), kind: Kind::Peer(peer) })
    }

    /// A scheduler of the library.
    pub fn ours(scheduler: &'static str) -> Contestant {
        Contestant { name: format!("attune {scheduler}"), kind: Kind::Ours(scheduler) }
    }

    pub fn is_peer(&self) -> bool {
        matches!(self.kind, Kind::Peer(_))
    }

    /// Makes ready what it needs, `programs` being the project's built programs and `folder` a place to write. Err: why it cannot run.
    pub fn prepare(&self, programs: &Path, folder: &Path) -> Result<Ready> {
        let load = programs.join("attune-load");
        ensure!(load.exists(), "there is no {}; `make build` builds it", load.display());
        let load_word = load.display().to_string();
        Ok(match &self.kind {
            Kind::Kernel(words) => Ready {
                words: [vec![load_word], words.iter().map(|word| (*word).to_owned()).collect()].concat(),
                pack: vec![],
                lines: None,
            },
            Kind::Peer(peer) => {
                let peers = attune_peers::Cache::default_place();
                let program = peers.program(peer).context("not built; `attune lab peers build` builds it")?;
                let words = vec![load_word, "--scx".to_owned(), program.display().to_string()];
                Ready { words, pack: vec![program], lines: peers.lines(peer) }
            }
            Kind::Ours(scheduler) => {
                let attune = programs.join("attune");
                let object = folder.join(format!("{scheduler}.bpf.o"));
                build(&attune, scheduler, &object)?;
                let mut words: Vec<_> =
                    [&attune, Path::new("run"), &object, Path::new("--all"), Path::new("--")]
                        .map(|word: &Path| word.display().to_string())
                        .to_vec();
                words.push(load_word);
                Ready { words, pack: vec![object, load], lines: Some(lines_of(scheduler)) }
            }
        })
    }
}

/// Compiles a library scheduler for the kernel.
fn build(attune: &Path, scheduler: &str, object: &Path) -> Result<()> {
    let mut command = Command::new(attune);
    command.args(["build", scheduler, "--engine", "kernel", "-o"]).arg(object);
    let output = command.output().with_context(|| format!("cannot run {}", attune.display()))?;
    if !output.status.success() || fs::metadata(object).is_err() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("cannot be compiled for the kernel: {}", words.lines().next().unwrap_or("no reason was given"));
    }
    Ok(())
}

/// Of its text and of the library schedulers that it extends.
fn lines_of(scheduler: &str) -> usize {
    let Some(entry) = attune_schedulers::find(scheduler) else { return 0 };
    let mut words = entry.text.split_whitespace().skip_while(|word| *word != "extends");
    let base = words.nth(1).map(|base| base.trim_end_matches('{'));
    count_lines(entry.text) + base.filter(|base| *base != scheduler).map_or(0, lines_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_run_says_why() {
        let folder = Path::new("/nonexistent");
        let error = Contestant::fair_class().prepare(folder, folder).expect_err("no program");
        assert!(error.to_string().contains("make build"), "{error}");
    }

    #[test]
    fn the_lines_of_a_scheduler_are_its_own_and_its_bases() {
        let own = |name| count_lines(attune_schedulers::find(name).expect("in the library").text);
        assert_eq!(lines_of("lifecycle"), own("lifecycle"));
        assert!(lines_of("fifo") > own("fifo"));
        assert_eq!(lines_of("no such scheduler"), 0);
    }
}
