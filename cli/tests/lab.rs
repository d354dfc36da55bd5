//! `attune lab`: what there is, what there is not, and the one experiment that is a test.

mod common;

use std::process::{Command, Output};

fn lab(words: &[&str]) -> Output {
    lab_command(words).output().expect("it runs")
}

fn lab_command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_attune"));
    // No peer is built there.
    command.arg("lab").args(words).env("ATTUNE_PEERS_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-peers"));
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

#[test]
fn experiments_and_peers_are_listed() {
    let list = lab(&["list"]);
    for name in ["webserver", "switch-cost", "fairness", "wakeup-latency"] {
        assert!(text(&list.stdout).lines().any(|line| line.starts_with(name)), "{name}");
    }
    let peers = lab(&["peers"]);
    for name in ["scx_bpfland", "scx_cosmos", "scx_flash", "scx_rusty", "scx_lavd"] {
        let line = text(&peers.stdout).lines().find(|line| line.starts_with(name)).expect("a line");
        assert!(line.contains("not built"), "{line}");
    }
}

#[test]
fn random_schedulers_that_the_check_accepts_load() {
    if !common::set_up() {
        return;
    }
    let output = concat!(env!("CARGO_TARGET_TMPDIR"), "/lab");
    let run = lab(&["run", "random-schedulers", "--quick", "--output", output]);
    let said = text(&run.stdout);
    assert!(run.status.success(), "{said}{}", text(&run.stderr));
    assert!(said.contains("12 of 12 load"), "{said}");
}

#[test]
fn several_run_one_after_the_other() {
    let output = concat!(env!("CARGO_TARGET_TMPDIR"), "/lab-several");
    let run = lab(&["run", "band*", "period-cost", "--quick", "--json", "--output", output]);
    let reports: Vec<serde_json::Value> =
        text(&run.stdout).lines().map(|line| serde_json::from_str(line).expect("a report a line")).collect();
    let names: Vec<&str> = reports.iter().filter_map(|report| report["experiment"].as_str()).collect();
    assert_eq!(names, ["period-cost", "bandwidth"], "{}", text(&run.stderr));
    // What `period-cost` claims is of a time, which this build does not keep.
    assert!(text(&run.stderr).contains("bandwidth: every claim holds\n"), "{}", text(&run.stderr));
}

#[test]
fn what_an_experiment_lacks_is_said_before_any_is_run() {
    let output = concat!(env!("CARGO_TARGET_TMPDIR"), "/lab-lacking");
    let words = ["run", "bandwidth", "coop-legacy", "--quick", "--output", output];
    let without_players =
        |more: &[&str]| lab_command(&[&words[..], more].concat()).env("PATH", "/nonexistent").output();
    let refused = without_players(&[]).expect("it runs");
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(refused.stdout.is_empty(), "bandwidth was run");
    assert!(said.contains("coop-legacy: ") && said.contains("--keep-going"), "{said}");
    for program in ["Xvfb", "mplayer", "vlc"] {
        assert!(said.contains(program), "{program} is not named: {said}");
    }
    let others = without_players(&["--keep-going"]).expect("it runs");
    let said = text(&others.stderr);
    assert_eq!(others.status.code(), Some(1), "{said}");
    assert!(text(&others.stdout).contains("bandwidth"), "{said}");
    assert!(said.ends_with("coop-legacy: could not be run\nbandwidth: every claim holds\n"), "{said}");
}

#[test]
fn unknown_names_are_told() {
    let peer = lab(&["peers", "build", "scx_nothing"]);
    assert_eq!(peer.status.code(), Some(2));
    assert!(text(&peer.stderr).contains("no peer scx_nothing; `attune lab peers` lists them"));
    let experiment = lab(&["run", "nothing"]);
    assert_eq!(experiment.status.code(), Some(2));
    assert!(text(&experiment.stderr).contains("`attune lab list` lists them"));
    let pattern = lab(&["run", "bandwidth", "nothing-*"]);
    assert_eq!(pattern.status.code(), Some(2));
    assert!(text(&pattern.stderr).contains("no experiment nothing-*"), "before any is run");
    assert!(pattern.stdout.is_empty());
}
