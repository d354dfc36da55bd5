//! `attune tune`. Needs root, BTF and the built program attune-beat (`cargo build --workspace`, as
//! make test does). The supervisor's own tests are in its crate.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{ATTUNE, err, skip};

const DEADLINE: &str = "6";

fn attune(test: &str) -> Command {
    let mut command = Command::new(ATTUNE);
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tune-{test}"));
    command.env("ATTUNE_STATE_DIR", state).arg("tune");
    command
}

/// A program that runs to a beat, if this machine lets it be tuned.
fn beat() -> Option<PathBuf> {
    let program = Path::new(ATTUNE).with_file_name("attune-beat");
    let output = attune("possible").args(["--", "/bin/true"]).output().unwrap();
    if output.status.success() && program.exists() {
        return Some(program);
    }
    skip(&format!("{} exists: {}; {}", program.display(), program.exists(), err(&output)));
    None
}

/// The 41st field of /proc/PID/stat.
fn policy(process: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(38).map(str::to_owned)
}

fn eventually(what: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !what() && begun.elapsed() < Duration::from_secs(90) {
        sleep(Duration::from_millis(20));
    }
    what()
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn a_command_is_tuned_and_its_status_passed_on() {
    let Some(beat) = beat() else { return };
    let mut tuning = attune("command")
        .arg("--json")
        .arg("--")
        .arg("/bin/sh")
        .args(["-c", &format!("{} 40 4 for=8; exit 5", beat.display())])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(tuning.stdout.take().unwrap()).lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line.unwrap()).expect("each line is JSON"))
        .collect();
    assert_eq!(tuning.wait().unwrap().code(), Some(5));
    assert!(lines.iter().any(|line| line["note"] == "listening"));
    assert!(lines.iter().any(|line| line["status"]["programs"].is_array()));
}

/// The tuner runs under a reservation of its own.
#[test]
fn a_command_begins_as_it_would_without_the_tuner() {
    if beat().is_none() {
        return;
    }
    let output = attune("begins")
        .args(["--", "cut", "-d", " ", "-f", "41", "/proc/self/stat"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
}

#[test]
fn killed_it_leaves_nothing_behind() {
    let Some(beat) = beat() else { return };
    let program = Command::new(beat).args(["40", "4"]).spawn().unwrap();
    let id = program.id();
    let tuning =
        attune("killed").args(["-p", &id.to_string()]).stderr(Stdio::null()).spawn().unwrap();
    assert!(eventually(|| policy(id).as_deref() == Some(DEADLINE)));
    end(tuning);
    assert!(eventually(|| policy(id).as_deref() == Some("0")));
    end(program);
}

/// `attune top` in the same state folder, where no scheduler runs in the kernel.
fn top(test: &str, words: &[&str]) -> Output {
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tune-{test}"));
    let mut command = Command::new(ATTUNE);
    command.env("ATTUNE_VALUES", state.join("values")).env("ATTUNE_STATE_DIR", state);
    command.arg("top").args(words).output().unwrap()
}

#[test]
fn top_shows_what_is_reserved_and_says_when_nothing_is() {
    let Some(beat) = beat() else { return };
    let nothing = top("top", &["--once"]);
    assert_eq!(nothing.status.code(), Some(2));
    let said = err(&nothing);
    assert!(
        said.contains("no scheduler runs in the kernel") && said.contains("nothing is tuned"),
        "{said}"
    );

    let program = Command::new(beat).args(["40", "4"]).spawn().unwrap();
    let id = program.id();
    let tuning = attune("top").args(["-p", &id.to_string()]).stderr(Stdio::null()).spawn().unwrap();
    let looked =
        || serde_json::from_slice::<Value>(&top("top", &["--json"]).stdout).unwrap_or_default();
    let reserved = |look: &Value| {
        let program = look["reservations"][0]["programs"][0].clone();
        let budgets = program["threads"].as_array().cloned().unwrap_or_default();
        let has_budget = budgets.iter().any(|thread| thread["budget_ms"].as_f64() > Some(0.0));
        (program["process"] == id && has_budget).then_some(program)
    };
    let found = eventually(|| reserved(&looked()).is_some());
    let once = top("top", &["--once"]);
    end(tuning);
    end(program);
    assert!(found, "{}", looked());
    let text = String::from_utf8_lossy(&once.stdout);
    for words in ["reservations: ", "CPUs given", "attune-beat", "BUDGET/ms"] {
        assert!(text.contains(words), "no `{words}` in {text} {}", err(&once));
    }
    // The killed tuner's socket is nobody's.
    assert_eq!(top("top", &["--once"]).status.code(), Some(2));
}

#[test]
fn what_cannot_be_tuned_says_why() {
    let output = attune("nobody").args(["-p", "999999999"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!err(&output).is_empty());
    let output = attune("share").args(["--bound", "7", "-p", "1"]).output().unwrap();
    assert!(err(&output).contains("a share, such as 0.8"));
    if beat().is_some() {
        let output = attune("missing").args(["--", "/no/such/program"]).output().unwrap();
        assert_eq!(output.status.code(), Some(127));
        let output = Command::new("setpriv")
            .args(["--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"])
            .arg(ATTUNE)
            .args(["tune", "--", "/bin/true"])
            .output()
            .unwrap();
        assert!(err(&output).contains("run it as root"), "{}", err(&output));
    }
}
