//! `attune manager`, `attune build --node`, and examples/pool, whose processes are nodes.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::support::{ATTUNE, Folder, err, status};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pool");

/// A manager that was started, with the lines that it says.
struct Manager {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Manager {
    /// Waits until it listens.
    fn start(folder: &Folder) -> (Manager, Value) {
        let mut command =
            folder.command(&["manager", "pool.sched", "--name", "./socket", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut manager = Manager { child, lines };
        let listening = manager.next().expect("it listens");
        assert_eq!(listening["event"], "listening");
        (manager, listening)
    }

    /// What it says next; None at its end.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("readable");
        (!line.is_empty()).then(|| serde_json::from_str(&line).expect("a line of JSON"))
    }

    /// Passes over what it says until that event has come so often.
    fn until(&mut self, event: &str, count: usize) -> Value {
        let mut seen = 0;
        loop {
            let said = self.next().expect("it runs");
            seen += usize::from(said["event"] == event);
            if seen == count {
                return said;
            }
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder(name: &str) -> Folder {
    let read = |name: &str| std::fs::read(Path::new(EXAMPLE).join(name)).expect("the example");
    Folder::new(name)
        .with("pool.sched", read("pool.sched"))
        .with("process.subsched", read("process.subsched"))
}

/// The example's program, linked with the library beside this test's programs.
fn pool(folder: &Folder) -> PathBuf {
    let library = Path::new(ATTUNE).parent().expect("in a folder").to_owned();
    let here = format!("LIBRARY_DIR={}", library.display());
    let out = format!("OUT={}", folder.0.display());
    let made = Command::new("make").args(["-s", "-C", EXAMPLE, &here, &out]).output();
    let made = made.expect("make runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder.0.join("pool")
}

/// About 300 requests of 5 to 100 ms.
fn run(pool: &Path, folder: &Folder, cluster: &str) -> Value {
    let times = ["--interval", "0.005", "--shortest", "0.005", "--longest", "0.1"];
    let mut command = Command::new("timeout");
    command.arg("120").arg(pool).args(times).args(["--requests", "300"]).current_dir(&folder.0);
    let output = command
        .env("ATTUNE_SCHED", "./process.so")
        .env("ATTUNE_CLUSTER", cluster)
        .output()
        .expect("it runs");
    assert_eq!(status(&output), 0, "{}", err(&output));
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

#[test]
fn the_pool_answers_every_request_and_the_manager_counts_to_nothing_again() {
    let folder = folder("cluster-pool");
    let pool = pool(&folder);
    let built = folder.attune(&["build", "pool.sched", "--node", "process", "-o", "process.so"]);
    assert_eq!(status(&built), 0, "{}", err(&built));
    let (mut manager, _) = Manager::start(&folder);
    let result = run(&pool, &folder, "./socket");
    assert_eq!((result["requests"].clone(), result["answered"].clone()), (300.into(), 300.into()));
    // The processes were killed with whatever they had not sent; a process's own count and the
    // shared one travel together, so what is left is nothing.
    let last = manager.until("departed", 6);
    assert_eq!(last["nodes"], 0, "{last}");
    assert_eq!((last["shared"]["n"].clone(), last["shared"]["r"].clone()), (0.into(), 0.into()));

    // Killed, it leaves its socket behind, and the next one takes its place.
    manager.child.kill().expect("it runs");
    manager.child.wait().expect("it ended");
    let (mut again, _) = Manager::start(&folder);
    let second = folder.attune(&["manager", "pool.sched", "--name", "./socket"]);
    assert_eq!(status(&second), 2);
    assert!(err(&second).contains("runs already"), "{}", err(&second));
    // And the pool runs with it, or with none.
    run(&pool, &folder, "./socket");
    again.until("departed", 6);
    drop(again);
    let alone = run(&pool, &folder, "./socket");
    assert_eq!(alone["answered"], 300);
}

#[test]
fn the_commands_of_the_page_run_as_they_stand() {
    let page = include_str!("../../../docs/distributed.md");
    let (_, section) = page.split_once("## On one machine").expect("a heading");
    let lines = section.lines().skip_while(|line| !line.starts_with("    "));
    let commands: Vec<&str> = lines.map_while(|line| line.strip_prefix("    ")).collect();
    assert!(commands.len() >= 3, "the commands were not found");

    let folder = Folder::new("cluster-page");
    let release = folder.0.join("target/release");
    std::fs::create_dir_all(&release).expect("writable");
    std::fs::rename(pool(&folder), release.join("pool")).expect("writable");
    symlink(ATTUNE, folder.0.join("attune")).expect("writable");
    symlink(Path::new(EXAMPLE).parent().expect("examples"), folder.0.join("examples"))
        .expect("writable");
    let script = format!("set -e\ntrap 'kill %1' EXIT\n{}\n", commands.join("\n"));
    let path = std::env::var("PATH").expect("a PATH");
    let output = Command::new("timeout")
        .args(["300", "bash", "-c", &script])
        .current_dir(&folder.0)
        .env("PATH", format!("{}:{path}", folder.0.display()))
        .env("XDG_RUNTIME_DIR", &folder.0)
        .output()
        .expect("it runs");
    assert_eq!(status(&output), 0, "{}", err(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    // The manager says what it sees, too.
    let result = said.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    assert_eq!(result.expect("a line of JSON")["answered"], 200, "{said}");
}

#[test]
fn a_node_of_another_version_is_told_both() {
    let folder = folder("cluster-version");
    let pool = pool(&folder);
    let built = folder.attune(&["build", "pool.sched", "--node", "process", "-o", "process.so"]);
    assert_eq!(status(&built), 0, "{}", err(&built));
    let text = folder.text("process.subsched");
    let folder = folder.with("process.subsched", format!("{text}// another version\n"));
    let (mut manager, listening) = Manager::start(&folder);
    run(&pool, &folder, "./socket");
    let refused = manager.until("refused", 1);
    let reason = refused["reason"].as_str().expect("a text");
    let ours = listening["identity"].as_str().expect("a text");
    let (_, theirs) = reason.split_once("the node's ").expect("both are named");
    assert!(reason.contains(ours) && !theirs.starts_with(ours), "{reason}");
}

#[test]
fn wrong_uses_of_clusters_say_what_to_do() {
    let folder = folder("cluster-wrong").with("plain.sched", "scheduler plain { }");
    let build = |words: &[&'static str]| [&["build", "pool.sched", "-o", "x.so"], words].concat();
    folder.refused(&build(&[]), "--node FAMILY compiles");
    folder.refused(&build(&["--node", "proces"]), "no family proces: it has process");
    folder.refused(&build(&["--node", "process", "--engine", "simulator"]), "programs only");
    folder.refused(
        &["build", "pool.sched", "-o", "x.bpf.c", "--engine", "kernel", "--node", "process"],
        "programs only",
    );
    folder.refused(&["manager", "pool.sched", "--set", "thresh=1"], "there are r, n, threshold");
    folder.refused(&["manager", "pool.sched", "--set", "r=many"], "no number");
    let plain = folder.attune(&["manager", "plain.sched"]);
    assert_eq!(status(&plain), 1);
    assert!(err(&plain).contains("plain.sched is no master"), "{}", err(&plain));
}
