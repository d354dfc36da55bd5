//! A thread that a real-time thread wakes preempts as soon as that one sleeps: the kick that the
//! higher class made the kernel lose is repeated. The machine is deterministic.

use super::common::machine::{build, compile, folder, in_quiet_machine};
use super::common::set_up;

/// A thread that wakes preempts the one that runs, which goes behind it.
const EAGER: &str = "scheduler eager extends round_robin {
    after event_raised(t) {
        if (!t.suspended)
            preempt cpu;
    }
}
";

#[test]
fn a_thread_that_a_real_time_thread_wakes_does_not_wait_for_the_tick() {
    if !set_up() {
        return;
    }
    let folder = folder("lends");
    std::fs::write(folder.join("eager.sched"), EAGER).unwrap();
    build(&folder, "eager.sched", "eager.bpf.o");
    compile(&folder, "tests/kernel/lends.c");
    let script = "$attune run eager.bpf.o --all -- ./lends";
    let said = in_quiet_machine(&folder, 1, &["lends", "eager.bpf.o"], script);
    let late: u32 = said
        .lines()
        .find_map(|line| line.strip_prefix("lends: ")?.strip_suffix(" of 60 late")?.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    // Where kicks are lost, 51 are late. One that comes with the guest's own work (a timer of its
    // kernel, a page of the program) may be late by itself.
    assert!(late <= 6, "{said}");
}
