//! CPUs go and come under a run, which goes on: with its one instance, with one for each of two
//! CPUs, with one for each of two caches, and with two sides whose programs start others all the
//! time. A policy numbers those that are there.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::common::machine::{
    ATTUNE, build_divided, folder, in_machine, in_machine_with, in_quiet_machine, run,
};
use crate::common::set_up;

/// `seen` says what the policy knew at its beginning, and what it knows of the thread; `many` of
/// how many CPUs it knows.
const POLICY: &str = "scheduler goes_on extends lifecycle {
    threadimports { int urgent default 3; int seen default 0; int many default 0; }
    data {
        tunable int level = 1;
        int began_with = 0;
    }
    after init {
        began_with = level;
    }
    event schedule {
        foreach t in ready {
            t.seen = 100 * began_with + t.urgent;
            t.many = cpus;
        }
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
    after arrives(t) {
    }
}
";

/// `most` is the highest number of a CPU on which the thread was chosen, among as many CPUs as now.
/// No two CPUs have one number, so nobody is chosen where somebody runs: `clashes` counts those.
const NUMBERS: &str = "scheduler numbers extends lifecycle {
    threadimports { int many default 0; int most default 0; int clashes default 0; }
    data {
        percpu int busy = 0;
        int clash_count = 0;
    }
    before switch_out {
        busy = 0;
    }
    event schedule {
        if (|ready| > 0) {
            ready => current;
            clash_count += busy;
            busy = 1;
            current.clashes = clash_count;
            if (current.many != cpus)
                current.most = 0;
            current.many = cpus;
            if (current.most < cpu)
                current.most = cpu;
            dispatch current for 5ms;
        }
    }
    after arrives(t) {
        t.many = cpus;
    }
}
";

const HELPERS: &str = r#"
cpu=/sys/devices/system/cpu/cpu1/online
# Clock ticks that the process has computed for.
ticks() { read -r line </proc/$1/stat; set -- ${line##*) }; echo $((${12} + ${13})); }
# Waits until each of them has computed for two more.
all_run() {
    starts=
    for it in $hogs; do starts="$starts $it:$(ticks $it)"; done
    for start in $starts; do
        while [ $(ticks ${start%:*}) -lt $((${start#*:} + 2)) ]; do sleep 0.02; done
    done
    echo "$1: all run"
}
"#;

/// A hint for a process, one for a thread, and a tunable, all set before CPU 1 goes.
const ONE_POLICY: &str = r#"
. ./helpers; attune=$1
for number in 1 2 3; do (while :; do :; done) & hogs="$hogs $!"; done
last=$!; first=${hogs#* }; first=${first%% *}
$attune hint $first urgent=5; $attune hint $last/$last urgent=7; $attune set level=4
echo "first $first"; echo "last $last"
for round in 1 2; do
    echo 0 >$cpu; all_run gone
    echo 1 >$cpu; all_run back
done
$attune hint $first/$first urgent=6
echo "look $($attune top --json)"
kill $hogs
exit 7
"#;

/// Programs that start others while CPUs go and come.
const TWO_POLICIES: &str = r#"
. ./helpers; attune=$1
for number in 1 2 3 4 5 6; do (while :; do (sleep 0.01); done) & pids="$pids $!"; done
for round in 1 2; do
    echo 0 >$cpu; sleep 0.1
    [ $round = 1 ] || echo "without $($attune top --json)"
    echo 1 >$cpu; sleep 0.1
done
echo "sides $($attune top --json)"
kill $pids
exit 8
"#;

/// A CPU goes and comes under a crowd, whatever its threads are doing. After each change all that
/// compute go on.
const CROWD: &str = r#"
. ./helpers
./mixed 3 & mixed=$!
for number in 1 2 3 4; do (while :; do :; done) & hogs="$hogs $!"; done
for pause in 0.03 0.11 0.07 0.15; do
    echo 0 >$cpu; sleep $pause; all_run gone
    echo 1 >$cpu; sleep $pause; all_run back
done
wait $mixed && kill $hogs
exit 9
"#;

/// CPUs 1 and 2 are away as the run begins. CPU 3 goes while there is another one behind it in the
/// policy's order, and one before it. At the end the kernel begins to take it away, and then
/// refuses to: what runs there in SCHED_DEADLINE needs four CPUs.
const CHANGES: &str = r#"
. ./helpers; attune=$1
for number in 1 2 3 4 5 6; do (while :; do :; done) & hogs="$hogs $!"; done
echo "hogs$hogs"
look() { all_run $1; all_run $1; echo "look-$1 $($attune top --json)"; }
turn() { echo $2 >/sys/devices/system/cpu/cpu$1/online; }
look two
turn 2 1; look three
turn 3 0; look without
turn 1 1; turn 3 1; look four
for number in 1 2 3 4 5; do
    chrt --deadline --sched-runtime 6000000 --sched-deadline 10000000 --sched-period 10000000 0 \
        sleep 600 & reserved="$reserved $!"
done
sleep 0.5
turn 3 0 || look refused
kill $hogs $reserved
exit 5
"#;

/// There are two instances with two CPUs each. The second one loses one CPU and then the other, and
/// has them back.
const EMPTIED: &str = r#"
. ./helpers; attune=$1
for number in 1 2 3 4 5 6; do (while :; do :; done) & hogs="$hogs $!"; done
for number in 1 2 3; do (while :; do sleep 0.01; done) & sleepers="$sleepers $!"; done
echo "workers$hogs"
look() {
    all_run $1
    for look in 1 2 3; do all_run $1; echo "part-$1 $($attune top --json)"; done
}
turn() { echo $2 >/sys/devices/system/cpu/cpu$1/online; }
look whole
turn 2 0; look half
turn 3 0; look empty
turn 3 1; look half-again
turn 2 1; look whole-again
kill $hogs $sleepers
exit 6
"#;

/// The value that the policy sees for a thread.
fn value(look: &Value, thread: &str, name: &str) -> Option<i64> {
    let number: i64 = thread.parse().ok()?;
    let mut threads = look["policies"].as_array()?.iter().flat_map(threads);
    threads.find(|it| it["thread"] == number)?["values"][name].as_i64()
}

fn containers(policy: &Value) -> impl Iterator<Item = &Value> {
    policy["containers"].as_array().into_iter().flatten()
}

fn threads(policy: &Value) -> impl Iterator<Item = &Value> {
    containers(policy).flat_map(|it| it["threads"].as_array().into_iter().flatten())
}

/// For each instance that has some of these threads, how many CPUs it had when it saw them last.
fn instances(look: &Value, those: &[&str]) -> BTreeSet<(i64, i64)> {
    let is_one = |thread: &Value| those.contains(&thread["thread"].to_string().as_str());
    let with_instance = |container: &Value| {
        let instance = container["instance"].as_i64().unwrap();
        let threads = container["threads"].as_array().unwrap().iter().filter(|it| is_one(it));
        threads.map(|it| (instance, it["values"]["many"].as_i64().unwrap())).collect::<Vec<_>>()
    };
    containers(&look["policies"][0]).flat_map(with_instance).collect()
}

/// The names of a policy's threads.
fn names(policy: &Value) -> Vec<&str> {
    threads(policy).filter_map(|it| it["name"].as_str()).collect()
}

/// The numbers of CPUs that a policy knew of as it saw its threads.
fn many(policy: &Value) -> BTreeSet<i64> {
    let seen = threads(policy).filter_map(|it| it["values"]["many"].as_i64());
    seen.filter(|many| *many > 0).collect()
}

/// The line that begins with this name, without it.
fn line<'a>(said: &'a str, name: &str) -> &'a str {
    said.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("no {name} in:\n{said}"))
}

#[test]
fn a_run_goes_on_when_cpus_go_and_come() {
    if !set_up() {
        return;
    }
    let folder = folder("hotplug");
    for (file, text) in [
        ("goes_on.sched", POLICY),
        ("helpers", HELPERS),
        ("one", ONE_POLICY),
        ("two", TWO_POLICIES),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    for (object, words) in [
        ("one.bpf.o", &[][..]),
        ("each.bpf.o", &["--instances", "2"]),
        ("two.bpf.o", &["--others", "round_robin"]),
    ] {
        let build = ["build", "goes_on.sched", "--engine", "kernel", "--cpus", "2", "-o", object];
        run(Command::new(ATTUNE).current_dir(&folder).args(build).args(words));
    }
    let said = in_machine(
        &folder,
        2,
        "$run one.bpf.o --all -- sh ./one $attune; echo one: $?; \
         $run each.bpf.o --all --per cpu -- sh ./one $attune; echo each: $?; \
         $run two.bpf.o -- sh ./two $attune; echo two: $?; \
         cat /sys/kernel/sched_ext/state",
    );
    // Each command ends with its own status, and each change of CPUs was told.
    for status in ["one: 7\n", "each: 7\n", "two: 8\n"] {
        assert!(said.contains(status), "{said}");
    }
    assert!(said.ends_with("disabled\n") && !said.contains("has ended"), "{said}");
    for change in ["CPU 1 went: ", "CPU 1 came: "] {
        assert_eq!(said.matches(&format!("attune: {change}")).count(), 6, "{change}: {said}");
    }
    // No thread starves, on one CPU or on two.
    assert_eq!(said.matches("gone: all run").count(), 4, "{said}");
    assert_eq!(said.matches("back: all run").count(), 4, "{said}");
    // The policy has begun once: it keeps its variables. It knows the values that came before and
    // after.
    for said in <[&str; 2]>::from(said.split_once("one: 7\n").unwrap()) {
        let look: Value = serde_json::from_str(line(said, "look")).unwrap();
        for (thread, urgent) in [("first", 6), ("last", 7)] {
            let seen = value(&look, line(said, thread), "seen");
            assert_eq!(seen, Some(100 + urgent), "{thread}: {look}");
        }
    }
    // What a program of the command starts is the command's, also between two loads.
    let sides: Value = serde_json::from_str(line(&said, "sides")).unwrap();
    let [command, others] = sides["policies"].as_array().unwrap().as_slice() else {
        panic!("{sides}")
    };
    assert!(names(command).contains(&"sleep"), "{sides}");
    // It knows of those CPUs that are there.
    let without: Value = serde_json::from_str(line(&said, "without")).unwrap();
    assert_eq!(many(&without["policies"][0]), BTreeSet::from([1]), "{without}");
    assert_eq!(many(command), BTreeSet::from([2]), "{sides}");
    assert!(!names(others).iter().any(|name| ["sh", "sleep"].contains(name)), "{sides}");
}

#[test]
fn no_thread_is_lost_when_a_cpu_goes() {
    if !set_up() {
        return;
    }
    let folder = folder("hotplug_crowd");
    for (file, text) in [("helpers", HELPERS), ("crowd", CROWD)] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    build_divided(&folder, "fair", 2, 1, "fair.bpf.o");
    build_divided(&folder, "fair", 2, 2, "each.bpf.o");
    let said = in_quiet_machine(
        &folder,
        2,
        &["fair.bpf.o", "each.bpf.o", "helpers", "crowd", "mixed"],
        "$attune run fair.bpf.o --all -- sh ./crowd; echo one: $?; \
         $attune run each.bpf.o --all --per cpu -- sh ./crowd; echo each: $?; \
         cat /sys/kernel/sched_ext/state",
    );
    assert!(said.contains("one: 9\n"), "{said}");
    assert!(said.ends_with("each: 9\ndisabled\n") && !said.contains("has ended"), "{said}");
    assert_eq!(said.matches("mixed: all came back").count(), 2, "{said}");
    // The policy finds each thread by itself: the engine's rescue had none to run.
    assert!(!said.contains("The engine runs such threads"), "{said}");
    // Each was told. An interrupt that a CPU asks for as it goes would keep later ones away.
    for change in ["CPU 1 went: ", "CPU 1 came: "] {
        assert_eq!(said.matches(change).count(), 8, "{change}: {said}");
    }
}

#[test]
fn a_policy_numbers_the_cpus_that_are_there() {
    if !set_up() {
        return;
    }
    let folder = folder("hotplug_numbers");
    for (file, text) in [
        ("numbers.sched", NUMBERS),
        ("helpers", HELPERS),
        ("changes", CHANGES),
        ("emptied", EMPTIED),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    for instances in [1, 2] {
        let object = format!("numbers{instances}.bpf.o");
        build_divided(&folder, "numbers.sched", 4, instances, &object);
    }
    let said = in_machine_with(
        &folder,
        &["--topology", "2:2:1"],
        "$run numbers2.bpf.o --all --per cache -- sh ./emptied $attune; echo two: $?; \
         for cpu in 1 2; do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done; \
         $run numbers1.bpf.o --all --per machine -- sh ./changes $attune; echo one: $?; \
         cat /sys/kernel/sched_ext/state",
    );
    assert!(said.contains("two: 6\n"), "{said}");
    assert!(said.ends_with("one: 5\ndisabled\n") && !said.contains("has ended"), "{said}");
    // The threads of an instance without a CPU run in the other one, and come back.
    let workers: Vec<&str> = line(&said, "workers").split(' ').collect();
    for (moment, wanted) in [
        ("whole", &[(0, 2), (1, 2)][..]),
        ("half", &[(0, 2), (1, 1)]),
        ("empty", &[(0, 2)]),
        ("half-again", &[(0, 2), (1, 1)]),
        ("whole-again", &[(0, 2), (1, 2)]),
    ] {
        // A look may see none of them in an instance: they move.
        let looks = said.lines().filter_map(|line| line.strip_prefix(&format!("part-{moment} ")));
        let looks = looks.map(|look| serde_json::from_str::<Value>(look).unwrap());
        let found: BTreeSet<_> = looks.flat_map(|look| instances(&look, &workers)).collect();
        assert_eq!(found, BTreeSet::from_iter(wanted.iter().copied()), "{moment}: {said}");
    }
    let hogs: Vec<&str> = line(&said, "hogs").split(' ').collect();
    for (moment, cpus) in [("two", 2), ("three", 3), ("without", 2), ("four", 4), ("refused", 4)] {
        let look: Value = serde_json::from_str(line(&said, &format!("look-{moment}"))).unwrap();
        let values = |name| hogs.iter().map(|hog| value(&look, hog, name)).collect::<Vec<_>>();
        let many = values("many");
        assert!(many.iter().all(|many| *many == Some(cpus)), "{moment}: {many:?}: {said}");
        assert_eq!(values("most").into_iter().max(), Some(Some(cpus - 1)), "{moment}: {said}");
        assert_eq!(values("clashes").into_iter().max(), Some(Some(0)), "{moment}: {said}");
    }
}
