//! The kernel's own tracer (tracefs) as a witness: what programs did and when, by the kernel's
//! clock and not by their word. Needs root.
//!
//! | file | what it does |
//! |---|---|
//! | here | an instance of the tracer of our own, from [`Tracer::start`] to [`Tracer::stop`] |
//! | [`function`] | the place of a function in its file, which the kernel wants to hear |
//! | [`line`] | a line of the tracer's text, taken apart |
//! | [`lateness`] | from release to running: timers of cooperating event loops, sleeping threads |
//!
//! Times are CLOCK_MONOTONIC's, printed in microseconds. A trace from which the kernel has lost
//! events is an error.

pub mod function;
pub mod lateness;
pub mod line;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use function::Function;

const TRACEFS: &str = "/sys/kernel/tracing";
/// What our uprobes are called: a group of events.
const GROUP: &str = "attune_load";
/// For each CPU, kB: half a minute of all switches of a CPU that is switched five thousand times a
/// second.
const BUFFER: &str = "49152";

/// What to look at.
pub enum Watch {
    /// An event of the kernel's, as `group/name`.
    Event(String),
    /// Each call of a function by any process, under this name; `fetch` names the arguments as the
    /// kernel's uprobe_events want them, such as `release=%di:u64`.
    Call { function: Function, name: &'static str, fetch: &'static str },
}

/// A tracer that runs. Ends without a trace when it is dropped.
pub struct Tracer {
    instance: PathBuf,
    uprobes: Vec<String>,
}

impl Tracer {
    pub fn start(watch: &[Watch]) -> Result<Tracer> {
        let id = std::process::id();
        let instance = Path::new(TRACEFS).join(format!("instances/attune-load-{id}"));
        fs::create_dir(&instance).with_context(|| {
            format!(
                "cannot make {}: tracing needs root, and tracefs to be mounted",
                instance.display()
            )
        })?;
        let mut tracer = Tracer { instance, uprobes: vec![] };
        tracer.set("trace_clock", "mono")?;
        tracer.set("buffer_size_kb", BUFFER)?;
        for watched in watch {
            let event = match watched {
                Watch::Event(event) => event.clone(),
                Watch::Call { function, name, fetch } => {
                    let event = format!("{GROUP}/{name}_{id}");
                    change_uprobes(&format!("p:{event} {function} {fetch}"))?;
                    tracer.uprobes.push(event.clone());
                    event
                }
            };
            tracer.set(&format!("events/{event}/enable"), "1")?;
        }
        Ok(tracer)
    }

    /// The trace so far, a line for each event. Err: it cannot be read, or is not whole.
    pub fn stop(self) -> Result<String> {
        self.set("tracing_on", "0")?;
        let read = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
        };
        for cpu in fs::read_dir(self.instance.join("per_cpu"))? {
            let statistics = read(&cpu?.path().join("stats"))?;
            let lost: u64 = ["overrun: ", "dropped events: "]
                .iter()
                .filter_map(|what| {
                    statistics
                        .lines()
                        .find_map(|line| line.strip_prefix(what))?
                        .trim()
                        .parse::<u64>()
                        .ok()
                })
                .sum();
            ensure!(lost == 0, "the tracer has lost {lost} events: measure for a shorter time");
        }
        read(&self.instance.join("trace"))
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.instance.join(file);
        fs::write(&path, value)
            .with_context(|| format!("cannot write {value} to {}", path.display()))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.set("tracing_on", "0");
        let _ = self.set("events/enable", "0");
        let _ = fs::remove_dir(&self.instance);
        for event in &self.uprobes {
            let _ = change_uprobes(&format!("-:{event}"));
        }
    }
}

fn change_uprobes(change: &str) -> Result<()> {
    let path = Path::new(TRACEFS).join("uprobe_events");
    let open =
        |path: &Path| -> std::io::Result<File> { OpenOptions::new().append(true).open(path) };
    open(&path)
        .and_then(|mut file| file.write_all(change.as_bytes()))
        .with_context(|| format!("cannot write `{change}` to {}", path.display()))
}
