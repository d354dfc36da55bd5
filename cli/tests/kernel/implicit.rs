//! `attune run --implicit`: what the scheduler learns of programs that tell it nothing.

use serde_json::Value;

use super::common::machine::{build, compile, folder, in_machine};
use super::common::set_up;

/// Programs that wait in every way, seen while they do.
const SESSION: &str = r#"
attune=$1
rm -f *.said
for how in relative absolute select epoll futex timerfd disarmed forever; do
    ./waits $how >$how.said & echo "$how $!"
    asleep="$asleep $!"
done
(sleep 0.5; echo; exec sleep 1000) | ./waits answered >answered.said & echo "answered $!"
asleep="$asleep $!"
./waits computing >computing.said & computing=$!
echo "computing $computing"
all_wait() {
    for said in *.said; do [ -s $said ] || return 1; done
    for process in $asleep; do grep -q '^State:.S' /proc/$process/status || return 1; done
}
until all_wait; do sleep 0.2; done
sleep 1
echo "look $($attune top --json)"
kill $asleep $computing
"#;

/// Where a thread sits, and what is known of it.
pub(super) fn thread(look: &Value, process: i64) -> &Value {
    let containers = look["policies"][0]["containers"].as_array().expect("containers");
    let threads =
        containers.iter().flat_map(|container| container["threads"].as_array().expect("threads"));
    let mut its = threads.filter(|thread| thread["process"] == process);
    its.next().unwrap_or_else(|| panic!("no thread of {process} in {look}"))
}

#[test]
fn what_unmodified_programs_wait_until_is_known() {
    if !set_up() {
        return;
    }
    let folder = folder("implicit");
    build(&folder, "coop", "coop.bpf.o");
    build(&folder, "fair", "fair.bpf.o");
    compile(&folder, "tests/kernel/waits.c");
    std::fs::write(folder.join("session.sh"), SESSION).unwrap();
    let said = in_machine(
        &folder,
        1,
        "$run fair.bpf.o --implicit --all -- true; echo fair: exit $?; $run \
            coop.bpf.o --implicit --all -- sh ./session.sh $attune; echo silent; $run \
            coop.bpf.o --all -- sh ./session.sh $attune",
    );
    let words = "fair does not ask what threads wait until: it has no import `implicit`";
    assert!(said.contains(words) && said.contains("fair: exit 1"), "{said}");

    let (told, silent) = said.split_once("\nsilent\n").unwrap_or_else(|| panic!("{said}"));
    let line = |said: &str, name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in:\n{said}")).to_owned()
    };
    let process = |said: &str, how: &str| line(said, how).parse::<i64>().expect("its number");
    let look = |said: &str| serde_json::from_str::<Value>(&line(said, "look")).expect("JSON");
    let of = |look: &Value, process: i64, name: &str| {
        thread(look, process)["values"][name]
            .as_i64()
            .unwrap_or_else(|| panic!("no {name} in {look}"))
    };

    let seen = look(told);
    let now = seen["at"].as_i64().expect("a time");
    for how in ["relative", "absolute", "select", "epoll", "futex", "timerfd", "computing"] {
        let process = process(told, how);
        let left = (of(&seen, process, "next_release") - now) / 1_000_000_000;
        assert!((500..1000).contains(&left), "{how}: {left} s left\n{said}");
        assert_eq!(of(&seen, process, "implicit"), 1, "{how}: {said}");
        assert!(of(&seen, process, "polls") > 0, "{how}: {said}");
    }
    for how in ["disarmed", "answered", "forever"] {
        assert_eq!(of(&seen, process(told, how), "next_release"), 0, "{how}: {said}");
    }
    // Without the word nothing is told.
    let seen = look(silent);
    assert_eq!(of(&seen, process(silent, "relative"), "next_release"), 0, "{said}");
    assert_eq!(of(&seen, process(silent, "relative"), "implicit"), 0, "{said}");
    // Processes are known in any case.
    let alone = process(silent, "forever");
    assert_eq!(of(&seen, alone, "process"), alone, "{said}");
}
