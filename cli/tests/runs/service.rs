//! The service and its policy while either is killed, and what a run leaves to the next.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::machine::{ATTUNE, TRAPS, UNTIL_SAYS, folder, in_machine, run};
use crate::common::set_up;

/// `seen` tells what the policy knew of a thread when it met it first: the tunable and the import.
const POLICY: &str = "scheduler kept extends lifecycle {
    threadimports { int urgent default 3; int seen default 0; }
    data { tunable int level = 1; }
    after newthread(t) {
        t.seen = 100 * level + t.urgent;
    }
    event schedule {
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

const HELPERS: &str = r#"
now() { $attune status --json | sed -n 's/.*"now":{"process":\([0-9]*\),.*/\1/p'; }
schedules='"now":{[^}]*"since":[0-9]'
"#;

const KILLED: &str = r#"
. ./helpers
$attuned --config kept.toml & service=$!
until_says "$schedules" $attune status --json
until_says "keeps kept.bpf.o; started it once" $attune status
(while :; do :; done) & hog=$!; echo "hog $hog"
until_says "\"thread\":$hog," $attune top --json
$attune set level=4 && $attune hint $hog urgent=5
$attuned --config kept.toml; echo "second: $?"
first=$(now)
kill -9 $service; wait $service
[ "$(now)" = "$first" ] && echo "the policy outlives the service"
$attuned --config kept.toml & service=$!
until_says "attuned: keeps" $attune status
[ "$(now)" = "$first" ] && echo "the next service takes it over"
kill -9 $first
until_says "was killed" $attune status
until_says "\"thread\":$hog," $attune top --json
until_says "attuned: keeps" $attune status
[ "$(now)" != "$first" ] && echo "another holder: $(now)"
echo "top $($attune top --json)"
echo "set $($attune set --json)"
# It has a second to answer, which is little while another process loads the policy.
for i in $(seq 20); do
    status=$($attune status --json)
    case $status in *'"running":true'*) break ;; esac
done
printf "status %s\n" "$status"
kill $service; wait $service; echo "end: $?"
cat /sys/kernel/sched_ext/state
$attune run kept.bpf.o --all --timeout 30000 -- sh -c \
    ". ./helpers; until_says '\"thread\":$hog,' $attune top --json; \
    echo \"again \$($attune top --json)\""
kill $hog
"#;

/// What the policy knew of the thread when it met it.
fn seen(look: &str, thread: &str) -> Option<i64> {
    let look: Value = serde_json::from_str(look).unwrap();
    let thread: i64 = thread.parse().ok()?;
    let policies = look["policies"].as_array()?.iter();
    let containers = policies.flat_map(|it| it["containers"].as_array().into_iter().flatten());
    let mut threads = containers.flat_map(|it| it["threads"].as_array().into_iter().flatten());
    threads.find(|it| it["thread"] == thread)?["values"]["seen"].as_i64()
}

/// A folder with both policies as objects, a configuration for each, and the script.
fn prepared(name: &str, script: &str) -> std::path::PathBuf {
    let folder = folder(name);
    for (policy, text) in [("kept", POLICY), ("traps", TRAPS)] {
        std::fs::write(folder.join(format!("{policy}.sched")), text).unwrap();
        let object = format!("{policy}.bpf.o");
        let source = format!("{policy}.sched");
        let build = ["build", &source, "--engine", "kernel", "--cpus", "2", "-o", &object];
        run(Command::new(ATTUNE).current_dir(&folder).args(build));
        let config = format!("[policy]\nscheduler = \"{object}\"\ntimeout_ms = 30000\n");
        std::fs::write(folder.join(format!("{policy}.toml")), config).unwrap();
    }
    std::fs::write(folder.join("missing.toml"), "[policy]\nscheduler = \"nowhere.sched\"\n")
        .unwrap();
    std::fs::write(folder.join("wrong.toml"), "[policy]\nschedule = \"fair\"\n").unwrap();
    let service = Path::new(ATTUNE).with_file_name("attuned");
    assert!(service.exists(), "build it first: cargo build -p attune-daemon");
    let helpers = format!("attune={ATTUNE}; attuned={}\n{UNTIL_SAYS}{HELPERS}", service.display());
    std::fs::write(folder.join("helpers"), helpers).unwrap();
    std::fs::write(folder.join("script"), script).unwrap();
    folder
}

fn line<'a>(said: &'a str, name: &str) -> &'a str {
    said.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("no {name} in:\n{said}"))
}

#[test]
fn the_service_keeps_its_policy_and_what_is_set_whichever_process_is_killed() {
    if !set_up() {
        return;
    }
    let folder = prepared("service_killed", KILLED);
    let said = in_machine(&folder, 2, "sh ./script");
    for words in [
        "another attuned runs already",
        "second: 2\n",
        "the policy outlives the service\n",
        "the next service takes it over\n",
        "another holder: ",
        "end: 0\ndisabled\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let hog = line(&said, "hog");
    // The first decision of the next holder knew the hint, and what was set is set again.
    assert_eq!(seen(line(&said, "top"), hog).map(|seen| seen % 100), Some(5), "{said}");
    assert!(line(&said, "set").contains("\"name\":\"level\""), "{said}");
    assert!(line(&said, "set").contains("\"value\":4"), "{said}");
    let status: Value = serde_json::from_str(line(&said, "status")).unwrap();
    assert_eq!(status["service"]["policy"]["state"], "runs", "{status}");
    assert_eq!(status["runs"]["last"]["ended"]["cause"], "killed", "{status}");
    // The run of a user finds the hint too.
    assert_eq!(seen(line(&said, "again"), hog), Some(105), "{said}");
}

const CANNOT: &str = r#"
. ./helpers
$attuned --config wrong.toml; echo "wrong: $?"
$attuned --config missing.toml & service=$!
until_says "attuned: starts nowhere.sched in" $attune status
echo "missing: $($attune status | tail -n +2 | head -1)"
kill $service; wait $service
$attuned --config traps.toml & service=$!
until_says "\"cause\":\"kernel\"" $attune status --json
printf "ended %s\n" "$($attune status --json)"
until_says "\"starts\":2" $attune status --json
kill $service; wait $service; echo "end: $?"
cat /sys/kernel/sched_ext/state
"#;

#[test]
fn the_service_says_why_its_policy_does_not_run() {
    if !set_up() {
        return;
    }
    let folder = prepared("service_cannot", CANNOT);
    let said = in_machine(&folder, 2, "sh ./script");
    assert!(said.contains("wrong: 2\n") && said.contains("schedule"), "{said}");
    assert!(line(&said, "missing:").contains("cannot read nowhere.sched"), "{said}");
    let ended: Value = serde_json::from_str(line(&said, "ended")).unwrap();
    let why = ended["runs"]["last"]["ended"]["why"].as_str().unwrap();
    assert!(
        why.contains("traps.sched:5:9: the index in slots[turns / 50] is out of range"),
        "{why}"
    );
    assert!(said.contains("end: 0\ndisabled\n"), "{said}");
}
