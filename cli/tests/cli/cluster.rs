//! `attune manager`, `attune build --node`, and the example programs whose processes are nodes.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use attune_cluster_local::connection::Connection;
use attune_language::ir::Value::Int;
use attune_language::{Options, check};
use attune_linux::signal::{KILL, Signal};
use attune_linux::time::SECOND;
use attune_linux::{process, procfs, time};
use attune_replica::messages::Target;
use attune_replica::{Operation, Schema, Time};
use serde_json::Value;

use crate::support::{ATTUNE, Folder, err, status};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");

/// A manager that was started, with the lines that it says.
pub struct Manager {
    pub child: Child,
    lines: BufReader<ChildStdout>,
}

impl Manager {
    /// Waits until it listens.
    fn start(folder: &Folder) -> (Manager, Value) {
        Manager::of(folder, "pool.sched", &[])
    }

    /// With other first values of shared variables.
    pub fn of(folder: &Folder, master: &str, settings: &[&str]) -> (Manager, Value) {
        let mut command = folder.command(&["manager", master, "--name", "./socket", "--json"]);
        settings.iter().for_each(|setting| {
            command.args(["--set", setting]);
        });
        Manager::started(&mut command)
    }

    /// By that command.
    pub fn started(command: &mut Command) -> (Manager, Value) {
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
    pub fn until(&mut self, event: &str, count: usize) -> Value {
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

/// A folder with the schedulers of an example.
pub fn example(test: &str, example: &str) -> Folder {
    let texts = Path::new(EXAMPLES).join(example);
    let mut folder = Folder::new(test);
    for entry in std::fs::read_dir(texts).expect("the example") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|it| it == "sched" || it == "subsched") {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            folder = folder.with(&name, std::fs::read(&path).expect("readable"));
        }
    }
    folder
}

fn folder(name: &str) -> Folder {
    example(name, "pool")
}

/// Compiles a node scheduler.
fn build(folder: &Folder, master: &str, family: &str) {
    let out = format!("{family}.so");
    let built = folder.attune(&["build", master, "--node", family, "-o", &out]);
    assert_eq!(status(&built), 0, "{}", err(&built));
}

/// An example's program, linked with the library beside this test's programs.
pub fn program(folder: &Folder, example: &str) -> PathBuf {
    let library = Path::new(ATTUNE).parent().expect("in a folder").to_owned();
    let here = format!("LIBRARY_DIR={}", library.display());
    let out = format!("OUT={}", folder.0.display());
    let example_folder = format!("{EXAMPLES}/{example}");
    let made = Command::new("make").args(["-s", "-C", &example_folder, &here, &out]).output();
    let made = made.expect("make runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder.0.join(example)
}

/// Runs an example's program to its end; in the cluster if that is said.
fn said_by(program: &Path, folder: &Folder, words: &[&str], cluster: bool) -> Value {
    let mut command = Command::new("timeout");
    command.arg("300").arg(program).args(words).current_dir(&folder.0);
    if cluster {
        command.env("ATTUNE_CLUSTER", "./socket");
    }
    let output = command.output().expect("it runs");
    assert_eq!(status(&output), 0, "{words:?}: {}", err(&output));
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
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
    let pool = program(&folder, "pool");
    build(&folder, "pool.sched", "process");
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

/// A node of a master's first family in this process, which has no threads.
pub fn own_node(folder: &Folder, master: &str) -> Connection {
    let path = folder.0.join(master);
    let mut opened = attune_schedulers::open(&path, &[]).expect("the file");
    let checked = check(&opened.source, &mut opened.loader, &Options::default());
    let cluster = checked.cluster.as_ref().expect("a master");
    let schema = Arc::new(Schema::new(cluster, &checked.sources, &Default::default()));
    Connection::new(schema, 0, folder.0.join("socket"))
}

/// Adds to the shared `r`, and lets the node talk until the manager has counted it.
fn add(node: &mut Connection, requests: i64) {
    let r = node.replica().schema().shared("r").expect("declared");
    node.replica_mut().write(Target::Shared(r), Operation::Add(Int(requests)));
    for _ in 0..120_000 {
        node.exchange(time::now() as Time);
        if node.replica().is_settled() {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    panic!("after a minute the manager has not counted it");
}

fn kill(process: u32) {
    process::signal(process, KILL).expect("it lives");
}

/// Six processes work, and one of them is killed while no manager lives.
#[test]
fn a_manager_that_is_killed_is_followed_by_one_that_goes_on() {
    let folder = folder("cluster-killed");
    let pool = program(&folder, "pool");
    build(&folder, "pool.sched", "process");
    let (mut manager, listening) = Manager::start(&folder);
    assert_eq!(listening["awaited"], 0);
    let mut load = Command::new(&pool)
        .args(["--requests", "1000000", "--interval", "0.005", "--shortest", "0.001"])
        .args(["--longest", "0.02"])
        .current_dir(&folder.0)
        .env("ATTUNE_SCHED", "./process.so")
        .env("ATTUNE_CLUSTER", "./socket")
        .spawn()
        .expect("it starts");
    let process = |said: &Value| said["process"].as_u64().expect("a number") as u32;
    let victim = process(&manager.until("arrived", 1));
    manager.until("arrived", 5);
    let mut own = own_node(&folder, "pool.sched");
    add(&mut own, 1000);
    let number = own.replica().node();

    manager.child.kill().expect("it runs");
    manager.child.wait().expect("it ended");
    kill(victim);
    while procfs::start_time(victim).is_some() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (mut manager, listening) = Manager::start(&folder);
    assert_eq!(listening["awaited"], 6, "{listening}");
    assert_eq!(process(&manager.until("departed", 1)), victim);
    add(&mut own, 500);
    assert_eq!(own.replica().node(), number, "it never was away");
    manager.until("returned", 6);

    // The processes end, and take the requests along that each of them has.
    load.kill().expect("it runs");
    load.wait().expect("it ended");
    let last = manager.until("departed", 5);
    assert_eq!(last["shared"]["n"], 1, "{last}");
    assert_eq!(last["shared"]["r"], 1500, "{last}");

    // With the last node the cluster is over: a manager that comes after it begins anew.
    drop(own);
    manager.until("departed", 1);
    drop(manager);
    let (_manager, listening) = Manager::start(&folder);
    assert_eq!(listening["awaited"], 0);
}

/// As one whose machine swaps: it lives, holds its sockets, and says nothing.
#[test]
fn a_manager_that_hangs_delays_no_node_and_counts_all_once_it_goes_on() {
    let folder = folder("cluster-hangs");
    let (mut manager, _) = Manager::start(&folder);
    let mut own = own_node(&folder, "pool.sched");
    add(&mut own, 1000);
    let number = own.replica().node();
    process::signal(manager.child.id(), Signal::STOP).expect("it runs");
    let r = own.replica().schema().shared("r").expect("declared");
    // More writes than its socket takes packets; each call returns although nobody reads.
    for _ in 0..20_000 {
        own.replica_mut().write(Target::Shared(r), Operation::Add(Int(1)));
        own.exchange(time::now() as Time);
    }
    let since = time::now();
    while time::now() < since + SECOND {
        own.exchange(time::now() as Time);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(own.replica().shared(r), Int(21_000), "a node sees its own writes");
    assert!(!own.replica().is_settled());
    assert!(own.replica().age(time::now() as Time) >= SECOND as Time, "and that it hears nothing");
    process::signal(manager.child.id(), Signal::CONT).expect("it stands");
    add(&mut own, 5);
    assert_eq!(own.replica().node(), number, "it never was away");
    drop(own);
    let last = manager.until("departed", 1);
    assert_eq!(last["shared"]["r"], 21_005, "{last}");
}

const CAMERAS: [&str; 4] = ["--camera", "./camera.so", "--server", "./server.so"];

/// The script waits for each of its steps, so the counts depend on no time.
#[test]
fn cameras_lose_no_picture_under_the_policy_and_some_without() {
    let folder = example("cluster-cameras", "cameras");
    let cameras = program(&folder, "cameras");
    build(&folder, "cameras.sched", "camera");
    build(&folder, "cameras.sched", "server");
    let run = |seed: &str, cluster: bool| {
        let mut words = vec!["--seed", seed];
        words.extend(CAMERAS.iter().filter(|_| cluster));
        let said = said_by(&cameras, &folder, &words, cluster);
        let count = |name: &str| said[name].as_u64().expect("a number");
        assert_eq!(count("kept") + count("lost"), 180, "{said}");
        assert_eq!(count("served"), count("visitors"), "{said}");
        (count("lost"), count("delayed"))
    };
    let seeds = ["1", "2", "3"];
    for seed in seeds {
        assert!(run(seed, false).0 > 0, "seed {seed}");
    }
    let (manager, _) = Manager::of(&folder, "cameras.sched", &[]);
    for seed in seeds {
        assert_eq!(run(seed, true).0, 0, "seed {seed}");
    }
    drop(manager);
    // Cameras that wait, alone: the server serves visitors as they come.
    let (manager, _) = Manager::of(&folder, "cameras.sched", &["limit=1000"]);
    for seed in seeds {
        let (lost, delayed) = run(seed, true);
        assert!(lost == 0 && delayed > 0, "seed {seed}: {lost} {delayed}");
    }
    drop(manager);
    // Neither: a cluster whose policy does nothing.
    let (manager, _) = Manager::of(&folder, "cameras.sched", &["limit=1000", "places=1000"]);
    for seed in seeds {
        assert!(run(seed, true).0 > 0, "seed {seed}");
    }
    drop(manager);
}

#[test]
fn the_web_server_and_its_database_answer_every_request() {
    let folder = example("cluster-webapp", "webapp");
    let webapp = program(&folder, "webapp");
    build(&folder, "webapp.sched", "web");
    build(&folder, "webapp.sched", "database");
    let (mut manager, _) = Manager::of(&folder, "webapp.sched", &[]);
    let servers = ["--web", "./web.so", "--database", "./database.so"];
    let light = ["--requests", "400", "--work", "10", "--disk", "0.001"];
    let inside = said_by(&webapp, &folder, &[&servers[..], &light].concat(), true);
    let alone = said_by(&webapp, &folder, &light, false);
    assert_eq!((inside["answered"].clone(), alone["answered"].clone()), (400.into(), 400.into()));
    // The same requests, of both kinds.
    assert_eq!(inside["dynamic"], alone["dynamic"]);
    assert!(inside["dynamic"].as_u64().is_some_and(|count| count > 40), "{inside}");
    // Both were nodes: no thread of them runs before the other has come.
    let last = manager.until("departed", 2);
    assert_eq!((last["nodes"].clone(), last["shared"]["dbload"].clone()), (0.into(), 0.into()));
}

/// Runs the first commands of a page in a folder that looks like the project's.
fn page(test: &str, page: &str, example: &str) -> String {
    let lines = page.lines().skip_while(|line| !line.starts_with("    "));
    let commands = lines.map_while(|line| line.strip_prefix("    "));
    // What it makes is here.
    let commands: Vec<&str> = commands.filter(|line| !line.starts_with("make build")).collect();
    assert!(commands.len() >= 3, "the commands were not found");

    let folder = Folder::new(test);
    let release = folder.0.join("target/release");
    std::fs::create_dir_all(&release).expect("writable");
    std::fs::rename(program(&folder, example), release.join(example)).expect("writable");
    symlink(ATTUNE, folder.0.join("attune")).expect("writable");
    symlink(EXAMPLES, folder.0.join("examples")).expect("writable");
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
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The lines of JSON, between those that the manager says.
fn results(said: &str) -> Vec<Value> {
    said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
}

#[test]
fn the_commands_of_the_pages_run_as_they_stand() {
    let distributed = include_str!("../../../docs/distributed.md");
    let (_, section) = distributed.split_once("## On one machine").expect("a heading");
    let said = results(&page("cluster-page", section, "pool"));
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["answered"], 200, "{said:?}");

    let cameras = include_str!("../../../examples/cameras/README.md");
    let said = results(&page("cameras-page", cameras, "cameras"));
    assert_eq!(said.len(), 2);
    assert_eq!(said[0]["lost"], 0, "{said:?}");
    assert_ne!(said[1]["lost"], 0, "{said:?}");

    let webapp = include_str!("../../../examples/webapp/README.md");
    let said = results(&page("webapp-page", webapp, "webapp"));
    assert_eq!(said.len(), 2);
    assert!(said.iter().all(|run| run["answered"] == 300), "{said:?}");
}

#[test]
fn a_node_of_another_version_is_told_both() {
    let folder = folder("cluster-version");
    let pool = program(&folder, "pool");
    build(&folder, "pool.sched", "process");
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
    let to_build =
        |words: &[&'static str]| [&["build", "pool.sched", "-o", "x.so"], words].concat();
    folder.refused(&to_build(&[]), "--node FAMILY takes");
    folder.refused(&to_build(&["--node", "proces"]), "no family proces: it has process");
    folder.refused(
        &to_build(&["--node", "process", "--engine", "simulator"]),
        "runs a whole cluster",
    );
    let kernel =
        ["build", "pool.sched", "-o", "x.bpf.c", "--engine", "kernel", "--node", "process"];
    assert_eq!(status(&folder.attune(&kernel)), 0);
    folder.refused(&[&kernel[..], &["--request", "r"]].concat(), "--request is for the programs");
    folder.refused(&["manager", "pool.sched", "--set", "thresh=1"], "there are r, n, threshold");
    folder.refused(&["manager", "pool.sched", "--set", "r=many"], "no number");
    let plain = folder.attune(&["manager", "plain.sched"]);
    assert_eq!(status(&plain), 1);
    assert!(err(&plain).contains("plain.sched is no master"), "{}", err(&plain));
}
