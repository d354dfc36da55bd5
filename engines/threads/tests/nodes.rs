//! Real programs as nodes of a cluster: what their handlers write reaches the others, the kernel
//! tells their end, a manager that is away stops nobody, commands reach their threads.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use attune_cluster::manager::{Manager, Texts};
use attune_cluster_local::connection::Connection;
use attune_cluster_local::packets;
use attune_language::engine::Engine;
use attune_language::ir::NodeProperty;
use attune_language::ir::Value;
use attune_language::{Checked, Options, check};
use attune_linux::event::Event;
use attune_linux::time;
use attune_replica::Schema;
use attune_replica::Time;
use attune_replica::schema::Model;

use common::{directory, program, run};

const MASTER: &str = r#"distributed scheduler farm {
    nodefamilies {
        "worker.subsched" : worker EXPECTS;
        "holder.subsched" : holder;
        "boss.subsched" : boss;
    }
    nodes { node front; queue workers, bosses; }
    global {
        int jobs = 0; int gone = 0; int ran = 0;
        int tickets = 0, left = 0, right = 0, halves = 0; float share = 0.5;
    }
    arrival (n) {
        if (n is boss) {
            n => bosses;
            foreach m in front if (m is holder) suspend m.pool;
        } else if (|front| == 0) {
            n => front;
        } else {
            n => workers;
        }
    }
    departure (n) {
        gone += 1;
        if (n is boss)
            foreach m in front if (m is holder) resume m.pool;
    }
}"#;

const WORKER: &str = "scheduler worker extends fifo {
    data { int made; }
    before newthread { jobs += 1; made += 1; halves += 2.5; }
    before schedule { ran += 1; }
}";

/// All threads but the first wait in `pool` until they are suspended and resumed.
const HOLDER: &str = "scheduler holder extends fifo {
    data { int made; queue pool; }
    event newthread(t) {
        made += 1;
        if (made > 1 && |front.pool| + |front.SQ| == 0) t => pool;
        else t => ready;
    }
}";

const BOSS: &str = "scheduler boss extends fifo { }";

struct Farm {
    folder: tempfile::TempDir,
    checked: Checked,
    schema: Arc<Schema>,
    program: PathBuf,
}

impl Farm {
    fn new(expects: &str) -> Farm {
        let folder = directory();
        let master = MASTER.replace("EXPECTS", expects);
        for (name, text) in [
            ("farm.sched", master.as_str()),
            ("worker.subsched", WORKER),
            ("holder.subsched", HOLDER),
            ("boss.subsched", BOSS),
        ] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let mut opened =
            attune_schedulers::open(&folder.path().join("farm.sched"), &[]).expect("the file");
        let checked = check(&opened.source, &mut opened.loader, &Options::default());
        assert!(!checked.has_errors(), "{:#?}", checked.diagnostics);
        let cluster = checked.cluster.as_ref().expect("a master");
        let models = [("tickets".into(), Model::Request)].into_iter().collect();
        let schema = Arc::new(Schema::new(cluster, &checked.sources, &models));
        let program = common::program(folder.path(), "node");
        Farm { folder, checked, schema, program }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn manager(&self) -> Running {
        let cluster = self.checked.cluster.as_ref().expect("a master");
        let texts = Texts { cluster, sources: &self.checked.sources, seed: 1 };
        let mut manager =
            Manager::new(&texts, self.schema.clone(), &self.path()).expect("nobody else listens");
        let stop = Event::new().expect("an event");
        let stopped = stop.share().expect("shared");
        let thread = std::thread::spawn(move || {
            manager.serve(&stopped, &mut |_, _| {}).expect("no check fails");
        });
        Running { stop, thread: Some(thread) }
    }

    /// The compiled scheduler of a family's nodes.
    fn compiled(&self, family: &str) -> PathBuf {
        let number = self.schema.family_number(family).expect("a family");
        let family = &self.checked.cluster.as_ref().expect("a master").families[number];
        let description = packets::describe(&self.schema, number);
        let told = attune_backend_c::Node { cluster: "farm".into(), description };
        let verdicts = &family.engines[Engine::Threads as usize].verdicts;
        let (program, sources, options) =
            (&family.program, &self.checked.sources, Default::default());
        let c = attune_backend_c::generate_node(program, verdicts, sources, &options, &told);
        let out = self.folder.path().join(format!("{}.so", family.name));
        attune_backend_c::compile(&c.expect("C"), &out, false).expect("it compiles");
        out
    }

    /// A program that is told what to do.
    fn node(&self, scheduler: &Path) -> Node {
        let mut command = Command::new(&self.program);
        command.env("ATTUNE_SCHED", scheduler).env("ATTUNE_CLUSTER", self.path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Node { child, input, output }
    }

    /// A node of that family without threads, that looks.
    fn observer(&self, family: &str) -> Connection {
        let number = self.schema.family_number(family).expect("a family");
        Connection::new(self.schema.clone(), number, self.path())
    }
}

struct Running {
    stop: Event,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

struct Node {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Node {
    fn hears(&mut self, wanted: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        assert_eq!(line.trim(), wanted);
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.input, "{what}").expect("it reads");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn until(node: &mut Connection, mut holds: impl FnMut(&Connection) -> bool) {
    for _ in 0..60_000 {
        node.exchange(time::now() as Time);
        if holds(node) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("after a minute it does not hold");
}

fn shared(node: &Connection, name: &str) -> i64 {
    let replica = node.replica();
    match replica.shared(replica.schema().shared(name).expect("declared")) {
        Value::Int(value) => value,
        Value::Float(_) => panic!("no float is declared"),
    }
}

#[test]
fn nodes_are_programs_that_start_together_share_and_may_be_killed() {
    let farm = Farm::new("expects 2");
    let worker = farm.compiled("worker");
    let manager = farm.manager();
    let mut boss = farm.observer("boss");
    let mut first = farm.node(&worker);
    until(&mut boss, |it| shared(it, "jobs") == 1);
    // It waits for the second one: no `schedule` has run.
    assert_eq!(shared(&boss, "ran"), 0);
    let mut second = farm.node(&worker);
    first.hears("ready");
    second.hears("ready");
    first.tell("make 20");
    second.tell("make 30");
    first.hears("done");
    second.hears("done");
    // Two main programs, and each thread once.
    until(&mut boss, |it| shared(it, "jobs") == 52);
    until(&mut boss, |it| shared(it, "ran") > 50);
    // Each thread adds two and a half; what arrives together is cut off once.
    let halves = shared(&boss, "halves");
    assert!((2 * 52..=130).contains(&halves), "{halves}");
    first.child.kill().expect("it runs");
    until(&mut boss, |it| shared(it, "gone") == 1);
    // The manager ends; the program that is left goes on, and says so to the next one.
    drop(manager);
    until(&mut boss, |it| it.descriptor().is_none());
    second.tell("make 7");
    second.hears("done");
    let _manager = farm.manager();
    until(&mut boss, |it| shared(it, "jobs") == 7);
    second.tell("make 1");
    second.hears("done");
    until(&mut boss, |it| shared(it, "jobs") == 8);
}

#[test]
fn the_master_suspends_and_resumes_threads_of_a_node() {
    let farm = Farm::new("");
    let holder = farm.compiled("holder");
    let _manager = farm.manager();
    let mut held = farm.node(&holder);
    held.hears("ready");
    held.tell("make 1");
    let mut observer = farm.observer("worker");
    let size = |name: &str| {
        let size = NodeProperty::Size(name.into());
        farm.schema.property(&size).expect("seen by nodes")
    };
    let (pool, suspended) = (size("pool"), size("SQ"));
    let seen = |it: &Connection, property| it.replica().property_in(0, property);
    until(&mut observer, |it| seen(it, pool).is(Value::Int(1)));
    let mut boss = farm.observer("boss");
    until(&mut boss, |it| it.replica().node().is_some());
    until(&mut observer, |it| seen(it, suspended).is(Value::Int(1)));
    assert!(seen(&observer, pool).is(Value::Int(0)));
    // It ends only now.
    drop(boss);
    held.hears("done");
    until(&mut observer, |it| seen(it, suspended).is(Value::Int(0)));
}

#[test]
fn a_manager_that_hangs_or_is_not_there_stops_no_thread() {
    let farm = Farm::new("");
    let worker = farm.compiled("worker");
    let mut alone = farm.node(&worker);
    alone.hears("ready");
    alone.tell("make 20");
    alone.hears("done");
    // The socket is there, and nothing answers.
    let _deaf = attune_linux::socket::Listener::at(&farm.path()).expect("nobody else listens");
    let mut waiting = farm.node(&worker);
    waiting.hears("ready");
    for node in [&mut alone, &mut waiting] {
        node.tell("make 20");
        node.hears("done");
    }
}

/// The program looks itself whether all is as it should be, and says where it is not.
fn does(farm: &Farm, what: &str, cluster: Option<&Path>) {
    let program = common::program(farm.folder.path(), "shared");
    let mut command = Command::new(&program);
    command.arg(what).env("ATTUNE_SCHED", farm.compiled("worker")).env_remove("ATTUNE_CLUSTER");
    // The program joins by its options.
    command.args(cluster);
    let ended = run(&mut command);
    assert_eq!(ended.status, Some(0), "{what}: {}{}", ended.stdout, ended.stderr);
}

#[test]
fn programs_use_shared_variables_by_their_models() {
    let farm = Farm::new("");
    let path = farm.path();
    does(&farm, "alone", None);
    does(&farm, "early", Some(&path));
    let _manager = farm.manager();
    does(&farm, "all", Some(&path));
    let mut boss = farm.observer("boss");
    until(&mut boss, |it| shared(it, "tickets") == 100);
    // What the first program wrote and flushed stays.
    assert_eq!((shared(&boss, "left"), shared(&boss, "right")), (1001, 1001));
}

#[test]
fn what_cannot_be_a_node_says_so() {
    let folder = directory();
    let node = program(folder.path(), "node");
    let ended = run(Command::new(&node).env_remove("ATTUNE_SCHED").env("ATTUNE_CLUSTER", "farm"));
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.contains("attune build MASTER.sched --node FAMILY"), "{}", ended.stderr);
}
