//! A node of a cluster on the kernel engine, beside a node in a program and the manager: what all
//! share decides which threads run, counts are exact whoever is killed, and failures are told.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::machine::{ATTUNE, SHORT, UNTIL_SAYS, folder, in_machine, run};
use crate::common::set_up;

/// Processes that count their threads, and that run only once enough tickets are sold.
const SHOP: &str = r#"distributed scheduler shop {
    nodefamilies { "counter.subsched" : counter; "group.subsched" : group; }
    nodes { queue all; }
    global { int last = 0; int sold = 0; int born = 0; int dead = 0; int groups = 0; int told = 0; }
    arrival (n)   { if (n is group) { groups += 1; n.named = 7; } n => all; }
    departure (n) { if (n is group) { groups -= 1; dead += n.alive; told = n.named; } }
}"#;

const COUNTER: &str = "scheduler counter extends fifo { }";

const GROUP: &str = "scheduler group extends lifecycle {
    data { int alive = 0; int named = 0; }
    before newthread(t) { alive++; born += 1; }
    before set_dead(fixed t) { alive--; dead += 1; }
    event schedule {
        if (|ready| > 0 && (sold >= 100 || alive < 2)) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}";

const SCRIPT: &str = r#"
. ./helpers
export ATTUNE_SCHED=./counter.so ATTUNE_CLUSTER=./socket
start_manager() { $attune manager shop.sched --name ./socket > manager.$1 & manager=$!; }

start_manager 1
until_says "at ./socket" cat manager.1
echo "refused:"; $run other.bpf.o --cluster ./socket -- sleep 1; echo "ran alone: $?"
grep refused manager.1

echo "held:"
$join sh -c 'echo a | cat > a; touch began; sh ./work; exit 3' & node=$!
until_says "family group arrived" cat manager.1
sleep 1; [ -e began ] || echo "no thread runs yet"
./tickets sell 1000 0.5 > sold
wait $node; echo "the command: $?"
[ -e began ] && echo "it has run"
until_says "departed.*groups = 0; told = 7" cat manager.1
echo "counts: $(grep "groups = 0" manager.1 | tail -n 1)"

echo "killed:"
$join sh -c 'sleep 600 & while sh ./work; do touch lives; done' & node=$!
until_says "family group arrived" cat manager.1
until_says lives ls
kill -9 $manager; wait $manager
rm lives; until_says lives ls && echo "it goes on"
start_manager 2
until_says returned cat manager.2
kill -9 $node; wait $node; echo "the node: $?"
until_says "departed.*groups = 0" cat manager.2
echo "counts: $(grep "groups = 0" manager.2 | tail -n 1)"
until_says disabled cat /sys/kernel/sched_ext/state && echo "the fair class has it"

kill $manager; wait $manager
echo "absent:"; $join sleep 1; echo "alone: $?"
"#;

const HELPERS: &str = r#"
run="$attune run --timeout 30000"
join="$run node.bpf.o --cluster ./socket --"
"#;

/// The numbers that a line of the manager says.
fn shared(line: &str, name: &str) -> i64 {
    let value = line.split("; ").find_map(|it| it.strip_prefix(name)?.strip_prefix(" = "));
    value.and_then(|it| it.trim().parse().ok()).unwrap_or_else(|| panic!("{name}: {line}"))
}

/// The program that sells tickets, as a node of family `counter`.
fn program(folder: &Path) {
    let library = Path::new(ATTUNE).parent().unwrap().display().to_string();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/tickets");
    run(Command::new("make")
        .args(["-s", "-C"])
        .arg(example)
        .args([format!("LIBRARY_DIR={library}"), format!("OUT={}", folder.display())]));
    let words = ["build", "shop.sched", "--node", "counter", "-o", "counter.so"];
    run(Command::new(ATTUNE).current_dir(folder).args(words));
}

#[test]
fn a_group_of_processes_is_a_node_that_counts_exactly_whoever_is_killed() {
    if !set_up() {
        return;
    }
    let folder = folder("nodes");
    for (name, text) in [
        ("shop.sched", SHOP.to_owned()),
        ("counter.subsched", COUNTER.to_owned()),
        ("group.subsched", GROUP.to_owned()),
        ("other.sched", SHOP.replace("told = 0", "told = 1")),
        ("helpers", format!("attune={ATTUNE}\n{UNTIL_SAYS}{HELPERS}")),
        ("work", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done\n".to_owned()),
        ("script", SCRIPT.to_owned()),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    program(&folder);
    for (master, object) in [("shop.sched", "node.bpf.o"), ("other.sched", "other.bpf.o")] {
        run(Command::new(ATTUNE)
            .current_dir(&folder)
            .args(["build", master, "--node", "group", "--engine", "kernel"])
            .args(["--others", SHORT, "-o", object]));
    }
    let said = in_machine(&folder, 2, "sh ./script");
    for words in [
        "refuses this node, which runs alone: the node runs another version of the scheduler",
        "ran alone: 0\n",
        "no thread runs yet\n",
        "this node takes part in cluster ./socket",
        "the command: 3\n",
        "it has run\n",
        "it goes on\n",
        "the node: 137\n",
        "the fair class has it\n",
        "no manager of cluster ./socket is there, at ./socket: this node goes on",
        "alone: 0\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let counts: Vec<&str> = said.lines().filter(|line| line.starts_with("counts: ")).collect();
    let [ended, killed] = counts[..] else { panic!("{said}") };
    for line in [ended, killed] {
        assert!(
            shared(line, "born") > 10 && shared(line, "born") == shared(line, "dead"),
            "{line}"
        );
        assert_eq!(shared(line, "sold"), 500, "{line}");
    }
    assert!(shared(killed, "born") > shared(ended, "born") + 4, "{said}");
}
