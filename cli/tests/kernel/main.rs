//! The kernel engine on a real kernel, in the virtual machine: what a policy is told and tells, and
//! bad days.
//!
//! Without a set-up machine (`attune vm setup`) the tests say so and pass; where CI=true they fail.

#[path = "../common/mod.rs"]
mod common;
mod implicit;
mod instances;
mod knowledge;
mod lends;
mod reload;
mod rescue;
mod several;
mod shared;
mod starvation;
mod typed;

use std::path::Path;
use std::process::Command;

use common::machine::{ATTUNE, SHORT, TRAPS, build, folder, in_machine, in_quiet_machine};
use common::set_up;

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
    build(&folder, SHORT, "short.bpf.o");
    let said = in_machine(
        &folder,
        2,
        "$run short.bpf.o --all & loader=$!; for i in $(seq 900); do grep -q enabled \
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
