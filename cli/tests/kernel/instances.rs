//! Several instances of one scheduler: threads go to idle CPUs of other instances, and where their
//! affinity allows, and each has its share of the machine.

use crate::common::machine::{
    SHORT, between, build_divided, compile, folder, in_machine_with, in_quiet_machine,
};
use crate::common::set_up;
use crate::shared::{SHARE, part};

/// Hogs that all begin on CPU 0 and may then run anywhere; then a hog that is sent from CPU to CPU,
/// and works on each.
const LOAD: &str = r#"./mixed 1
hogs=
for hog in 1 2 3 4; do
    taskset -c 0 sh -c 'i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done' &
    hogs="$hogs $!"
done
sleep 0.3
for hog in $hogs; do taskset -cp 0-3 $hog > /dev/null; done
wait
echo hogs: all done
sh -c 'while :; do :; done' & hog=$!
sent=0
for cpu in 3 0 2 1; do
    taskset -cp $cpu $hog > /dev/null
    worked=$(cut -d' ' -f14 /proc/$hog/stat)
    while [ $(cut -d' ' -f14 /proc/$hog/stat) -le $worked ]; do sleep 0.02; done
    [ $(cut -d' ' -f39 /proc/$hog/stat) = $cpu ] && sent=$((sent+1))
done
kill $hog
echo sent and found there: $sent
"#;

/// Which CPUs are in a socket together, and which share the last-level cache.
const SHARED: &str = "cd /sys/devices/system/cpu; \
    echo sockets $(cat cpu[0-3]/topology/physical_package_id) \
    caches $(cat cpu[0-3]/cache/index3/shared_cpu_list)";

/// The number in front of some words.
fn count(said: &str, what: &str) -> u64 {
    let before = said.split(what).next().unwrap_or_default();
    let number = before.rsplit(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// How often a handler was called.
fn calls(said: &str, handler: &str) -> u64 {
    let behind = said.split(&format!(" {handler} ")).nth(1).unwrap_or_default();
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[test]
fn threads_go_over_to_other_instances() {
    if !set_up() {
        return;
    }
    let folder = folder("instances");
    std::fs::write(folder.join("load"), LOAD).unwrap();
    let mut script = String::new();
    for (per, instances) in [("cache", 2), ("cpu", 4)] {
        build_divided(&folder, SHORT, 4, instances, &format!("{per}.bpf.o"));
        script += &format!(
            "echo '<{per}>'; timeout 400 $run {per}.bpf.o --all --per {per} -- sh ./load; \
             echo '<end>'; "
        );
    }
    let all = in_machine_with(&folder, &["--topology", "2:2:1"], &format!("{script}{SHARED}"));
    assert!(all.contains("sockets 0 0 1 1 caches 0-1 0-1 2-3 2-3"), "{all}");
    for per in ["cache", "cpu"] {
        let said = between(&all, per);
        assert!(said.contains("mixed: all came back"), "--per {per}: {said}");
        assert!(said.contains("hogs: all done"), "--per {per}: {said}");
        assert!(said.contains("sent and found there: 4\n"), "--per {per}: {said}");
        assert!(!said.contains("has ended"), "--per {per}: {said}");
        assert!(count(said, " of them pulled") > 0, "--per {per}: {said}");
        let (left, arrived) = (calls(said, "leaves"), calls(said, "arrives"));
        // As the run ends, a thread of each CPU may have left one and not arrived at the other.
        assert!(arrived >= 4 && (arrived..=arrived + 4).contains(&left), "--per {per}: {said}");
    }
}

/// Three equal hogs on two CPUs, of which one would have a CPU for itself; and three light ones
/// that are there before one that weighs as much as all of them (nice 5 is 335, nice 0 is 1024).
#[test]
fn hogs_of_two_instances_have_their_shares_of_the_machine() {
    if !set_up() {
        return;
    }
    let folder = folder("balance");
    compile(&folder, SHARE);
    build_divided(&folder, "fair", 2, 2, "fair.bpf.o");
    std::fs::write(folder.join("equal"), "for hog in a b c; do ./share $hog 1 1.5 & done; wait")
        .unwrap();
    std::fs::write(
        folder.join("weighted"),
        "for hog in d e f; do nice -n 5 ./share $hog 1 1.5 & done; ./share heavy 1 1.5; wait",
    )
    .unwrap();
    let script = "$attune run fair.bpf.o --all --per cpu --timeout 30000 -- sh -c \
                  '. ./equal; . ./weighted'; cat /sys/kernel/sched_ext/state";
    let packed = ["share", "fair.bpf.o", "equal", "weighted", "/usr/bin/nice"];
    let said = in_quiet_machine(&folder, 2, &packed, script);
    for hog in ["a", "b", "c"] {
        assert!((part(&said, hog) - 33.3).abs() < 4.0, "{hog}: {said}");
    }
    for hog in ["d", "e", "f"] {
        assert!((part(&said, hog) - 16.6).abs() < 4.0, "{hog}: {said}");
    }
    assert!(part(&said, "heavy") > 44.0, "{said}");
    assert!(count(&said, " for balance") > 0, "{said}");
    assert!(!said.contains("has ended") && said.contains("disabled"), "{said}");
}

#[test]
fn a_scheduler_that_orders_the_machine_is_not_split() {
    if !set_up() {
        return;
    }
    let folder = folder("not_split");
    let script = "$run fifo --all --per cpu -- true; $run fair --per cpu -- true; true";
    let said = in_machine_with(&folder, &["--cpus", "2"], script);
    assert!(said.contains("`fifo` has no `arrives` of its own"), "{said}");
    assert!(said.contains("two schedulers that share the machine have one instance"), "{said}");
}
