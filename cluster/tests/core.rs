//! A master and its nodes, message by message: what each sees and when.

mod support;

use attune_cluster::node::Command;
use attune_cluster::{Master, Node};
use attune_cluster_local::packets::reader::Reader;
use attune_cluster_local::packets::writer::Writer;
use attune_language::engine::event::Event;
use attune_replica::messages::{Refusal, Welcome};
use attune_simulator::scheduler::{Call, CpuSet, Decision, Scheduler, ThreadId, Time, Value};
use support::{Fixture, fixture};

const FARM: &str = r#"distributed scheduler farm {
    nodefamilies { "worker.subsched" : worker expects 2; "spare.subsched" : spare; }
    nodes { node front; pqueue workers increasing sortable on load; }
    global { int jobs = 10; int limit = 3; }
    arrival (n) {
        if (n is spare && |front| == 0) { n => front; suspend n.RQ; }
        else n => workers;
        jobs += 1;
        if (n is worker) n.load += 100;
    }
    departure (n) {
        jobs -= 1;
        foreach m in front resume m.RQ;
    }
}"#;

const WORKER: &str = "scheduler worker {
    data { threadref current; queue RQ; int load; int seen; int old; }
    event newthread(t) { jobs += 1; load += 1; seen = jobs; t => RQ; }
    event schedule {
        if (|RQ| > 0 && |front.RQ| < limit) { RQ => current; dispatch current; }
        old = age(GLOBAL.jobs) / 1us;
    }
    event switch_out { if (|current| > 0) current => RQ; }
    event suspend_thread(t) { front.passed += 2; t => RQ; }
}";

const SPARE: &str = "scheduler spare {
    data { threadref current; queue RQ, held; int passed; float load = 2.5; }
    event newthread(t) { t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
    event suspend_thread(t) { t => held; }
    event resume_thread(t) { t => RQ; }
}";

fn farm() -> Fixture {
    fixture(&[("farm.sched", FARM), ("worker.subsched", WORKER), ("spare.subsched", SPARE)], &[])
}

/// Lets a node join.
fn join(master: &mut Master, node: &mut Node, now: Time) {
    let hello = node.replica().hello().expect("not joined yet");
    let welcome = master.arrive(&hello, now).expect("arrival is right").expect("not refused");
    node.welcome(&welcome, now);
}

/// Carries all messages until nobody has anything to say.
fn exchange(master: &mut Master, nodes: &mut [&mut Node], now: Time) {
    loop {
        let mut quiet = true;
        for node in nodes.iter_mut() {
            let Some(number) = node.replica().node() else { continue };
            if let Some(report) = node.replica_mut().report(false) {
                master.receive(&report, now).expect("known and sensible");
                quiet = false;
            }
            if let Some(news) = master.news(number, false) {
                node.receive(&news, now);
                quiet = false;
            }
        }
        if quiet {
            return;
        }
    }
}

fn call(node: &mut Node, event: Event, thread: Option<u32>, now: Time) -> Decision {
    let thread = thread.map(ThreadId);
    if event == Event::NewThread {
        node.thread_created(thread.expect("a thread"), &CpuSet::ALL);
    }
    let mut decision = Decision::default();
    let call = Call { event, thread, now, cpu: 0, cpus: 1 };
    node.call(&call, &mut decision).expect("no check fails");
    decision
}

fn variable(node: &Node, name: &str) -> Value {
    let program = node.policy().program().clone();
    let (id, _) = program.globals.iter().find(|(_, it)| it.name == name).expect("declared");
    node.policy().global(id)
}

#[test]
fn updates_of_all_nodes_and_of_the_master_add_up() {
    let farm = farm();
    let mut master = farm.master();
    let (mut a, mut b) = (farm.node("worker", 1), farm.node("worker", 2));
    // Before it has joined, a node counts from the initial value.
    call(&mut a, Event::NewThread, Some(0), 0);
    assert_eq!(variable(&a, "seen"), Value::Int(11));
    join(&mut master, &mut a, 0);
    join(&mut master, &mut b, 0);
    for thread in 0..5 {
        call(&mut b, Event::NewThread, Some(thread), 0);
    }
    // Ten, two that came, and its own five; the other's one is not heard of yet.
    assert_eq!(variable(&b, "seen"), Value::Int(17));
    exchange(&mut master, &mut [&mut a, &mut b], 0);
    assert_eq!(master.shared("jobs"), Some(Value::Int(18)));
    call(&mut b, Event::NewThread, Some(5), 0);
    assert_eq!(variable(&b, "seen"), Value::Int(19));
    let gone = a.replica().node().expect("joined");
    master.depart(gone, 0).expect("departure is right");
    exchange(&mut master, &mut [&mut b], 0);
    assert_eq!(master.shared("jobs"), Some(Value::Int(18)));
}

/// An int is updated by a float: that is an addition like any other, and the result is cut off.
#[test]
fn updates_of_an_int_by_floats_add_up() {
    let master = r#"distributed scheduler farm {
        nodefamilies { "worker.subsched" : worker; }
        nodes { queue all; }
        global { int jobs = 10; }
        arrival (n) { n => all; jobs *= 1.5; }
    }"#;
    let worker = "scheduler worker {
        data { threadref current; queue RQ; }
        event newthread(t) { jobs += 1.5; t => RQ; }
        event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
        event switch_out { if (|current| > 0) current => RQ; }
    }";
    let farm = fixture(&[("farm.sched", master), ("worker.subsched", worker)], &[]);
    let mut master = farm.master();
    let (mut a, mut b) = (farm.node("worker", 1), farm.node("worker", 2));
    join(&mut master, &mut a, 0);
    join(&mut master, &mut b, 0);
    assert_eq!(master.shared("jobs"), Some(Value::Int(22)));
    call(&mut a, Event::NewThread, Some(0), 0);
    call(&mut b, Event::NewThread, Some(0), 0);
    exchange(&mut master, &mut [&mut a, &mut b], 0);
    assert_eq!(master.shared("jobs"), Some(Value::Int(24)));
}

/// Three nodes that have not heard of each other take a number each, by an update whose value they
/// use.
#[test]
fn an_update_loses_no_other_where_its_value_is_used() {
    let master = r#"distributed scheduler farm {
        nodefamilies { "worker.subsched" : worker; }
        nodes { queue all; }
        global { int jobs = 10; }
        arrival (n) { n => all; }
    }"#;
    let worker = "scheduler worker {
        data { queue RQ; int seen; }
        event newthread(t) { seen = jobs++; seen += ++jobs; seen += (jobs += 2); t => RQ; }
    }";
    let farm = fixture(&[("farm.sched", master), ("worker.subsched", worker)], &[]);
    let mut master = farm.master();
    let mut nodes = [1, 2, 3].map(|key| farm.node("worker", key));
    for node in &mut nodes {
        join(&mut master, node, 0);
    }
    for node in &mut nodes {
        call(node, Event::NewThread, Some(0), 0);
        assert_eq!(variable(node, "seen"), Value::Int(10 + 12 + 14));
    }
    exchange(&mut master, &mut nodes.each_mut(), 0);
    assert_eq!(master.shared("jobs"), Some(Value::Int(22)));
}

#[test]
fn nodes_are_sorted_anew_when_their_variable_changes() {
    let farm = farm();
    let mut master = farm.master();
    let (mut a, mut b) = (farm.node("worker", 1), farm.node("worker", 2));
    join(&mut master, &mut a, 0);
    join(&mut master, &mut b, 0);
    exchange(&mut master, &mut [&mut a, &mut b], 0);
    // The master's own addition has reached the node's variable.
    assert_eq!(variable(&a, "load"), Value::Int(100));
    assert_eq!(master.nodes_in("workers"), Some(vec![1, 2]));
    call(&mut a, Event::NewThread, Some(0), 0);
    exchange(&mut master, &mut [&mut a, &mut b], 0);
    assert_eq!(master.nodes_in("workers"), Some(vec![2, 1]));
}

#[test]
fn no_thread_runs_before_the_expected_nodes_have_come() {
    let farm = farm();
    let mut master = farm.master();
    let (mut a, mut b) = (farm.node("worker", 1), farm.node("worker", 2));
    call(&mut a, Event::NewThread, Some(0), 0);
    join(&mut master, &mut a, 0);
    exchange(&mut master, &mut [&mut a], 0);
    assert_eq!(call(&mut a, Event::Schedule, None, 0).dispatch, None);
    join(&mut master, &mut b, 0);
    exchange(&mut master, &mut [&mut a, &mut b], 0);
    assert!(call(&mut a, Event::Schedule, None, 0).dispatch.is_some());
}

#[test]
fn commands_and_values_reach_the_node_in_a_seat() {
    let farm = farm();
    let mut master = farm.master();
    let (mut a, mut b) = (farm.node("worker", 1), farm.node("worker", 2));
    let mut spare = farm.node("spare", 3);
    for thread in 0..3 {
        call(&mut spare, Event::NewThread, Some(thread), 0);
    }
    join(&mut master, &mut a, 0);
    join(&mut master, &mut spare, 0);
    exchange(&mut master, &mut [&mut a, &mut spare], 0);
    let threads: Vec<ThreadId> = (0..3).map(ThreadId).collect();
    assert_eq!(spare.take_commands(), [Command::Suspend(threads.clone())]);
    for thread in 0..3 {
        call(&mut spare, Event::SuspendThread, Some(thread), 0);
    }
    // What the worker reads of the seat is what the spare told.
    let limit = |node: &Node| variable(node, "front_RQ_size");
    join(&mut master, &mut b, 0);
    exchange(&mut master, &mut [&mut a, &mut b, &mut spare], 0);
    call(&mut a, Event::NewThread, Some(7), 0);
    assert_eq!(limit(&a), Value::Int(0));
    // A worker writes the spare's variable.
    call(&mut a, Event::SuspendThread, Some(7), 0);
    call(&mut a, Event::SuspendThread, Some(7), 0);
    exchange(&mut master, &mut [&mut a, &mut b, &mut spare], 0);
    assert_eq!(variable(&spare, "passed"), Value::Int(4));
    let gone = b.replica().node().expect("joined");
    master.depart(gone, 0).expect("departure is right");
    exchange(&mut master, &mut [&mut a, &mut spare], 0);
    assert_eq!(spare.take_commands(), [Command::Resume(threads)]);
}

#[test]
fn a_handler_can_ask_how_old_a_value_is() {
    let farm = farm();
    let mut master = farm.master();
    let (mut a, mut b) = (farm.node("worker", 1), farm.node("worker", 2));
    join(&mut master, &mut a, 0);
    join(&mut master, &mut b, 0);
    exchange(&mut master, &mut [&mut a, &mut b], 5_000);
    call(&mut a, Event::Schedule, None, 12_000);
    assert_eq!(variable(&a, "old"), Value::Int(7));
    let news = master.news(1, true).expect("again");
    a.receive(&news, 20_000);
    call(&mut a, Event::Schedule, None, 21_000);
    assert_eq!(variable(&a, "old"), Value::Int(1));
}

#[test]
fn a_node_of_another_text_is_refused_with_both_identities() {
    let farm = farm();
    let worker = WORKER.replace("load += 1", "load += 2");
    let files = [("farm.sched", FARM), ("worker.subsched", &worker), ("spare.subsched", SPARE)];
    let other = fixture(&files, &[]);
    let mut master = farm.master();
    let hello = other.node("worker", 1).replica().hello().expect("not joined");
    let refusal = master.arrive(&hello, 0).expect("no handler runs").expect_err("other text");
    let (ours, theirs) = (&farm.schema.identity, &other.schema.identity);
    assert_eq!(refusal, Refusal::Version { master: ours.clone(), node: theirs.clone() });
    assert!(refusal.to_string().contains(ours.as_str()), "{refusal}");
    assert!(refusal.to_string().contains(theirs.as_str()), "{refusal}");
    assert_eq!(master.nodes().count(), 0);
}

#[test]
fn a_node_that_was_given_up_comes_back_and_nothing_counts_twice() {
    let farm = farm();
    let mut master = farm.master();
    let mut a = farm.node("worker", 1);
    join(&mut master, &mut a, 0);
    call(&mut a, Event::NewThread, Some(0), 0);
    // The batch arrives, its confirmation does not; the queue goes on filling.
    let report = a.replica_mut().report(false).expect("a batch");
    master.receive(&report, 0).expect("known");
    call(&mut a, Event::NewThread, Some(1), 0);
    let gone = a.replica().node().expect("joined");
    master.depart(gone, 0).expect("departure is right");
    assert!(master.receive(&report, 0).is_err());
    a.replica_mut().forgotten(2);
    join(&mut master, &mut a, 0);
    exchange(&mut master, &mut [&mut a], 0);
    // Ten, two arrivals, one departure, two threads.
    assert_eq!(master.shared("jobs"), Some(Value::Int(13)));
    // The first addition of the master was never sent, the second was.
    assert_eq!(variable(&a, "load"), Value::Int(102));
}

const POOL: &str = r#"distributed scheduler pool {
    nodefamilies { "process.subsched" : process; }
    nodes { pqueue processes increasing sortable on load; }
    global { int r = 0; }
    arrival (p) { p => processes; }
    departure (p) { r -= p.load; }
}"#;

const PROCESS: &str = "scheduler process {
    data { queue RQ; int load; }
    event newthread(t) { load++; r += 1; t => RQ; }
}";

fn pool() -> Fixture {
    fixture(&[("pool.sched", POOL), ("process.subsched", PROCESS)], &[])
}

/// It takes along what it had counted, whatever of its last batch was on its way.
fn departs_with_all_that_it_counted(master: &mut Master, node: &Node) {
    let gone = node.replica().node().expect("joined");
    master.depart(gone, 0).expect("departure is right");
    assert_eq!(master.shared("r"), Some(Value::Int(0)));
}

#[test]
fn a_node_that_is_killed_after_its_first_hello_leaves_nothing_behind() {
    let pool = pool();
    let mut master = pool.master();
    let mut a = pool.node("process", 1);
    call(&mut a, Event::NewThread, Some(0), 0);
    join(&mut master, &mut a, 0);
    departs_with_all_that_it_counted(&mut master, &a);
}

#[test]
fn a_node_that_is_killed_after_it_has_come_to_the_next_manager_leaves_nothing_behind() {
    let pool = pool();
    let mut master = pool.master();
    let mut a = pool.node("process", 1);
    join(&mut master, &mut a, 0);
    call(&mut a, Event::NewThread, Some(0), 0);
    exchange(&mut master, &mut [&mut a], 0);
    // One batch is on its way when the manager is killed, and one is open.
    call(&mut a, Event::NewThread, Some(1), 0);
    a.replica_mut().report(false).expect("a batch");
    call(&mut a, Event::NewThread, Some(2), 0);
    let mut kept = Writer::default();
    master.save(&mut kept);
    let next = || {
        let texts = pool.texts();
        let mut from = Reader { bytes: &kept.bytes };
        let schema = pool.schema.clone();
        let master = Master::restored(texts.cluster, schema, texts.sources, texts.seed, &mut from);
        master.expect("it runs").expect("our own")
    };
    let mut killed_at_once = next();
    a.replica_mut().forgotten(2);
    join(&mut killed_at_once, &mut a, 0);
    departs_with_all_that_it_counted(&mut killed_at_once, &a);

    let mut goes_on = next();
    a.replica_mut().forgotten(3);
    join(&mut goes_on, &mut a, 0);
    exchange(&mut goes_on, &mut [&mut a], 0);
    assert_eq!(goes_on.shared("r"), Some(Value::Int(3)));
    departs_with_all_that_it_counted(&mut goes_on, &a);
}

#[test]
fn a_repeated_hello_is_one_arrival() {
    let farm = farm();
    let mut master = farm.master();
    let node = farm.node("worker", 1);
    let hello = node.replica().hello().expect("not joined");
    let mut welcome =
        || -> Welcome { master.arrive(&hello, 0).expect("arrival is right").expect("not refused") };
    assert_eq!(welcome().node, welcome().node);
    assert_eq!(master.shared("jobs"), Some(Value::Int(11)));
}
