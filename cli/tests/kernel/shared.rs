//! Two schedulers share a machine: a command follows one, everything else the other.

use super::common::machine::{
    SHORT, TRAPS, build_both, compile, folder, in_machine, in_quiet_machine,
};
use super::common::set_up;

/// The program of these tests.
pub(super) const SHARE: &str = "tests/kernel/share.c";

/// What `share` said of the part that a command had, in per cent.
pub(super) fn part(said: &str, label: &str) -> f64 {
    let label = format!("{label}: ");
    let line =
        said.lines().find_map(|line| line.strip_prefix(&label)).unwrap_or_else(|| panic!("{said}"));
    line.trim_end_matches(" %").parse().unwrap()
}

/// The numbers behind the command's handlers: `newthread 3`.
fn calls(said: &str, who: &str, handler: &str) -> u64 {
    let line = said.lines().find(|line| line.starts_with(&format!("attune: {who}: ")));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    let count = line
        .split(", ")
        .find_map(|part| part.rsplit_once(&format!("{handler} ")).map(|(_, count)| count));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The command's weight, and that of all others; the command's share in per cent. As many hogs as
/// CPUs or more on each side.
fn shares_follow_weights(cpus: u32, weights: &[(&str, f64)]) {
    if !set_up() {
        return;
    }
    let folder = folder(&format!("shares_{cpus}"));
    compile(&folder, SHARE);
    build_both(&folder, SHORT, SHORT, "shared.bpf.o");
    let words: String = weights.iter().map(|(weights, _)| format!(" {weights}")).collect();
    let said = in_quiet_machine(
        &folder,
        cpus,
        &["share", "shared.bpf.o"],
        &format!(
            "for weights in {words}; do
                ./share while /tmp/go 3 &
                $attune run shared.bpf.o --weight $weights -- sh -c \
                    \"touch /tmp/go; sleep 0.3; exec ./share $weights 2 2\"
                rm /tmp/go; wait
            done; cat /sys/kernel/sched_ext/state"
        ),
    );
    for (weights, expected) in weights {
        let part = part(&said, weights);
        assert!((part - expected).abs() < 1.0, "{weights}: {part} % on {cpus} CPUs\n{said}");
    }
    // The shell, touch, sleep, two hogs: the shell itself became `share`. No other thread is
    // the command's.
    assert_eq!(calls(&said, "round_robin (command)", "newthread"), 5, "{said}");
    assert!(
        said.contains("round_robin schedules sh (weight 3), round_robin all others (weight 1)"),
        "{said}"
    );
    assert!(!said.contains("has ended") && said.contains("disabled"), "{said}");
}

#[test]
fn shares_follow_weights_on_one_cpu() {
    shares_follow_weights(1, &[("1:1", 50.0), ("3:1", 75.0), ("1:3", 25.0)]);
}

#[test]
fn shares_follow_weights_on_two_cpus() {
    shares_follow_weights(2, &[("3:1", 75.0)]);
}

#[test]
fn who_is_the_commands_and_what_a_failure_is_called() {
    if !set_up() {
        return;
    }
    let folder = folder("domains");
    compile(&folder, SHARE);
    std::fs::write(folder.join("traps.sched"), TRAPS).unwrap();
    build_both(&folder, SHORT, SHORT, "same.bpf.o");
    build_both(&folder, "traps.sched", SHORT, "traps+other.bpf.o");
    build_both(&folder, SHORT, "traps.sched", "other+traps.bpf.o");
    let said = in_machine(
        &folder,
        2,
        "$run same.bpf.o --set others.quantum=5ms -- sh -c \
            './share orphan 1; sleep 0.2; ./mixed 1'; echo same: $?; \
            $run same.bpf.o --all -- true; echo refused: $?; $run same.bpf.o --set \
            nice=3 -- true; echo unknown: $?; \
            $run traps+other.bpf.o -- ./mixed 3; echo command: $?; \
            $run other+traps.bpf.o -- ./mixed 3; echo others: $?; $run same.bpf.o -- \
            ./mixed 4 & loader=$!; for i in $(seq 900); do grep -q enabled \
            /sys/kernel/sched_ext/state && break; sleep 0.1; done; sleep 0.3; kill -9 $loader; for \
            i in $(seq 900); do grep -q disabled /sys/kernel/sched_ext/state && break; sleep 0.1; \
            done; cat /sys/kernel/sched_ext/state; ./mixed 1",
    );
    assert!(said.contains("same: 0\n"), "{said}");
    // The shell, the program, the orphan that init has adopted, sleep: and then the load's own.
    assert!(calls(&said, "round_robin (command)", "newthread") >= 5, "{said}");
    assert!(
        said.contains("holds round_robin and round_robin, to share the machine")
            && said.contains("refused: 2\n"),
        "{said}"
    );
    assert!(
        said.contains("there is no tunable `nice` in round_robin and round_robin")
            && said.contains("unknown: 2\n"),
        "{said}"
    );
    let index =
        "traps.sched:5:9: the index in slots[turns / 50] is out of range (it is 4, outside 0..3)";
    assert_eq!(said.matches(index).count(), 2, "{said}");
    assert!(said.contains("command: 1\n") && said.contains("others: 1\n"), "{said}");
    let killed = said.rfind("others: 1\n").unwrap();
    assert!(
        said[killed..].contains("disabled\n") && said[killed..].contains("mixed: all came back"),
        "{said}"
    );
}
