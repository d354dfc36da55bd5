//! Every library scheduler on a real kernel, in the virtual machine, under a mixed load and stress.
//!
//! Without a set-up machine (`attune vm setup`) the tests say so and pass; where CI=true they fail.

#[path = "../common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::machine::{ATTUNE, folder, in_machine};
use common::set_up;

/// Compiles the library's schedulers in a folder, and names those that became programs. `words` are
/// further options of `attune build`. A base alone is no program, and neither is a scheduler that
/// the command refuses with a message that has `refusal` in it.
fn compiled(folder: &Path, words: &[&str], refusal: &str) -> Vec<&'static str> {
    let whole = |name: &&'static str| {
        let mut build = Command::new(ATTUNE);
        build.current_dir(folder).args(["build", name, "--engine", "kernel"]).args(words);
        let output = build.args(["-o", &format!("{name}.bpf.o")]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let refused = said.contains("the scheduler is partial") || said.contains(refusal);
        assert!(output.status.success() || refused, "{name}: {said}");
        output.status.success()
    };
    let names: Vec<&str> = attune_schedulers::LIBRARY.iter().map(|entry| entry.name).collect();
    let (some, others) = names.split_at(names.len() / 2);
    let built = |names: &[&'static str]| -> Vec<&'static str> {
        names.iter().copied().filter(whole).collect()
    };
    std::thread::scope(|scope| {
        let others = scope.spawn(|| built(others));
        [built(some), others.join().unwrap()].concat()
    })
}

/// The library with one instance, made once for all tests. Bases alone are no programs.
fn library() -> &'static (PathBuf, Vec<&'static str>) {
    static LIBRARY: OnceLock<(PathBuf, Vec<&'static str>)> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = folder("library");
        let names = compiled(&folder, &[], "the scheduler is partial");
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
fn run_well(folder: &Path, library: &[&str], words: &str, cpus: u32) {
    std::fs::write(folder.join("under-stress"), UNDER_STRESS).unwrap();
    let script: String = library
        .iter()
        .map(|scheduler| {
            format!(
                "if $run {scheduler}.bpf.o --all {words} -- sh ./under-stress; then echo \
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
    if set_up() {
        let (folder, library) = library();
        run_well(folder, library, "", 1);
    }
}

#[test]
fn the_library_runs_under_stress_on_four_cpus() {
    if set_up() {
        let (folder, library) = library();
        run_well(folder, library, "", 4);
    }
}

/// The kernel looks at a larger program then: one with moves and balance.
#[test]
fn what_can_be_divided_runs_with_an_instance_for_each_of_four_cpus() {
    if set_up() {
        let folder = folder("divided");
        let words = ["--cpus", "4", "--instances", "4"];
        let divided = compiled(&folder, &words, "has no `arrives` of its own");
        assert!(divided.contains(&"coop") && divided.contains(&"desktop"), "{divided:?}");
        run_well(&folder, &divided, "--per cpu", 4);
    }
}
