//! `attune lab`: the lists, the messages, and experiments that are tests.

use std::process::{Command, Output};

use crate::common;
use crate::support::{ATTUNE, err, lines, out};

fn lab(words: &[&str]) -> Output {
    lab_command(words).output().expect("it runs")
}

fn lab_command(words: &[&str]) -> Command {
    let mut command = Command::new(ATTUNE);
    // No peer is built there.
    command
        .arg("lab")
        .args(words)
        .env("ATTUNE_PEERS_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-peers"));
    command
}

#[test]
fn experiments_and_peers_are_listed() {
    let list = lab(&["list"]);
    for name in ["webserver", "proxy", "switch-cost", "fairness", "wakeup-latency"] {
        assert!(out(&list).lines().any(|line| line.starts_with(name)), "{name}");
    }
    let peers = lab(&["peers"]);
    for name in ["scx_bpfland", "scx_cosmos", "scx_flash", "scx_rusty", "scx_lavd"] {
        let line = out(&peers).lines().find(|line| line.starts_with(name)).expect("a line");
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
    let said = out(&run);
    assert!(run.status.success(), "{said}{}", err(&run));
    assert!(said.contains("12 of 12 load"), "{said}");
}

#[test]
fn several_run_one_after_the_other() {
    let output = concat!(env!("CARGO_TARGET_TMPDIR"), "/lab-several");
    let run = lab(&["run", "band*", "period-cost", "--quick", "--json", "--output", output]);
    let reports = lines(&run);
    let names: Vec<&str> =
        reports.iter().filter_map(|report| report["experiment"].as_str()).collect();
    assert_eq!(names, ["period-cost", "bandwidth"], "{}", err(&run));
    // This build may miss the times that `period-cost` claims.
    assert!(err(&run).contains("bandwidth: no claim is missed\n"), "{}", err(&run));
}

#[test]
fn what_an_experiment_lacks_is_said_before_any_is_run() {
    let output = concat!(env!("CARGO_TARGET_TMPDIR"), "/lab-lacking");
    let words = ["run", "bandwidth", "coop-legacy", "--quick", "--output", output];
    let without_players = |more: &[&str]| {
        lab_command(&[&words[..], more].concat()).env("PATH", "/nonexistent").output()
    };
    let refused = without_players(&[]).expect("it runs");
    let said = err(&refused);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(refused.stdout.is_empty(), "bandwidth was run");
    assert!(said.contains("coop-legacy: ") && said.contains("--keep-going"), "{said}");
    for program in ["Xvfb", "mplayer", "vlc"] {
        assert!(said.contains(program), "{program} is not named: {said}");
    }
    let others = without_players(&["--keep-going"]).expect("it runs");
    let said = err(&others);
    assert_eq!(others.status.code(), Some(1), "{said}");
    assert!(out(&others).contains("bandwidth"), "{said}");
    assert!(
        said.ends_with("coop-legacy: could not run\nbandwidth: no claim is missed\n"),
        "{said}"
    );
}

#[test]
fn unknown_names_are_told() {
    let peer = lab(&["peers", "build", "scx_nothing"]);
    assert_eq!(peer.status.code(), Some(2));
    assert!(err(&peer).contains("no peer scx_nothing; `attune lab peers` lists them"));
    let experiment = lab(&["run", "nothing"]);
    assert_eq!(experiment.status.code(), Some(2));
    assert!(err(&experiment).contains("`attune lab list` lists them"));
    let pattern = lab(&["run", "bandwidth", "nothing-*"]);
    assert_eq!(pattern.status.code(), Some(2));
    assert!(err(&pattern).contains("no experiment nothing-*"), "before any is run");
    assert!(pattern.stdout.is_empty());
}

/// The demo is deterministic, so its table is the same twice, and `make demo` ends well. The brief
/// form differs in the players' time alone.
#[test]
fn the_demo_prints_the_same_table_twice() {
    if !common::set_up() {
        return;
    }
    let output = concat!(env!("CARGO_TARGET_TMPDIR"), "/lab-demo");
    let run = || {
        let run = lab(&["run", "demo", "--quick", "--output", output]);
        assert!(run.status.success(), "{}{}", out(&run), err(&run));
        out(&run).to_owned()
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    assert!(first.contains("attune coop --implicit") && first.contains("Try next:"), "{first}");
    for policy in ["fifo", "shortest_reply"] {
        assert!(first.contains(&format!("holds     {policy} chooses the same order")), "{first}");
    }
    let page = std::fs::read_to_string(format!("{output}/demo.html")).expect("a page");
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("src=") && !page.contains("href="), "it needs no other file");
}
