//! Managers that share one master through a real etcd, which is killed and comes back: no increment
//! is lost or doubled. Skipped, with a word, where there is no etcd; with CI=true that fails.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use attune_cluster::Master;
use attune_cluster::database::Database;
use attune_cluster::manager::{Error, Happening, Manager, Texts};
use attune_cluster_local::connection::Connection;
use attune_cluster_machines::{Access, Etcd};
use attune_language::ir::Value;
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};
use attune_linux::event::Event;
use attune_linux::time;
use attune_replica::messages::Target;
use attune_replica::{Operation, Schema, Time};

const MASTER: &str = "distributed scheduler farm {
    nodefamilies { \"worker.subsched\" : worker; }
    nodes { queue all; }
    global { int jobs = 0; int here = 0; }
    arrival (n) { n => all; here += 1; }
    departure (n) { here -= 1; }
}";

const WORKER: &str = "scheduler worker {
    data { threadref current; queue RQ; }
    event newthread(t) { jobs += 1; t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
    event event_raised(t) { t => RQ; }
}";

fn farm() -> (Checked, Arc<Schema>) {
    let main = SourceText { name: "farm.sched".into(), text: MASTER.into() };
    let files: &[(&str, &str)] = &[("worker.subsched", WORKER)];
    let checked = check(&main, &mut { files }, &Options::default());
    let cluster = checked.cluster.as_ref().expect("a master");
    let schema = Arc::new(Schema::new(cluster, &checked.sources, &Default::default()));
    (checked, schema)
}

/// An etcd on loopback; None where there is none.
struct Server {
    child: Child,
    folder: PathBuf,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Option<Server> {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = format!("http://{}", free.local_addr().expect("an address"));
        drop(free);
        match run(folder, &address) {
            Ok(child) => Some(Server { child, folder: folder.to_owned(), address }),
            Err(why) if std::env::var("CI").is_ok_and(|it| it == "true") => {
                panic!("etcd: {why}: tools/setup.sh test")
            }
            Err(why) => {
                eprintln!("not tested: etcd: {why}: tools/setup.sh test");
                None
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("a process");
        self.child.wait().expect("its end");
    }

    fn again(&mut self) {
        self.child = run(&self.folder, &self.address).expect("it was there before");
    }
}

fn run(folder: &Path, address: &str) -> std::io::Result<Child> {
    Command::new("etcd")
        .arg("--data-dir")
        .arg(folder.join("data"))
        .args(["--listen-client-urls", address, "--advertise-client-urls", address])
        .args(["--listen-peer-urls", "http://127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A manager on a thread of its own.
struct Running {
    stop: Event,
    said: Arc<Mutex<Vec<Happening>>>,
    thread: Option<JoinHandle<()>>,
}

fn manager(path: &Path, address: &str) -> Result<Manager, Error> {
    let (checked, schema) = farm();
    let cluster = checked.cluster.as_ref().expect("a master");
    let texts = Texts { cluster, sources: &checked.sources, seed: 1 };
    Manager::sharing(&texts, schema, path, &mut |own| {
        let access = Access { endpoints: vec![address.to_owned()], ..Access::default() };
        Ok(Box::new(Etcd::join(access, "farm", own)?) as Box<dyn Database>)
    })
}

impl Running {
    fn at(path: &Path, server: &Server) -> Running {
        let stop = Event::new().expect("an event");
        let said = Arc::<Mutex<Vec<Happening>>>::default();
        let (stopped, list) = (stop.share().expect("shared"), said.clone());
        let (path, address) = (path.to_owned(), server.address.clone());
        let thread = std::thread::spawn(move || {
            let mut manager = manager(&path, &address).expect("etcd answers");
            let mut tell = |_: &Master, happening| list.lock().expect("whole").push(happening);
            manager.serve(&stopped, &mut tell).expect("no check fails");
        });
        Running { stop, said, thread: Some(thread) }
    }

    fn has_said(&self, wanted: impl Fn(&Happening) -> bool) -> bool {
        self.said.lock().expect("whole").iter().any(wanted)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

fn now() -> Time {
    time::now() as Time
}

fn shared(node: &Connection, name: &str) -> i64 {
    let replica = node.replica();
    match replica.shared(replica.schema().shared(name).expect("declared")) {
        Value::Int(value) => value,
        Value::Float(_) => panic!("an int"),
    }
}

fn add(node: &mut Connection, number: i64) {
    let variable = node.replica().schema().shared("jobs").expect("declared");
    node.replica_mut().write(Target::Shared(variable), Operation::Add(Value::Int(number)));
}

#[track_caller]
fn until(nodes: &mut [Connection], what: &str, holds: impl Fn(&[Connection]) -> bool) {
    for _ in 0..60_000 {
        nodes.iter_mut().for_each(|node| drop(node.exchange(now())));
        if holds(nodes) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let read: Vec<_> = nodes.iter().map(|it| (shared(it, "jobs"), shared(it, "here"))).collect();
    panic!("{what}: after a minute it does not hold: {read:?}");
}

#[test]
fn increments_count_once_though_etcd_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut server) = Server::start(folder.path()) else { return };
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let here = Running::at(&a, &server);
    let there = Running::at(&b, &server);
    let node = |path: &Path| Connection::new(farm().1, 0, path.to_owned());
    let mut nodes = vec![node(&a), node(&b), node(&b)];
    for _ in 0..200 {
        for node in &mut nodes {
            add(node, 1);
            node.exchange(now());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    until(&mut nodes, "whole", |nodes| {
        nodes.iter().all(|it| shared(it, "jobs") == 600 && shared(it, "here") == 3)
    });

    server.kill();
    nodes.iter_mut().for_each(|node| add(node, 10));
    until(&mut nodes, "killed", |_| {
        [&here, &there].iter().all(|it| it.has_said(|it| matches!(it, Happening::NotKept(_))))
    });
    assert!(nodes.iter().all(|node| shared(node, "jobs") == 610), "each sees what it wrote");
    server.again();
    until(&mut nodes, "again", |nodes| {
        nodes.iter().all(|it| shared(it, "jobs") == 630 && shared(it, "here") == 3)
    });

    // One ends, and its nodes with it; then the last one takes the store along.
    drop(there);
    until(&mut nodes, "one ended", |nodes| shared(&nodes[0], "here") == 1);
    drop(here);
    let _anew = Running::at(&a, &server);
    until(&mut nodes, "anew", |nodes| shared(&nodes[0], "jobs") == 0);
}

#[test]
fn an_etcd_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let failed = manager(&folder.path().join("a"), &address).map(drop).expect_err("nobody");
    assert!(matches!(failed, Error::Database(_)), "{failed}");
}
