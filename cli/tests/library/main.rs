//! Every library scheduler on a real kernel, in the virtual machine, under a mixed load and stress.
//!
//! Without a set-up machine (`attune vm setup`) the tests say so and pass; where CI=true they fail.

#[path = "../common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use common::machine::{ATTUNE, folder, in_machine};
use common::set_up;

/// The library's schedulers as objects, each in its folder, made once for all tests. Bases alone
/// are none.
fn library() -> &'static (PathBuf, Vec<&'static str>) {
    static LIBRARY: OnceLock<(PathBuf, Vec<&'static str>)> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = folder("library");
        let whole = |name: &&'static str| {
            let object = format!("{name}.bpf.o");
            let mut build = Command::new(ATTUNE);
            let build = build
                .current_dir(&folder)
                .args(["build", name, "--engine", "kernel", "-o", &object]);
            let output = build.output().unwrap();
            let refusal = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() || refusal.contains("the scheduler is partial"),
                "{name}: {refusal}"
            );
            output.status.success()
        };
        let names: Vec<&str> = attune_schedulers::LIBRARY.iter().map(|entry| entry.name).collect();
        let (some, others) = names.split_at(names.len() / 2);
        let built = |names: &[&'static str]| -> Vec<&'static str> {
            names.iter().copied().filter(whole).collect()
        };
        let names = std::thread::scope(|scope| {
            let others = scope.spawn(|| built(others));
            [built(some), others.join().unwrap()].concat()
        });
        (folder, names)
    })
}

/// The mixed load, and stress-ng's hogs, forks, switches, yields, timers and changes of affinity.
const UNDER_STRESS: &str = "./mixed 1 & mixed=$!
stress-ng --quiet --cpu 1 --fork 1 --switch 1 --yield 1 --timer 1 --affinity 2 --timeout 1 & \
    stress=$!
wait $mixed && wait $stress
";

/// All of them in one machine, one after the other.
fn run_well(cpus: u32) {
    if !set_up() {
        return;
    }
    let (folder, library) = library();
    std::fs::write(folder.join("under-stress"), UNDER_STRESS).unwrap();
    let script: String = library
        .iter()
        .map(|scheduler| {
            format!(
                "if $run {scheduler}.bpf.o --all -- sh ./under-stress; then echo \
                    {scheduler}: well; fi; grep -q disabled /sys/kernel/sched_ext/state || echo \
                    {scheduler}: still there; "
            )
        })
        .collect();
    let said = in_machine(folder, cpus, &script);
    for scheduler in library {
        assert!(
            said.contains(&format!("{scheduler}: well")),
            "{scheduler} on {cpus} CPUs:\n{said}"
        );
    }
    assert!(!said.contains("has ended") && !said.contains("still there"), "{said}");
    assert_eq!(said.matches("mixed: all came back").count(), library.len(), "{said}");
}

#[test]
fn the_library_runs_under_stress_on_one_cpu() {
    run_well(1);
}

#[test]
fn the_library_runs_under_stress_on_four_cpus() {
    run_well(4);
}
