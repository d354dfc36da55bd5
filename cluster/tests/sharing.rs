//! Managers that share one master through a database in memory, which answers late, loses outcomes
//! and goes away: no increment is lost or doubled, and nodes go on meanwhile.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use attune_cluster::Master;
use attune_cluster::database::{Database, ManagerId, State, Told};
use attune_cluster::manager::{Error, Happening, Manager};
use attune_cluster_local::connection::Connection;
use attune_language::ir::Value;
use attune_linux::event::Event;
use attune_linux::time;
use attune_replica::messages::Target;
use attune_replica::{Operation, Time};
use support::{Fixture, fixture};

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

fn farm() -> Fixture {
    fixture(&[("farm.sched", MASTER), ("worker.subsched", WORKER)], &[])
}

/// What all handles see.
#[derive(Default)]
struct Inside {
    state: State,
    managers: BTreeSet<ManagerId>,
    handles: BTreeMap<ManagerId, Handle>,
    random: Option<fastrand::Rng>,
    lost_outcomes: u64,
}

struct Handle {
    told: Vec<Told>,
    wakes: Event,
    is_away: bool,
}

impl Inside {
    fn tell(&mut self, manager: ManagerId, told: Told) {
        let handle = self.handles.get_mut(&manager).expect("joined");
        if !handle.is_away {
            handle.told.push(told);
            handle.wakes.set();
        }
    }

    fn present(&self) -> State {
        State { managers: self.managers.iter().copied().collect(), ..self.state.clone() }
    }

    fn show(&mut self, manager: ManagerId) {
        let present = self.present();
        self.tell(manager, Told::Found(present));
    }

    fn tell_all_but(&mut self, manager: ManagerId) {
        let others: Vec<_> = self.handles.keys().copied().filter(|it| *it != manager).collect();
        for other in others {
            self.show(other);
        }
    }

    fn put(&mut self, manager: ManagerId, number: u64, seen: u64, bytes: Vec<u8>) {
        if self.handles[&manager].is_away {
            return;
        }
        if seen != self.state.revision {
            return self.show(manager);
        }
        let mut chance = |one_in: u32| self.random.as_mut().is_some_and(|it| it.u32(..one_in) == 0);
        let (is_lost, is_heard) = (chance(10), !chance(10));
        if !is_lost {
            self.state = State { revision: seen + 1, bytes, managers: Vec::new() };
            self.tell_all_but(manager);
        }
        if is_lost || !is_heard {
            // The manager cannot know which of the two it was.
            self.lost_outcomes += 1;
            self.tell(manager, Told::Away("no answer".to_owned()));
            self.show(manager);
        } else {
            self.tell(manager, Told::Put { number, revision: seen + 1 });
        }
    }
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Inside>>);

impl Memory {
    fn with_losses(seed: u64) -> Memory {
        let memory = Memory::default();
        memory.inside().random = Some(fastrand::Rng::with_seed(seed));
        memory
    }

    fn inside(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.0.lock().expect("whole")
    }

    fn join(&self, manager: ManagerId) -> Member {
        let wakes = Event::new().expect("an event");
        let shared = wakes.share().expect("shared");
        let mut inside = self.inside();
        let handle = Handle { told: Vec::new(), wakes: shared, is_away: false };
        inside.handles.insert(manager, handle);
        inside.managers.insert(manager);
        inside.show(manager);
        inside.tell_all_but(manager);
        Member { memory: self.clone(), manager, wakes }
    }

    /// No manager's link is cut but this one's.
    fn cut(&self, manager: ManagerId) {
        let mut inside = self.inside();
        inside.tell(manager, Told::Away("cut".to_owned()));
        inside.handles.get_mut(&manager).expect("joined").is_away = true;
    }

    /// Nothing was heard of it for long.
    fn expire(&self, manager: ManagerId) {
        let mut inside = self.inside();
        inside.managers.remove(&manager);
        inside.tell_all_but(manager);
    }

    fn mend(&self, manager: ManagerId) {
        let mut inside = self.inside();
        inside.handles.get_mut(&manager).expect("joined").is_away = false;
        inside.managers.insert(manager);
        inside.show(manager);
        inside.tell_all_but(manager);
    }
}

struct Member {
    memory: Memory,
    manager: ManagerId,
    wakes: Event,
}

impl Database for Member {
    fn wakes(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    fn take(&mut self) -> Vec<Told> {
        self.wakes.clear();
        let mut inside = self.memory.inside();
        std::mem::take(&mut inside.handles.get_mut(&self.manager).expect("joined").told)
    }

    fn put(&mut self, number: u64, seen: u64, bytes: Vec<u8>) {
        self.memory.inside().put(self.manager, number, seen, bytes);
    }

    fn leave(&mut self, seen: u64) {
        let mut inside = self.memory.inside();
        inside.managers.remove(&self.manager);
        if inside.managers.is_empty() && inside.state.revision == seen {
            inside.state = State { revision: 0, ..State::default() };
        }
        inside.tell_all_but(self.manager);
    }
}

/// A manager on a thread of its own.
struct Running {
    stop: Event,
    said: Arc<Mutex<Vec<Happening>>>,
    thread: Option<JoinHandle<()>>,
    number: ManagerId,
}

impl Running {
    fn at(path: &Path, memory: &Memory) -> Running {
        let stop = Event::new().expect("an event");
        let said = Arc::<Mutex<Vec<Happening>>>::default();
        let (stopped, list) = (stop.share().expect("shared"), said.clone());
        let (path, memory) = (path.to_owned(), memory.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let farm = farm();
            let mut number = 0;
            let mut join = |own| -> std::io::Result<Box<dyn Database>> {
                number = own;
                Ok(Box::new(memory.join(own)))
            };
            let manager = Manager::sharing(&farm.texts(), farm.schema.clone(), &path, &mut join);
            let mut manager = manager.expect("it starts");
            ready.send(number).expect("waited for");
            let mut tell = |_: &Master, happening| list.lock().expect("whole").push(happening);
            manager.serve(&stopped, &mut tell).expect("no check fails");
        });
        let number = is_ready.recv().expect("it starts");
        Running { stop, said, thread: Some(thread), number }
    }

    fn said(&self, wanted: impl Fn(&Happening) -> bool) -> usize {
        self.said.lock().expect("whole").iter().filter(|it| wanted(it)).count()
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

fn node(path: &Path) -> Connection {
    Connection::new(farm().schema, 0, path.to_owned())
}

fn now() -> Time {
    time::now() as Time
}

#[track_caller]
fn until(nodes: &mut [Connection], mut holds: impl FnMut(&mut [Connection]) -> bool) {
    for _ in 0..120_000 {
        for node in nodes.iter_mut() {
            node.exchange(now());
        }
        if holds(nodes) {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let shared: Vec<_> = nodes.iter().map(|it| (shared(it, "jobs"), shared(it, "here"))).collect();
    panic!("after a minute it does not hold: {shared:?}");
}

fn shared(node: &Connection, name: &str) -> i64 {
    let replica = node.replica();
    match replica.shared(replica.schema().shared(name).expect("declared")) {
        Value::Int(value) => value,
        Value::Float(_) => panic!("an int"),
    }
}

fn add(node: &mut Connection, name: &str, number: i64) {
    let variable = node.replica().schema().shared(name).expect("declared");
    node.replica_mut().write(Target::Shared(variable), Operation::Add(Value::Int(number)));
}

/// Three machines that all write at once, one put of five with an outcome that is not heard: half
/// of those took effect.
#[test]
fn no_increment_is_lost_or_doubled_whatever_becomes_of_a_put() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = Memory::with_losses(7);
    let paths: Vec<_> = (0..3).map(|it| folder.path().join(format!("farm{it}"))).collect();
    let managers: Vec<_> = paths.iter().map(|path| Running::at(path, &memory)).collect();
    let mut nodes: Vec<_> = paths.iter().chain(&paths).map(|path| node(path)).collect();
    for round in 0..2000 {
        for node in &mut nodes {
            add(node, "jobs", 1);
            if round % 5 == 0 {
                node.exchange(now());
            }
        }
        if round % 50 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    until(&mut nodes, |nodes| nodes.iter().all(|it| shared(it, "jobs") == 12_000));
    assert!(nodes.iter().all(|node| shared(node, "here") == 6));
    drop(nodes.split_off(4));
    until(&mut nodes, |nodes| nodes.iter().all(|it| shared(it, "here") == 4));
    assert!(nodes.iter().all(|node| shared(node, "jobs") == 12_000));
    let arrived: usize =
        managers.iter().map(|it| it.said(|it| matches!(it, Happening::Arrived { .. }))).sum();
    assert_eq!(arrived, 6, "each node arrives once");
    assert!(memory.inside().lost_outcomes > 0);
    drop(managers);
    assert_eq!(memory.inside().state.revision, 0, "the last manager takes the state along");
}

/// A machine is cut off for so long that the others give it up.
#[test]
fn a_machine_that_comes_back_has_its_writes_counted_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = Memory::default();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let here = Running::at(&a, &memory);
    let there = Running::at(&b, &memory);
    let mut nodes = vec![node(&a), node(&b)];
    add(&mut nodes[1], "jobs", 5);
    until(&mut nodes, |nodes| {
        nodes.iter().all(|it| shared(it, "here") == 2 && shared(it, "jobs") == 5)
    });

    memory.cut(there.number);
    let before = nodes[1].replica().age(now());
    add(&mut nodes[1], "jobs", 10);
    nodes[1].exchange(now());
    assert_eq!(shared(&nodes[1], "jobs"), 15, "it goes on, and sees what it wrote");
    add(&mut nodes[0], "jobs", 100);
    memory.expire(there.number);
    until(&mut nodes, |nodes| shared(&nodes[0], "here") == 1 && shared(&nodes[0], "jobs") == 105);
    assert_eq!((shared(&nodes[1], "here"), shared(&nodes[1], "jobs")), (2, 15), "what it knew");
    std::thread::sleep(Duration::from_millis(400));
    nodes[1].exchange(now());
    assert!(nodes[1].replica().age(now()) > before + 400_000_000, "and how old that is");
    assert_eq!(here.said(|it| matches!(it, Happening::Departed { .. })), 1);

    memory.mend(there.number);
    until(&mut nodes, |nodes| {
        nodes.iter().all(|it| shared(it, "here") == 2 && shared(it, "jobs") == 115)
    });
    assert_eq!(there.said(|it| matches!(it, Happening::KeptAgain)), 1);
}

/// One manager ends while others go on: its nodes keep what they know and come to the next one.
#[test]
fn a_manager_that_ends_leaves_the_others_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = Memory::default();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let _here = Running::at(&a, &memory);
    let there = Running::at(&b, &memory);
    let mut nodes = vec![node(&a), node(&b)];
    add(&mut nodes[1], "jobs", 5);
    until(&mut nodes, |nodes| nodes.iter().all(|it| shared(it, "jobs") == 5));
    drop(there);
    add(&mut nodes[1], "jobs", 1);
    until(&mut nodes, |nodes| shared(&nodes[0], "here") == 1);
    assert_eq!(shared(&nodes[0], "jobs"), 5);
    let _again = Running::at(&b, &memory);
    until(&mut nodes, |nodes| {
        nodes.iter().all(|it| shared(it, "here") == 2 && shared(it, "jobs") == 6)
    });
}

/// The database has lost what it said that it would keep: a manager puts back what it has.
#[test]
fn a_state_that_has_vanished_is_put_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = Memory::default();
    let a = folder.path().join("a");
    let manager = Running::at(&a, &memory);
    let mut nodes = vec![node(&a)];
    add(&mut nodes[0], "jobs", 5);
    until(&mut nodes, |nodes| nodes[0].replica().is_settled());
    memory.cut(manager.number);
    memory.inside().state = State::default();
    memory.mend(manager.number);
    add(&mut nodes[0], "jobs", 1);
    until(&mut nodes, |nodes| nodes[0].replica().is_settled());
    let b = folder.path().join("b");
    let _other = Running::at(&b, &memory);
    nodes.push(node(&b));
    until(&mut nodes, |nodes| nodes.iter().all(|it| shared(it, "jobs") == 6));
}

#[test]
fn managers_of_another_version_are_refused_with_both_identities() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = Memory::default();
    let a = folder.path().join("a");
    let _first = Running::at(&a, &memory);
    // Once the first has put its state, there is something to differ from.
    until(&mut [node(&a)], |nodes| nodes[0].replica().is_settled());
    let start = |worker: &str, first: i64| {
        let mut other = fixture(&[("farm.sched", MASTER), ("worker.subsched", worker)], &[]);
        let schema = Arc::make_mut(&mut other.schema);
        schema.shared[0].initial = Value::Int(first);
        let path = folder.path().join("b");
        let mut join =
            |own| -> std::io::Result<Box<dyn Database>> { Ok(Box::new(memory.join(own))) };
        let identity = other.schema.identity.clone();
        let started = Manager::sharing(&other.texts(), other.schema.clone(), &path, &mut join);
        (started.map(drop).expect_err("refused"), identity)
    };
    let ours = farm().schema.identity.clone();
    let (error, other) = start(&WORKER.replace("jobs += 1", "jobs += 2"), 0);
    let words = error.to_string();
    assert!(matches!(error, Error::Version { .. }), "{words}");
    assert!(words.contains(&ours) && words.contains(&other), "{words}");
    let (error, _) = start(WORKER, 7);
    assert!(error.to_string().contains("--set"), "{error}");
}
