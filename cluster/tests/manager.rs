//! A manager and its nodes over a real socket: what is merged, what survives an end on either side,
//! which nodes are refused.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use attune_cluster::Master;
use attune_cluster::manager::{Error, Happening, Manager, Texts};
use attune_cluster_local::connection::Connection;
use attune_cluster_local::packets::{self, ToManager, ToNode};
use attune_language::ir::Value;
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};
use attune_linux::event::Event;
use attune_linux::socket::{Connection as Socket, Received};
use attune_linux::{process, time};
use attune_replica::Operation;
use attune_replica::Schema;
use attune_replica::Time;
use attune_replica::messages::{Report, Target};

const MASTER: &str = r#"distributed scheduler farm {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue all; }
    global { int jobs = 10; int gone = 0; float share = 1.5; }
    arrival (n) { n => all; }
    departure (n) { gone += 1; }
}"#;

const WORKER: &str = "scheduler worker {
    data { threadref current; queue RQ; }
    event newthread(t) { jobs += 1; t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
    event event_raised(t) { t => RQ; }
}";

fn farm(worker: &str) -> (Checked, Arc<Schema>) {
    let main = SourceText { name: "farm.sched".into(), text: MASTER.into() };
    let files: &[(&str, &str)] = &[("worker.subsched", worker)];
    let checked = check(&main, &mut { files }, &Options::default());
    assert!(!checked.has_errors(), "{:#?}", checked.diagnostics);
    let cluster = checked.cluster.as_ref().expect("a master");
    let schema = Arc::new(Schema::new(cluster, &checked.sources, &Default::default()));
    (checked, schema)
}

fn manager(checked: &Checked, schema: Arc<Schema>, path: &Path) -> Result<Manager, Error> {
    let cluster = checked.cluster.as_ref().expect("a master");
    Manager::new(&Texts { cluster, sources: &checked.sources, seed: 1 }, schema, path)
}

/// A manager on a thread of its own, with what it said.
struct Running {
    stop: Event,
    said: Arc<Mutex<Vec<Happening>>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn at(path: &Path) -> Running {
        let (checked, schema) = farm(WORKER);
        let mut manager = manager(&checked, schema, path).expect("nobody else listens");
        let stop = Event::new().expect("an event");
        let (stopped, said) = (stop.share().expect("shared"), Arc::<Mutex<Vec<_>>>::default());
        let list = said.clone();
        let thread = std::thread::spawn(move || {
            let mut tell = |_: &Master, happening| list.lock().expect("whole").push(happening);
            manager.serve(&stopped, &mut tell).expect("no check fails");
        });
        Running { stop, said, thread: Some(thread) }
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
    Connection::new(farm(WORKER).1, 0, path.to_owned())
}

fn now() -> Time {
    time::now() as Time
}

/// Lets the nodes talk until the condition holds.
#[track_caller]
fn until(nodes: &mut [&mut Connection], mut holds: impl FnMut(&[&mut Connection]) -> bool) {
    for _ in 0..120_000 {
        for node in nodes.iter_mut() {
            node.exchange(now());
        }
        if holds(nodes) {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    panic!("after a minute it does not hold");
}

fn shared(node: &Connection, name: &str) -> Value {
    let replica = node.replica();
    replica.shared(replica.schema().shared(name).expect("declared"))
}

fn add(node: &mut Connection, name: &str, number: i64) {
    let number = Operation::Add(Value::Int(number));
    let variable = node.replica().schema().shared(name).expect("declared");
    node.replica_mut().write(Target::Shared(variable), number);
}

#[test]
fn updates_of_all_nodes_arrive_once_and_an_end_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let manager = Running::at(&path);
    let mut nodes: Vec<Connection> = (0..3).map(|_| node(&path)).collect();
    for round in 0..2000 {
        for node in &mut nodes {
            add(node, "jobs", 1);
            if round % 10 == 0 {
                node.exchange(now());
            }
        }
    }
    let [a, b, c] = &mut nodes[..] else { panic!("three") };
    until(&mut [a, b, c], |nodes| {
        nodes.iter().all(|node| shared(node, "jobs").is(Value::Int(6010)))
    });
    let gone = nodes.pop();
    drop(gone);
    let [a, b] = &mut nodes[..] else { panic!("two") };
    until(&mut [a, b], |nodes| nodes.iter().all(|node| shared(node, "gone").is(Value::Int(1))));
    assert_eq!(manager.said(|it| matches!(it, Happening::Arrived { .. })), 3);
    assert_eq!(manager.said(|it| matches!(it, Happening::Departed { .. })), 1);
}

#[test]
fn a_node_goes_on_without_a_manager_and_its_writes_merge_until_one_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let mut early = node(&path);
    assert_eq!(early.replica().age(now()), Time::MAX);
    for _ in 0..1_000_000 {
        add(&mut early, "jobs", 1);
    }
    early.exchange(now());
    assert!(shared(&early, "jobs").is(Value::Int(1_000_010)), "it sees what it wrote");
    assert_eq!(early.descriptor(), None);
    assert!(early.next().is_some());

    let first = Running::at(&path);
    let mut late = node(&path);
    until(&mut [&mut early, &mut late], |nodes| shared(nodes[1], "jobs").is(Value::Int(1_000_010)));
    assert!(early.replica().age(now()) < Time::MAX);

    // The manager goes, and with it the store; nodes keep what they have heard, and what they
    // write from then on reaches the next one.
    drop(first);
    until(&mut [&mut early, &mut late], |nodes| nodes.iter().all(|it| it.descriptor().is_none()));
    add(&mut early, "jobs", 5);
    assert!(shared(&early, "jobs").is(Value::Int(1_000_015)));
    let second = Running::at(&path);
    until(&mut [&mut early, &mut late], |nodes| {
        nodes.iter().all(|node| shared(node, "jobs").is(Value::Int(15)))
    });
    assert_eq!(second.said(|it| matches!(it, Happening::Arrived { .. })), 2);
    assert_eq!(second.said(|it| matches!(it, Happening::Departed { .. })), 0);
}

/// Nothing is written, and still the age of what is known stays low.
#[test]
fn a_manager_that_lives_is_heard_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let _manager = Running::at(&path);
    let mut node = node(&path);
    until(&mut [&mut node], |nodes| nodes[0].replica().node().is_some());
    let mut last = Time::MIN;
    let mut times = 0;
    until(&mut [&mut node], |nodes| {
        let at = now();
        let heard = at - nodes[0].replica().age(at);
        // Two readings of the clock lie between.
        if heard > last.saturating_add(1_000_000) {
            (last, times) = (heard, times + 1);
        }
        times > 4
    });
}

/// A node's clock jumps an hour ahead and back: ages stay sensible, and writes arrive.
#[test]
fn a_clock_that_jumps_loses_nothing() {
    const HOUR: Time = 3600 * 1_000_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let first = Running::at(&path);
    let (mut jumping, mut other) = (node(&path), node(&path));
    let mut jumps = [0, HOUR, -HOUR, 2 * HOUR, 0].into_iter().cycle();
    let mut steps = 0;
    let mut exchange = |jumping: &mut Connection, other: &mut Connection, jobs: i64| {
        for _ in 0..120_000 {
            // Clocks begin with the machine, so the earliest times are below zero.
            let at = now() + if steps % 50 == 0 { jumps.next().unwrap_or(0) } else { 0 };
            steps += 1;
            jumping.exchange(at);
            assert!(jumping.replica().age(at) >= 0);
            other.exchange(now());
            if shared(other, "jobs").is(Value::Int(jobs)) {
                return;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        panic!("after a minute the jobs are not {jobs}");
    };
    for round in 1..=100 {
        add(&mut jumping, "jobs", 1);
        exchange(&mut jumping, &mut other, 10 + round);
    }
    // Also while there is no manager.
    drop(first);
    for ahead in [HOUR, 0, -HOUR] {
        jumping.exchange(now() + ahead);
    }
    add(&mut jumping, "jobs", 1);
    let _second = Running::at(&path);
    exchange(&mut jumping, &mut other, 11);
}

#[test]
fn a_second_manager_of_a_name_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let _first = Running::at(&path);
    let (checked, schema) = farm(WORKER);
    let second = manager(&checked, schema, &path).map(drop);
    assert!(matches!(second, Err(Error::Taken)));
    let mut node = node(&path);
    until(&mut [&mut node], |nodes| nodes[0].replica().node().is_some());
}

#[test]
fn a_node_of_another_text_is_refused_with_both_identities() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let manager = Running::at(&path);
    let other = farm(&WORKER.replace("jobs += 1", "jobs += 2")).1;
    let mut node = Connection::new(other.clone(), 0, path);
    until(&mut [&mut node], |_| manager.said(|it| matches!(it, Happening::Refused { .. })) > 0);
    let reason = refusal(&mut node);
    let (ours, theirs) = (&farm(WORKER).1.identity, &other.identity);
    assert!(ours != theirs && reason.contains(ours) && reason.contains(theirs), "{reason}");
    assert_eq!(node.take_refusal(), None, "once");
    assert_eq!(node.replica().node(), None);
}

/// Why the node is refused, once it has heard.
#[track_caller]
fn refusal(node: &mut Connection) -> String {
    for _ in 0..120_000 {
        node.exchange(now());
        if let Some(reason) = node.take_refusal() {
            return reason;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    panic!("after a minute the node is not told");
}

#[test]
fn a_node_of_another_user_is_told_why_it_is_refused() {
    if process::effective_user() != 0 {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "only root can be two users");
        return eprintln!("not tested: only root can be two users");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("its folder");
    let path = folder.path().join("farm");
    let manager = Running::at(&path);
    // A manager that belongs to root takes root's nodes alone. The call changes this one thread.
    let nobody = std::thread::spawn(move || {
        // SAFETY: it changes nothing but the thread's own user.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) }, 0);
        // Each says hello while the manager closes the connection, or before, or after.
        for _ in 0..50 {
            let reason = refusal(&mut node(&path));
            assert_eq!(reason, "the cluster belongs to user 0, and the node to another");
        }
    });
    nobody.join().expect("they are told");
    assert!(manager.said(|it| matches!(it, Happening::Refused { .. })) == 50);
}

/// Reads what the manager says until it closes the connection.
#[track_caller]
fn drained(peer: &Socket, room: &mut [u8]) {
    // A node that is not dropped hears something four times a second.
    for _ in 0..240 {
        if matches!(peer.receive(room).expect("readable"), Received::Ended) {
            return;
        }
    }
    panic!("after a minute it has not been dropped");
}

/// A peer that does not speak as a node does is dropped, and no node notices.
#[test]
fn hostile_packets_hurt_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let manager = Running::at(&path);
    let mut good = node(&path);
    until(&mut [&mut good], |nodes| nodes[0].replica().node().is_some());
    let victim = good.replica().node().expect("arrived");
    let patience = Duration::from_secs(60);
    let hello = |former| {
        let mut hello = node(&path).replica().hello().expect("not known yet");
        hello.former = former;
        hello
    };
    // One that takes another's place needs the number of the manager's run, which a welcome tells.
    let spy = Socket::to(&path, patience).expect("listening");
    spy.send(&ToManager::Hello(hello(None), 0).bytes(), None).expect("sent");
    let mut room = vec![0; packets::LONGEST];
    let Ok(Received::Packet(length, _)) = spy.receive(&mut room) else { panic!("no welcome") };
    let Some(ToNode::Welcome(_, run)) = ToNode::read(&room[..length]) else { panic!("no welcome") };
    let of_victim = Report { node: victim, heard: 0, batch: None };
    let unheard = Report { node: 2, heard: u64::MAX, batch: None };
    let cases = [
        b"\xff nonsense".to_vec(),
        vec![0; packets::LONGEST + 1],
        ToManager::Hello(hello(Some(victim)), run).bytes(),
    ];
    for (number, bytes) in cases.into_iter().enumerate() {
        let attacker = Socket::to(&path, patience).expect("listening");
        attacker.send(&bytes, None).expect("sent");
        if number == 2 {
            // The victim's own process may come back; this test is that process.
            continue;
        }
        drained(&attacker, &mut room);
    }
    for report in [of_victim, unheard] {
        let attacker = Socket::to(&path, patience).expect("listening");
        attacker.send(&ToManager::Hello(hello(None), 0).bytes(), None).expect("sent");
        attacker.send(&ToManager::Report(report).bytes(), None).expect("sent");
        drained(&attacker, &mut room);
    }
    // It says so after it has closed the connection.
    until(&mut [&mut good], |_| manager.said(|it| matches!(it, Happening::Dropped { .. })) >= 4);
    let before = shared(&good, "jobs");
    add(&mut good, "jobs", 1);
    let mut other = node(&path);
    let Value::Int(before) = before else { panic!("an int") };
    until(&mut [&mut good, &mut other], |nodes| {
        shared(nodes[1], "jobs").is(Value::Int(before + 1))
    });
}

/// A node that sends without end takes its turn like the others.
#[test]
fn a_node_that_floods_delays_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let _manager = Running::at(&path);
    let flood = Socket::to(&path, Duration::from_secs(60)).expect("listening");
    let hello = node(&path).replica().hello().expect("not known yet");
    flood.send(&ToManager::Hello(hello, 0).bytes(), None).expect("sent");
    let ended = Arc::new(AtomicBool::new(false));
    let stop = ended.clone();
    let flooding = std::thread::spawn(move || {
        let report = ToManager::Report(Report { node: 1, heard: 0, batch: None }).bytes();
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            flood.send(&report, None).expect("it takes them all");
            sent += 1;
        }
        sent
    });
    let (mut one, mut two) = (node(&path), node(&path));
    for round in 1..=200 {
        add(&mut one, "jobs", 1);
        until(&mut [&mut one, &mut two], |nodes| {
            shared(nodes[1], "jobs").is(Value::Int(10 + round))
        });
    }
    ended.store(true, Ordering::Relaxed);
    assert!(flooding.join().expect("never dropped") > 200);
}

/// A node that does not read does not hold up the manager or the others.
#[test]
fn a_node_that_does_not_listen_delays_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("farm");
    let _manager = Running::at(&path);
    let (mut deaf, mut one, mut two) = (node(&path), node(&path), node(&path));
    until(&mut [&mut deaf], |nodes| nodes[0].replica().node().is_some());
    // More changes than its socket has room for.
    for round in 1..=3000 {
        add(&mut one, "jobs", 1);
        until(&mut [&mut one, &mut two], |nodes| {
            shared(nodes[1], "jobs").is(Value::Int(10 + round))
        });
    }
    until(&mut [&mut deaf], |nodes| shared(nodes[0], "jobs").is(Value::Int(3010)));
}

#[test]
fn a_description_is_the_schema_again() {
    let (_, schema) = farm(WORKER);
    let text = packets::describe(&schema, 0);
    let (again, family) = packets::description_of(&text).expect("our own");
    assert_eq!(format!("{again:?} {family}"), format!("{schema:?} 0"));
    for broken in ["", "00", "zz", &text[..text.len() / 2], &format!("1{}", &text[1..])] {
        assert!(packets::description_of(broken).is_none(), "{broken}");
    }
}
