//! The engine runs threads that a policy forgets: they get on, the others do too, and nothing ends.

use std::path::PathBuf;

use super::common::machine::{
    SHORT, between, build, build_both, compile, folder, in_machine_with, in_quiet_machine,
};
use super::common::set_up;

/// Threads of nice value 5 are put away and never taken out.
const FORGETS: &str = "scheduler forgets extends lifecycle {
    threadimports { int weight default 1024; }
    data { queue forgotten; }
    event schedule {
        foreach t in ready
            if (t.weight == 335)
                t => forgotten;
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

/// The same in each of several instances.
const FORGETS_HERE: &str = "scheduler forgets_here extends lifecycle {
    threadimports { int weight default 1024; }
    thread { int moves = 0; }
    data { queue forgotten; }
    before arrives(t) { t.moves++; }
    event schedule {
        foreach t in ready
            if (t.weight == 335)
                t => forgotten;
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

/// The same with a base that knows of no arrivals.
const FORGETS_NEW: &str = "scheduler forgets_new extends pth {
    threadimports { int weight default 1024; }
    data { queue forgotten; }
    event schedule {
        foreach t in NQ {
            t.state = READY;
            t => RQ;
        }
        foreach t in RQ
            if (t.weight == 335)
                t => forgotten;
        choices++;
        if (|RQ| > 0) {
            RQ => current;
            dispatch current for 5ms;
        }
    }
}
";

/// What is said once of the thread's place.
const PLACE: &str = "and was not dispatched; it sat in forgotten, put there by line 7\n";

fn with_programs(test: &str) -> PathBuf {
    let folder = folder(test);
    for program in ["crowd", "strays"] {
        compile(&folder, &format!("tests/kernel/{program}.c"));
    }
    for (name, text) in
        [("forgets", FORGETS), ("forgets_here", FORGETS_HERE), ("forgets_new", FORGETS_NEW)]
    {
        std::fs::write(folder.join(format!("{name}.sched")), text).unwrap();
    }
    folder
}

/// The part of a CPU that the thread had that had least.
fn least(part: &str) -> f64 {
    let (_, behind) = part.split_once("crowd: the least is ").unwrap_or_else(|| panic!("{part}"));
    behind.split(' ').next().and_then(|number| number.parse().ok()).unwrap()
}

#[test]
fn a_thread_that_a_policy_forgets_gets_on() {
    if !set_up() {
        return;
    }
    let folder = with_programs("rescue");
    for policy in ["forgets", "forgets_new"] {
        build(&folder, &format!("{policy}.sched"), &format!("{policy}.bpf.o"));
    }
    build_both(&folder, SHORT, "forgets.sched", "beside.bpf.o");
    let touched = "sh -c 'touch /tmp/go; exec ./crowd 2 2'";
    let script: String = [
        ("one", "forgets.bpf.o --all --timeout 1500", "./crowd 2 9 1:5"),
        ("strays", "forgets.bpf.o --all --timeout 1500", "./strays 3 2"),
        ("new", "forgets_new.bpf.o --all --timeout 1500", "./crowd 1 2 1:5"),
        ("strict", "forgets.bpf.o --all --strict --timeout 700", "./crowd 2 2 1:5"),
        ("beside", "beside.bpf.o --timeout 1500", touched),
    ]
    .into_iter()
    .map(|(mark, run, load)| {
        format!(
            "echo '<{mark}>'; $attune run {run} -- {load}; status=$?; [ {mark} != beside ] || \
             wait; echo exit $status; echo '<end>'; "
        )
    })
    .collect();
    // One thread of the others begins when the last run has.
    let others = "(while [ ! -e /tmp/go ]; do sleep 0.2; done; exec ./crowd 1 1:5) & ";
    let script = format!("{others}{script}");
    let packed = ["crowd", "strays", "forgets.bpf.o", "forgets_new.bpf.o", "beside.bpf.o"];
    let said = in_quiet_machine(&folder, 2, &packed, &script);

    let one = between(&said, "one");
    assert!(one.contains("crowd: 10 threads went on\n") && least(one) >= 0.01, "{said}");
    assert!(one.ends_with("exit 0\n") && !one.contains("has ended"), "{said}");
    assert!(one.contains(" times a thread that had waited too long"), "{said}");
    assert_eq!(one.matches(PLACE).count(), 1, "{said}");

    let strays = between(&said, "strays");
    assert!(
        strays.contains("strays: all 3 have ended\nstrays: the others were killed\n"),
        "{said}"
    );
    assert!(strays.ends_with("exit 0\n") && !strays.contains("has ended"), "{said}");

    let new = between(&said, "new");
    assert!(new.contains("crowd: 3 threads went on\n") && new.ends_with("exit 0\n"), "{said}");
    assert!(!new.contains("has ended"), "{said}");
    assert!(new.contains("it sat in forgotten, put there by line 11\n"), "{said}");

    let beside = between(&said, "beside");
    assert!(beside.contains("crowd: 1 threads went on\n"), "{said}");
    assert!(beside.contains("crowd: 2 threads went on\n"), "{said}");
    assert!(beside.contains("forgets.sched: thread ") && beside.contains(PLACE), "{said}");
    assert!(beside.ends_with("exit 0\n") && !beside.contains("has ended"), "{said}");

    let strict = between(&said, "strict");
    let ended = "was ready and was not dispatched; it sits in forgotten, put there by line 7";
    assert!(strict.contains("has ended forgets") && strict.contains(ended), "{said}");
    assert!(!strict.contains("waited too long"), "{said}");
}

#[test]
fn a_thread_that_one_of_several_instances_forgets_gets_on() {
    if !set_up() {
        return;
    }
    let folder = with_programs("rescue_instances");
    let script = "$attune run forgets_here.sched --all --per cpu --timeout 30000 -- ./crowd 3 9 \
        1:5 1@1:5; echo exit $?";
    let said = in_machine_with(&folder, &["--cpus", "2"], script);
    assert!(said.contains("crowd: 11 threads went on\n"), "{said}");
    assert!(said.ends_with("exit 0\n") && !said.contains("has ended"), "{said}");
    assert!(said.contains("put there by line 9\n"), "{said}");
}
