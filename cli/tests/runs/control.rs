//! `attune set` and `attune top` at schedulers that run, by those who may and by those who may not.
//! All in one machine.

use std::sync::OnceLock;

use serde_json::Value;

use crate::common::machine::{between, build_both, folder, in_machine};
use crate::common::set_up;

/// What stands behind the name in a list.
fn row<'a>(list: &'a str, name: &str) -> Vec<&'a str> {
    let line = list.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in:\n{list}")).split_whitespace().collect()
}

/// Two hogs on one CPU under edf, everybody else under fair. The user 65533 has started the run,
/// through sudo.
const SESSION: &str = r#"
attune=$1
show() { mark=$1; shift; echo "<$mark>"; "$@"; echo "exit $?"; echo "<end>"; }
as() { user=$1; shift; setpriv --reuid $user --clear-groups "$@"; }
switches() { sed -n 's/^nonvoluntary_ctxt_switches:[^0-9]*//p' /proc/$1/status; }
taskset 1 sh -c 'while :; do :; done' & hog=$!
taskset 1 sh -c 'while :; do :; done' & other=$!
counted() {
    before=$(switches $hog); sleep 1
    echo "<$1>"; echo $(($(switches $hog) - before)); echo "<end>"
}

show list $attune set
counted long
show change $attune set quantum=500us others.period=7ms
counted short
$attune hint $hog deadline=5ms
echo "hog $hog"
show once $attune top --once
show hinted $attune top --json
kill $hog $other
show json $attune set --json
show unknown $attune set quantum=9ms quantun=1ms
show unit $attune set quantum=9
show large $attune set others.lead=1e10s
show nobody $attune set nobody.quantum=1ms
show words $attune set quantum
show stranger as 65534 $attune set quantum=9ms
show stranger_lists as 65534 $attune set
show stranger_looks as 65534 $attune top --once
show owner as 65533 $attune set fair.min_slice=300us
show after $attune set
show no_terminal $attune top
./mixed 8 >loaded & load=$!
for look in 1 2 3 4 5 6; do show look$look $attune top --json; done
touch shown
(for i in $(seq 900); do grep -q RUN/% shown && break; sleep 0.1; done
    printf '\033[B'; sleep 1; printf q) |
    script -qec "stty rows 40 cols 120; stty -g >before; $attune top --interval 0.1;
        echo left: \$?; stty -g >after" /dev/null >shown
wait $load; cat loaded
show live cat shown
cmp before after && echo the terminal is as it was
"#;

/// All that was said; None without a machine.
fn session() -> Option<&'static str> {
    static SAID: OnceLock<String> = OnceLock::new();
    let run = || {
        let folder = folder("control");
        build_both(&folder, "edf", "fair", "both.bpf.o");
        std::fs::write(folder.join("session.sh"), SESSION).unwrap();
        in_machine(
            &folder,
            2,
            "echo '<nothing>'; $attune set; echo exit $?; $attune top --once; echo exit $?; echo \
                '<end>'; SUDO_UID=65533 $run both.bpf.o --set quantum=20ms -- sh \
                ./session.sh $attune; $run both.bpf.o -- sleep 100 & loader=$!; for i in \
                $(seq 900); do $attune set >/dev/null 2>&1 && break; sleep 0.1; done; kill -STOP \
                $loader; $attune set period=1ms >asked 2>&1 & asks=$!; for i in $(seq 900); do ls \
                -l /proc/$asks/fd | grep -q socket && break; sleep 0.1; done; sleep 1; kill -9 \
                $loader; wait $asks; status=$?; echo '<ended>'; echo exit $status; cat asked; echo \
                '<end>'; echo '<killed>'; $attune set; echo exit $?; echo '<end>'; for i in $(seq \
                900); do grep -q disabled /sys/kernel/sched_ext/state && break; sleep 0.1; done; \
                cat /sys/kernel/sched_ext/state",
        )
    };
    set_up().then(|| SAID.get_or_init(run).as_str())
}

#[test]
fn tunables_change_while_it_runs() {
    let Some(said) = session() else { return };
    let told = |mark: &str| between(said, mark);
    for nothing in ["nothing", "killed"] {
        assert!(told(nothing).contains("no scheduler runs in the kernel"), "{said}");
        assert!(told(nothing).contains("exit 2"), "{said}");
    }
    let list = told("list");
    assert_eq!(row(list, "command.quantum"), ["20ms", "time", "tunable"], "{said}");
    assert_eq!(row(list, "others.period"), ["20ms", "time", "tunable"], "{said}");
    assert!(list.contains("exit 0"), "{said}");
    // What was changed is shown under its policy's name, as it is now.
    let change = told("change");
    assert_eq!(row(change, "command.quantum")[0], "500us", "{said}");
    assert_eq!(row(change, "others.period")[0], "7ms", "{said}");
    assert!(change.contains("exit 0") && change.lines().count() == 3, "{said}");
    let json = told("json");
    assert!(
        json.contains(
            &[
                r#"{"scheduler":"edf","role":"command","name":"quantum","#,
                r#""storage":"tunable","type":"time","value":500000}"#,
            ]
            .concat()
        ),
        "{said}"
    );
    assert!(
        json.contains(
            r#""role":"others","name":"period","storage":"tunable","type":"time","value":7000000"#
        ),
        "{said}"
    );
    // With a fortieth of the slice there are more switches, however many turns of the others come
    // in between.
    let count = |mark: &str| told(mark).trim().parse::<u64>().unwrap_or_else(|_| panic!("{said}"));
    assert!(count("short") > 2 * count("long"), "{said}");
}

#[test]
fn what_cannot_be_set_is_refused_and_changes_nothing() {
    let Some(said) = session() else { return };
    let told = |mark: &str| between(said, mark);
    let stranger = "this run of edf and fair is another user's: only that user and root may look \
                    at it and set it";
    for (mark, words) in [
        (
            "unknown",
            "there is no tunable `quantun` in edf and fair; there is edf.quantum, edf.patience",
        ),
        ("unit", "`9` is no value for quantum, which is a time: a number with a unit"),
        ("large", "`1e10s` is too large for lead: times go from"),
        ("nobody", "no scheduler here is called `nobody`: there is edf and fair"),
        ("stranger", stranger),
        ("stranger_lists", stranger),
        ("stranger_looks", stranger),
    ] {
        assert!(told(mark).contains(words) && told(mark).contains("exit 1"), "{mark}: {said}");
    }
    assert!(
        told("words").contains("a setting is NAME=VALUE") && told("words").contains("exit 2"),
        "{said}"
    );
    // The owner has changed what the commands said, and no other user anything.
    assert_eq!(row(told("owner"), "others.min_slice")[0], "300us", "{said}");
    assert!(told("owner").contains("exit 0"), "{said}");
    let after = [
        ("command.quantum", "500us"),
        ("others.period", "7ms"),
        ("others.min_slice", "300us"),
        ("others.lead", "500us"),
    ];
    for (name, value) in after {
        assert_eq!(row(told("after"), name)[0], value, "{said}");
    }
    assert!(
        told("ended").contains("the run has ended") && told("ended").contains("exit 1"),
        "{said}"
    );
    assert!(said.trim_end().ends_with("disabled"), "{said}");
}

fn parse(text: &str) -> Value {
    let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// Threads in containers of the policy.
fn threads(policy: &Value) -> impl Iterator<Item = &Value> {
    items(policy, "containers").iter().flat_map(|container| items(container, "threads"))
}

#[test]
fn a_look_says_why_a_thread_has_its_place() {
    let Some(said) = session() else { return };
    let hog: i64 = said.lines().find_map(|line| line.strip_prefix("hog ")?.parse().ok()).unwrap();
    let look = parse(between(said, "hinted"));
    let [edf, fair] = items(&look, "policies") else { panic!("{look}") };
    assert_eq!((&edf["scheduler"], &edf["role"]), (&"edf".into(), &"command".into()));
    let containers = items(edf, "containers").iter();
    let mut places = containers
        .flat_map(|it| items(it, "threads").iter().map(move |thread| (&it["name"], thread)));
    let (container, hog) =
        places.find(|(_, thread)| thread["thread"] == hog).unwrap_or_else(|| panic!("{look}"));
    assert_eq!(
        (&hog["name"], &hog["values"]["deadline"]),
        (&"sh".into(), &5_000_000.into()),
        "{hog}"
    );
    assert!(
        hog["run_ns"].as_u64() > Some(100_000_000) && hog["wait_ns"].as_u64() > Some(100_000_000),
        "{hog}"
    );
    // The base of all schedulers has `ready`, `edf` itself RQ; it is edf too that makes it
    // `current`.
    let file = if container == "ready" { "lifecycle.sched:" } else { "edf.sched:" };
    assert!(hog["put_by"].as_str().unwrap().contains(file), "{container}: {hog}");
    // The loader itself follows the other policy.
    assert!(threads(fair).any(|thread| thread["name"] == "attune-values"), "{look}");
    let once = between(said, "once");
    for words in [
        "edf (command): ",
        "RQ: ",
        "pqueue sorted on due",
        "<deadline/ms",
        "others.period = 7ms",
        "WQ: ",
    ] {
        assert!(once.contains(words), "no `{words}` in {once}");
    }
}

#[test]
fn what_a_look_says_was_true_at_one_moment() {
    let Some(said) = session() else { return };
    for number in 1..=6 {
        let text = between(said, &format!("look{number}"));
        let look = parse(text);
        let mut running = Vec::new();
        for policy in items(&look, "policies") {
            assert!(items(policy, "loose").is_empty(), "{look}");
            let ready = threads(policy).filter(|thread| thread["state"] == "ready").count() as u64;
            assert_eq!(Some(ready), policy["ready"].as_u64(), "{look}");
            let here = threads(policy).filter(|thread| thread["state"] == "running");
            running.extend(here.map(|thread| (thread["cpu"].as_u64(), thread["thread"].as_i64())));
            for container in
                items(policy, "containers").iter().filter(|it| !it["sorted_on"].is_null())
            {
                let by = container["sorted_on"].as_str().unwrap();
                let values: Vec<i64> = items(container, "threads")
                    .iter()
                    .filter_map(|it| it["values"][by].as_i64())
                    .collect();
                assert!(values.is_sorted(), "{container}");
            }
        }
        running.sort();
        let cpus = items(&look, "cpus").iter().filter(|cpu| !cpu["thread"].is_null());
        let cpus: Vec<_> = cpus.map(|cpu| (cpu["cpu"].as_u64(), cpu["thread"].as_i64())).collect();
        assert_eq!(running, cpus, "{look}");
        assert!(text.contains("exit 0"), "{text}");
    }
}

#[test]
fn the_live_view_leaves_the_terminal_as_it_was() {
    let Some(said) = session() else { return };
    assert!(between(said, "no_terminal").contains("this is no terminal: --once prints"), "{said}");
    let live = between(said, "live");
    // The other screen and back; what was shown on it; q ends it.
    assert!(live.contains("\u{1b}[?1049h") && live.contains("\u{1b}[?1049l"), "{live}");
    for words in ["edf (command): ", "RUN/%", "q: leave", "left: 0"] {
        assert!(live.contains(words), "no `{words}` in {live}");
    }
    assert!(said.contains("the terminal is as it was\n"), "{said}");
}
