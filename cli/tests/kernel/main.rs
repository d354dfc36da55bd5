//! The kernel engine on a real kernel, in the virtual machine: every library scheduler under a
//! mixed load, and bad days.
//!
//! Without a set-up machine (`attune vm setup`) the tests say so and pass; where CI=true they fail.

#[path = "../common/mod.rs"]
mod common;
mod control;
mod hotplug;
mod implicit;
mod instances;
mod knowledge;
mod rescue;
mod service;
mod shared;
mod starvation;
mod trust;
mod typed;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

use common::set_up;
use shared::in_quiet_machine;

const ATTUNE: &str = env!("CARGO_BIN_EXE_attune");

/// A folder for a test alone, with the load in it.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kernel_{test}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    let load = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/mixed.c");
    run(Command::new("cc")
        .args(["-O1", "-Wall", "-pthread", "-o"])
        .arg(path.join("mixed"))
        .arg(load));
    path
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn build(folder: &Path, scheduler: &str, object: &str) {
    run(Command::new(ATTUNE)
        .current_dir(folder)
        .args(["build", scheduler, "--engine", "kernel", "-o", object]));
}

/// One machine at a time: each has up to four CPUs.
static MACHINE: Mutex<()> = Mutex::new(());

/// What a script says in the machine, standard error included.
fn in_machine(folder: &Path, cpus: u32, script: &str) -> String {
    in_machine_with(folder, &["--cpus", &cpus.to_string()], script)
}

/// The same, with these words of `attune vm`. `$run` is `attune run` with the longest watchdog, for
/// a busy host lets the machine stand still for seconds, and the machine's clock goes on.
fn in_machine_with(folder: &Path, machine_words: &[&str], script: &str) -> String {
    let _alone = MACHINE.lock().unwrap_or_else(|failed| failed.into_inner());
    let script =
        format!("exec 2>&1; attune={ATTUNE}; run=\"$attune run --timeout 30000\"; {script}");
    let mut machine = Command::new(ATTUNE);
    machine.current_dir(folder);
    machine.args(["vm", "--timeout", "1800", "--memory", "1024"]);
    machine.args(machine_words).args(["--", "sh", "-c", &script]);
    let output = common::output(&mut machine);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

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

/// An index that grows until it is outside.
const TRAPS: &str = "scheduler traps extends lifecycle {
    data { int turns = 0; int slots[4]; }
    event schedule {
        turns++;
        slots[turns / 50] = turns;
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

/// Threads that were woken often are put away and never taken out.
const STOPS: &str = "scheduler stops extends lifecycle {
    thread { int wakes = 0; }
    data { queue forgotten; }
    before event_raised(t) { t.wakes++; }
    event schedule {
        foreach t in ready
            if (t.wakes > 10)
                t => forgotten;
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

/// The same, but they stay where the base has put them.
const PASSES_OVER: &str = "scheduler passes_over extends lifecycle {
    thread { int wakes = 0; }
    before event_raised(t) { t.wakes++; }
    event schedule {
        foreach t in ready
            if (t.wakes <= 10 && |current| == 0)
                t => current;
        if (|current| > 0)
            dispatch current for 5ms;
    }
}
";

#[test]
fn a_scheduler_that_fails_is_ended_and_told_by_its_own_line() {
    if !set_up() {
        return;
    }
    let folder = folder("fails");
    for (name, text) in [("traps", TRAPS), ("stops", STOPS), ("passes_over", PASSES_OVER)] {
        std::fs::write(folder.join(format!("{name}.sched")), text).unwrap();
        build(&folder, &format!("{name}.sched"), &format!("{name}.bpf.o"));
    }
    let packed = ["mixed", "traps.bpf.o", "stops.bpf.o", "passes_over.bpf.o"];
    let said = in_quiet_machine(
        &folder,
        2,
        &packed,
        "$attune run traps.bpf.o --all -- ./mixed 1; echo traps: $?; $attune run stops.bpf.o --all \
            --strict --timeout 1000 -- ./mixed 2; echo stops: $?; $attune run passes_over.bpf.o \
            --all --strict --timeout 1000 -- ./mixed 2; echo passes over: $?; cat \
            /sys/kernel/sched_ext/state; ./mixed 1",
    );
    assert!(
        said.contains(
            "traps.sched:5:9: the index in slots[turns / 50] is out of range (it is 4, outside \
                0..3)"
        ),
        "{said}"
    );
    assert!(
        said.contains(
            "was ready and was not dispatched; it sits in forgotten, put there by line 8"
        ),
        "{said}"
    );
    let base = "passes_over.sched: thread ";
    let told = said.lines().find(|line| line.contains(base)).unwrap_or_default();
    assert!(told.contains("it sits in ready, put there by library/lifecycle.sched:"), "{said}");
    for ended in ["traps: 1\n", "stops: 1\n", "passes over: 1\n", "disabled\n"] {
        assert!(said.contains(ended), "{ended}: {said}");
    }
    // The commands and the machine live on under the fair class.
    assert_eq!(said.matches("mixed: all came back").count(), 4, "{said}");
}

#[test]
fn a_killed_loader_leaves_the_machine_to_the_fair_class() {
    if !set_up() {
        return;
    }
    let folder = folder("killed");
    build(&folder, "fair", "fair.bpf.o");
    let said = in_machine(
        &folder,
        2,
        "$run fair.bpf.o --all & loader=$!; for i in $(seq 900); do grep -q enabled \
            /sys/kernel/sched_ext/state && break; sleep 0.1; done; cat \
            /sys/kernel/sched_ext/state; ./mixed 1 & load=$!; sleep 0.3; kill -9 $loader; wait \
            $load; for i in $(seq 900); do grep -q disabled /sys/kernel/sched_ext/state && break; \
            sleep 0.1; done; cat /sys/kernel/sched_ext/state",
    );
    let enabled = said.find("enabled").expect("it was attached");
    assert!(said[enabled..].contains("mixed: all came back"), "{said}");
    assert!(said.trim_end().ends_with("disabled"), "{said}");
}

#[test]
fn where_there_is_no_sched_ext_the_virtual_machine_is_named() {
    if Path::new("/sys/kernel/sched_ext").exists() {
        return;
    }
    let output =
        Command::new(ATTUNE).args(["run", "fifo", "--all", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("attune vm -- attune run"),
        "{output:?}"
    );
}
