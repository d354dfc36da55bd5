//! Runs the pairs inside a deterministic machine with two CPUs, where noise does not exist: `attune
//! lab pairs` runs there and prints them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use attune_vm::{Cache, Command, Kind, Options as Machine};

use super::pairs::Pairs;
use crate::experiment::Options;

/// Longest real time of the machine.
const PATIENCE: Duration = Duration::from_secs(1800);

/// None: no machine is set up.
pub fn run(options: &Options, schedulers: &[PathBuf; 2]) -> Result<Option<(Pairs, String)>> {
    let Ok(cache) = Cache::open(&Cache::default_folder()) else { return Ok(None) };
    let program = |name: &str| options.programs.join(name);
    let attune = program("attune").display().to_string();
    let [fifo, shortest] = schedulers.each_ref().map(|path| path.display().to_string());
    let mut words = vec![attune, "lab".to_owned(), "pairs".to_owned(), fifo, shortest];
    words.extend(options.quick.then(|| "--quick".to_owned()));
    let mut pack = vec![program("webserver"), program("libattune_threads.so")];
    pack.extend_from_slice(schedulers);
    let packed: String = pack.iter().map(|file| format!(" --pack {}", file.display())).collect();
    let command =
        format!("attune vm --deterministic --cpus 2 --memory 2048{packed} -- {}", words.join(" "));
    let kind = Kind::Deterministic { pack, seed: 1 };
    let machine = Machine {
        topology: attune_vm::Topology::flat(2),
        memory: 2048,
        kind,
        timeout: Some(PATIENCE),
    };
    let output = attune_vm::run(&cache, &machine, &Command::new(words))?;
    let said = String::from_utf8_lossy(&output.output);
    if !output.status.success() {
        bail!("in the machine: {}", String::from_utf8_lossy(&output.error_output).trim());
    }
    let line = said.lines().rev().find(|line| line.starts_with('{')).context("it printed none")?;
    Ok(Some((serde_json::from_str(line)?, command)))
}

/// The folder for a site inside the machine.
pub fn site() -> &'static Path {
    Path::new("/tmp/attune-site")
}
