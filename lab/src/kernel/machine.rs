//! Runs one or several commands in a machine of their own, and reads the figures that they print.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use attune_vm::{Cache, Command, Error, Kind, Machine, Options, Output, Streams};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::place::Place;
use crate::programs::typed;

/// Longest real time of a machine; most take half a minute, one with a desktop two minutes of a CPU
/// that may have other work.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Real time that a second of a workload adds to it: with a browser and an office it takes seven.
const SLOWEST: u64 = 20;

/// One run of a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub figures: Value,
    /// How often the policy was asked to choose in the whole run, where the scheduler says so.
    pub choices: Option<u64>,
}

/// A machine that will run commands one after the other.
pub struct Order {
    pub place: Place,
    /// The machine's seed; on two CPUs, the round.
    pub seed: u64,
    /// MiB.
    pub memory: u64,
    pub commands: Vec<Vec<String>>,
    /// Seconds for which all of them together last, as far as they say.
    pub seconds: u32,
    pub pack: Vec<PathBuf>,
}

/// Says on a line of its own that a command has ended, and how.
const ENDED: &str = "attune-lab: ended ";

impl Order {
    fn machine(&self) -> Options {
        let kind = match self.place {
            Place::Deterministic { .. } => {
                Kind::Deterministic { pack: self.pack.clone(), seed: self.seed }
            }
            Place::TwoCpus => Kind::HostFiles,
        };
        Options {
            topology: self.place.topology(),
            memory: self.memory,
            kind,
            timeout: Some(PATIENCE + Duration::from_secs(u64::from(self.seconds) * SLOWEST)),
        }
    }

    fn command(&self) -> Command {
        match (self.place, self.commands.as_slice()) {
            (Place::Deterministic { .. }, [words]) => Command::new(words),
            _ => {
                let script: String = self.commands.iter().map(|words| part(words)).collect();
                Command::new(["sh", "-c", &format!("exec 2>&1\n{script}")])
            }
        }
    }

    /// Tells machines and commands apart, but not the host's files.
    pub fn fingerprint(&self, cache: &Cache) -> Result<String> {
        Ok(attune_vm::fingerprint(cache, &self.machine(), &self.command())?)
    }

    fn output(&self, cache: &Cache, say: &dyn Fn(&str)) -> Result<Output, Error> {
        let mut output = vec![];
        let mut heard = Heard { bytes: vec![], told: 0, say };
        let streams = Streams {
            input: Some(File::open("/dev/null")?),
            output: &mut output,
            error_output: &mut heard,
        };
        let status = Machine::boot(cache, &self.machine(), &self.command())?.relay(streams)?;
        Ok(Output { status, output, error_output: heard.bytes })
    }

    /// Runs them: what came of each, in their order. Passes on what the workload of a deterministic
    /// machine says of its progress.
    pub fn run(&self, cache: &Cache, say: &dyn Fn(&str)) -> Vec<Result<Run, String>> {
        let run = || self.output(cache, say);
        let output = match run().or_else(|error| again(error, run)) {
            Ok(output) => output,
            Err(error) => return self.commands.iter().map(|_| Err(format!("{error:#}"))).collect(),
        };
        let (text, errors) = (
            String::from_utf8_lossy(&output.output),
            String::from_utf8_lossy(&output.error_output),
        );
        if self.place.is_deterministic() {
            let status = output.status.success().then_some(()).ok_or(output.status.to_string());
            return vec![read(&text, &errors, status).map_err(|error| format!("{error:#}"))];
        }
        let mut said = parts(&text).into_iter();
        let of = |_| match said.next() {
            None => Err(format!("the machine ended before: {}", text.trim())),
            Some((words, status)) => {
                let status =
                    if status == "0" { Ok(()) } else { Err(format!("exit status {status}")) };
                read(words, words, status).map_err(|error| format!("{error:#}"))
            }
        };
        self.commands.iter().map(of).collect()
    }
}

/// Keeps what is written, and passes on each line that `attune-load` has written.
struct Heard<'a> {
    bytes: Vec<u8>,
    /// Lines up to here are passed on.
    told: usize,
    say: &'a dyn Fn(&str),
}

impl Write for Heard<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend(bytes);
        while let Some(length) = self.bytes[self.told..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.bytes[self.told..][..length]);
            if let Some(words) = line.strip_prefix("attune-load: ") {
                (self.say)(words);
            }
            self.told += length + 1;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A second try where the emulator's own fault ended the first.
fn again(error: Error, run: impl Fn() -> Result<Output, Error>) -> Result<Output, Error> {
    if error.is_emulators_fault() { run() } else { Err(error) }
}

/// One command of a script.
fn part(words: &[String]) -> String {
    format!("{}\necho \"{ENDED}$?\"\n", typed(words))
}

/// What each command of a script said, and its exit status.
fn parts(text: &str) -> Vec<(&str, &str)> {
    let mut parts = vec![];
    let mut rest = text;
    while let Some((words, after)) = rest.split_once(ENDED) {
        let (status, next) = after.split_once('\n').unwrap_or((after, ""));
        parts.push((words, status.trim()));
        rest = next;
    }
    parts
}

/// The figures from the last line of JSON and from what `attune run` said, and the choices.
fn read(text: &str, errors: &str, status: Result<(), String>) -> Result<Run> {
    if let Err(status) = status {
        bail!("{status}: {}", errors.trim());
    }
    let line =
        text.lines().rev().find(|line| line.starts_with('{')).context("it printed no figures")?;
    let result: Value = serde_json::from_str(line).context("its figures cannot be read")?;
    let mut figures = result["figures"].clone();
    if let Some((idle, neglects)) = idle(errors) {
        figures["idle"] = json!({
            "times": idle,
            "beside_ready": neglects,
            "beside_ready_percent": 100.0 * neglects as f64 / idle as f64,
        });
    }
    let undecided = undecided(errors);
    if let Some(longest) = undecided.iter().copied().max_by(f64::total_cmp) {
        figures["undecided_ms"] = json!({ "times": undecided.len(), "longest": longest });
    }
    if let Some(rescues) = rescues(errors) {
        figures["rescues"] = json!(rescues);
    }
    Ok(Run { figures, choices: choices(errors) })
}

/// From what `attune run` says when a CPU goes or comes: `.. decided nothing for 12.3 ms ..`.
fn undecided(words: &str) -> Vec<f64> {
    let parts = words.split("decided nothing for ").skip(1);
    parts.filter_map(|part| part.split_once(" ms")?.0.parse().ok()).collect()
}

/// From `attune run`'s last words: `.. CPUs idle 12 times, 3 of them beside a ready thread ..`.
fn idle(words: &str) -> Option<(u64, u64)> {
    let (times, rest) = words.split_once("CPUs idle ")?.1.split_once(" times, ")?;
    Some((times.parse().ok()?, rest.split_once(' ')?.0.parse().ok()?))
}

/// From `attune run`'s last words: `.. 3 times a thread that had waited too long ..`, or not.
fn rescues(words: &str) -> Option<u64> {
    let line = words.lines().find(|line| line.contains("handler calls: "))?;
    let Some((before, _)) = line.split_once(" times a thread that had waited too long") else {
        return Some(0);
    };
    before.rsplit(' ').next()?.parse().ok()
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
        let words = "attune: fifo schedules this machine\nattune: 7 dispatches; handler calls: \
            newthread 3, schedule 12\n";
        assert_eq!(choices(words), Some(12));
        assert_eq!(choices("handler calls: newthread 3"), None);
        let words = "attune: 7 dispatches, 0 kept, CPUs idle 12 times, 3 of them beside a ready \
            thread; handler calls: schedule 7";
        assert_eq!(idle(words), Some((12, 3)));
        assert_eq!(idle("attune: 7 dispatches; handler calls: schedule 7"), None);
        assert_eq!(choices(""), None);
        assert_eq!(rescues(words), Some(0));
        let words = "attune: 7 dispatches, 3 times a thread that had waited too long; handler \
            calls: schedule 7";
        assert_eq!(rescues(words), Some(3));
        assert_eq!(rescues(""), None);
        let words = "attune: CPU 1 went: fair decided nothing for 12.3 ms and goes on\nattune: CPU \
            1 came: fair decided nothing for 9.0 ms and goes on";
        assert_eq!(undecided(words), [12.3, 9.0]);
    }

    #[test]
    fn lines_of_the_load_are_passed_on_as_they_end() {
        let told = std::cell::RefCell::new(vec![]);
        let say = |line: &str| told.borrow_mut().push(line.to_owned());
        let mut heard = Heard { bytes: vec![], told: 0, say: &say };
        for part in ["attune: fair schedules this machine\nattune-load: 10", "00 of 5000 changes"] {
            heard.write_all(part.as_bytes()).expect("memory takes all");
        }
        assert_eq!(*told.borrow(), [""; 0], "no line of the load has ended");
        heard.write_all(b"\nattune-load: the end\nattune-load: ha").expect("memory takes all");
        assert_eq!(*told.borrow(), ["1000 of 5000 changes", "the end"]);
        assert!(heard.bytes.starts_with(b"attune: fair") && heard.bytes.ends_with(b": ha"));
    }

    #[test]
    fn what_each_command_of_a_script_said_is_told_apart() {
        let script = format!(
            "exec 2>&1\n{}{}{}",
            part(&["echo".into(), r#"{"figures":{"it's":1}}"#.into()]),
            part(&["false".into()]),
            part(&["sh".into(), "-c".into(), "echo no line feed | tr -d '\\n'; exit 3".into()])
        );
        let output =
            std::process::Command::new("sh").args(["-c", &script]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let parts = parts(&text);
        assert_eq!(parts[1..], [("", "1"), ("no line feed", "3")], "{text}");
        let run = read(parts[0].0, parts[0].0, Ok(())).expect("figures");
        assert_eq!(run.figures["it's"], 1);
        let failed =
            read("", "thrown out\n", Err("exit status 1".to_owned())).expect_err("it failed");
        assert_eq!(failed.to_string(), "exit status 1: thrown out");
    }
}
