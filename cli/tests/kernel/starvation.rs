//! Nobody starves on a real kernel in the mixes of affinities, nice values and classes that once
//! ended the run of `fair` and `coop`. The machine is deterministic, so no other load disturbs it.

use std::path::PathBuf;

use super::common::machine::{between, build, build_both, compile, folder, in_quiet_machine};
use super::common::set_up;

/// The threads of each mix, as `crowd.c` is told: one CPU is needed more than the other; a light
/// thread is there before the others; and so is a thread of class SCHED_IDLE.
const MIXES: [(&str, u32); 3] = [("2@0 1@1", 3), ("1:19 14", 15), ("1:idle 4", 5)];

/// Its handler takes longer, among a hundred threads, than the slice that it asks for.
const WALKS: &str = "scheduler walks extends lifecycle {
    data { int pairs = 0; }
    event schedule {
        foreach t in ready
            foreach other in ready
                pairs++;
        if (|ready| > 0) {
            ready => current;
            dispatch current for 50us;
        }
    }
}
";

fn crowded(test: &str) -> PathBuf {
    let folder = folder(test);
    compile(&folder, "tests/kernel/crowd.c");
    folder
}

/// Asserts that all threads went on and that the kernel did not end the run.
fn went_on(said: &str, mark: &str, threads: u32, crowds: usize) {
    let part = between(said, mark);
    let line = format!("crowd: {threads} threads went on\n");
    assert_eq!(part.matches(&line).count(), crowds, "{mark}:\n{part}");
    assert!(part.ends_with("exit 0\n") && !part.contains("has ended"), "{mark}:\n{part}");
}

#[test]
fn every_thread_of_any_mix_goes_on() {
    if !set_up() {
        return;
    }
    let folder = crowded("starvation");
    for policy in ["fair", "coop"] {
        build(&folder, policy, &format!("{policy}.bpf.o"));
    }
    build_both(&folder, "edf", "fair", "edf+fair.bpf.o");
    let mut script = String::new();
    // A crowd goes on for twice as long as the kernel lets a thread wait.
    let watched = "--timeout 1000";
    let crowds = MIXES.map(|(mix, _)| format!("./crowd 2 {mix}")).join(" && ");
    for policy in ["fair", "coop"] {
        script += &format!(
            "echo '<{policy}>'; $attune run {policy}.bpf.o --all {watched} -- sh -c '{crowds}'; \
                echo exit $?; echo '<end>'; "
        );
    }
    // The kernel's pinned threads are among the others, beside pinned ones that compute.
    script += &format!(
        "echo '<edf>'; ./crowd 2 2@0 1@1 & $attune run edf+fair.bpf.o {watched} -- ./crowd 2 3; \
            status=$?; wait; echo exit $status; echo '<end>'"
    );
    let packed = ["crowd", "fair.bpf.o", "coop.bpf.o", "edf+fair.bpf.o"];
    let said = in_quiet_machine(&folder, 2, &packed, &script);
    for policy in ["fair", "coop"] {
        for (_, threads) in MIXES {
            went_on(&said, policy, threads, 1);
        }
    }
    went_on(&said, "edf", 3, 2);
}

#[test]
fn a_slice_begins_when_the_policy_has_chosen() {
    if !set_up() {
        return;
    }
    let folder = crowded("walks");
    std::fs::write(folder.join("walks.sched"), WALKS).unwrap();
    build(&folder, "walks.sched", "walks.bpf.o");
    let script = "echo '<walks>'; $attune run walks.bpf.o --all --strict --timeout 2000 -- ./crowd \
                  1 100; echo exit $?; echo '<end>'";
    let said = in_quiet_machine(&folder, 1, &["crowd", "walks.bpf.o"], script);
    went_on(&said, "walks", 100, 1);
}
