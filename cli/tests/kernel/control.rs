//! `attune set` and `attune top` at schedulers that run, by those who may and by those who may not.

use super::common::set_up;
use super::{folder, in_machine};

use super::shared::build_both;

/// What the command says and how it ends, between two marks.
fn between<'a>(said: &'a str, mark: &str) -> &'a str {
    let begins = said.find(&format!("<{mark}>\n")).unwrap_or_else(|| panic!("no <{mark}> in:\n{said}"));
    let rest = &said[begins + mark.len() + 3..];
    &rest[..rest.find("<end>").unwrap_or_else(|| panic!("no end of <{mark}> in:\n{said}"))]
}

/// What stands behind the name in a list.
fn row<'a>(list: &'a str, name: &str) -> Vec<&'a str> {
    let line = list.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in:\n{list}")).split_whitespace().collect()
}

/// Two hogs on one CPU under round_robin, everybody else under fair. The user 65533 has started the run, through sudo.
const SET: &str = r#"
attune=$1
show() { mark=$1; shift; echo "<$mark>"; "$@"; echo "exit $?"; echo "<end>"; }
as() { user=$1; shift; setpriv --reuid $user --clear-groups "$@"; }
switches() { sed -n 's/^nonvoluntary_ctxt_switches:[^0-9]*//p' /proc/$1/status; }
sh -c 'while :; do :; done' & hog=$!
sh -c 'while :; do :; done' & other=$!
counted() { before=$(switches $hog); sleep 1; echo "<$1>"; echo $(($(switches $hog) - before)); echo "<end>"; }

show list $attune set
counted long
show change $attune set quantum=500us others.period=7ms
counted short
kill $hog $other
show json $attune set --json
show unknown $attune set quantum=9ms quantun=1ms
show unit $attune set quantum=9
show large $attune set others.lead=1e10s
show nobody $attune set nobody.quantum=1ms
show words $attune set quantum
show stranger as 65534 $attune set quantum=9ms
show stranger_lists as 65534 $attune set
show owner as 65533 $attune set fair.min_slice=300us
show after $attune set
"#;

#[test]
fn tunables_change_while_it_runs() {
    if !set_up() {
        return;
    }
    let folder = folder("control");
    build_both(&folder, "round_robin", "fair", "both.bpf.o");
    std::fs::write(folder.join("set.sh"), SET).unwrap();
    let said = in_machine(
        &folder,
        1,
        "echo '<nothing>'; $attune set; echo exit $?; echo '<end>'; \
         SUDO_UID=65533 $attune run both.bpf.o --set quantum=20ms -- sh ./set.sh $attune; \
         $attune run both.bpf.o -- sleep 100 & loader=$!; \
         for i in $(seq 200); do test -e /run/attune/values && break; sleep 0.1; done; \
         $attune set >/dev/null; echo reached: $?; \
         kill -STOP $loader; (echo '<ended>'; $attune set period=1ms; echo exit $?; echo '<end>') & asks=$!; \
         sleep 0.5; kill -9 $loader; wait $asks; \
         echo '<killed>'; $attune set; echo exit $?; echo '<end>'; cat /sys/kernel/sched_ext/state",
    );
    let told = |mark: &str| between(&said, mark);
    for nothing in ["nothing", "killed"] {
        assert!(told(nothing).contains("no scheduler runs in the kernel"), "{said}");
        assert!(told(nothing).contains("exit 2"), "{said}");
    }
    let list = told("list");
    assert_eq!(row(list, "command.quantum"), ["20ms", "time", "tunable"], "{said}");
    assert_eq!(row(list, "others.period"), ["20ms", "time", "tunable"], "{said}");
    assert!(list.contains("exit 0"), "{said}");
    assert_eq!(told("change"), "exit 0\n", "{said}");
    let json = told("json");
    assert!(
        json.contains(
            r#"{"scheduler":"round_robin","role":"command","name":"quantum","storage":"tunable","type":"time","value":500000}"#
        ),
        "{said}"
    );
    assert!(
        json.contains(r#""role":"others","name":"period","storage":"tunable","type":"time","value":7000000"#),
        "{said}"
    );
    // With a fortieth of the slice there are more switches, however many turns of the others come in between.
    let count = |mark: &str| told(mark).trim().parse::<u64>().unwrap_or_else(|_| panic!("{said}"));
    assert!(count("short") > 2 * count("long"), "{said}");

    for (mark, words) in [
        ("unknown", "there is no tunable `quantun` in round_robin and fair; there is quantum, period"),
        ("unit", "`9` is no value for quantum, which is a time: a number with a unit"),
        ("large", "`1e10s` is too large for lead: times go from"),
        ("nobody", "no scheduler here is called `nobody`: there is round_robin and fair"),
        (
            "stranger",
            "this run of round_robin and fair is another user's: only they and root may look at it and set it",
        ),
        ("stranger_lists", "is another user's"),
    ] {
        assert!(told(mark).contains(words) && told(mark).contains("exit 1"), "{mark}: {said}");
    }
    assert!(told("words").contains("a setting is NAME=VALUE") && told("words").contains("exit 2"), "{said}");
    assert_eq!(told("owner"), "exit 0\n", "{said}");
    // What was refused has changed nothing; the owner has changed what they said.
    let after = told("after");
    let now = [
        ("command.quantum", "500us"),
        ("others.period", "7ms"),
        ("others.min_slice", "300us"),
        ("others.lead", "500us"),
    ];
    for (name, value) in now {
        assert_eq!(row(after, name)[0], value, "{said}");
    }
    assert!(told("ended").contains("the run has ended") && told("ended").contains("exit 1"), "{said}");
    assert!(said.contains("reached: 0\n") && said.trim_end().ends_with("disabled"), "{said}");
}
