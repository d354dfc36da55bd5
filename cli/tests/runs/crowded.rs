//! `attune top` beside more threads than the engine copies at one moment.

use serde_json::Value;

use crate::common::machine::{ATTUNE, between, build, compile, folder, in_machine};
use crate::common::set_up;

/// `coop` has some 6000 in the 4 MB that are copied.
const THREADS: u64 = 7000;

#[test]
fn of_too_many_threads_some_are_shown_and_the_others_counted() {
    if !set_up() {
        return;
    }
    let folder = folder("crowded");
    compile(&folder, "tests/runs/asleep.c");
    build(&folder, "coop", "coop.bpf.o");
    let look = |mark, how| format!("echo \"<{mark}>\"; {ATTUNE} top --{how}; echo \"<end>\"");
    let looks = [look("json", "json"), look("once", "once")].join("; ");
    // Two that compute: one has the CPU, and the other waits for it.
    let script = format!(
        "hog() {{ timeout 60 sh -c 'while :; do :; done' & }}; hog; hog; $run coop.bpf.o --all -- \
            ./asleep {THREADS} '{looks}'; echo exit $?"
    );
    let said = in_machine(&folder, 1, &script);
    assert!(said.contains("exit 0"), "{said}");
    let look: Value = serde_json::from_str(between(&said, "json").trim()).unwrap();
    let policy = &look["policies"][0];
    let empty = Vec::new();
    let list = |value: &'static str, of: &Value| of[value].as_array().unwrap_or(&empty).clone();
    let containers = list("containers", policy);
    let shown: Vec<Value> = containers.iter().flat_map(|it| list("threads", it)).collect();
    let shown: Vec<Value> = [shown, list("loose", policy)].concat();
    let all = shown.len() as u64 + policy["left_out"].as_u64().unwrap();
    assert!((500..5000).contains(&shown.len()) && all > THREADS, "{} of {all}", shown.len());
    // Those that want to run are among them.
    let ready = shown.iter().filter(|it| it["state"] == "ready").count() as u64;
    assert_eq!(Some(ready), policy["ready"].as_u64());
    let running = &look["cpus"][0]["thread"];
    assert!(shown.iter().any(|it| it["thread"] == *running), "{running}");
    let once = between(&said, "once");
    assert!(once.contains(" threads, of which "), "{once}");
}
