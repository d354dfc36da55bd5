//! Simulated clusters in which things go wrong: what holds all the same.

mod support;

use attune_cluster::simulation::{ClusterOutcome, Settings, simulate};
use attune_simulator::cluster::ClusterWorkload;
use attune_simulator::scheduler::Value;
use support::fixture;

const COUNT: &str = r#"distributed scheduler count {
    nodefamilies { "worker.subsched" : worker expects 2; }
    nodes { queue all; }
    global { int threads = 0; int done = 0; int here = 0; float weight = 0.0; }
    arrival (n) { n => all; here += 1; if (here == 4) foreach m in all suspend m.ready; }
    departure (n) { here -= 1; foreach m in all resume m.ready; }
}"#;

const WORKER: &str = "scheduler worker {
    data { threadref current; queue ready, waiting, held; int load; }
    thread { int blocked = 0; }
    event newthread(t) { threads += 1; weight += 0.5; load++; t => ready; }
    event set_waiting(fixed t) { t.blocked = 1; }
    event event_raised(t) { t => ready; }
    event set_dead(fixed t) { done += 1; load--; }
    event suspend_thread(t) { t => held; }
    event resume_thread(t) { t => ready; }
    event schedule {
        if (|ready| > 0) ready => current;
        if (|current| > 0) dispatch current for 1ms;
    }
    event switch_out {
        if (|current| > 0) {
            if (current.blocked) { current.blocked = 0; current => waiting; }
            else current => ready;
        }
    }
}";

fn run(workload: &str, seed: u64) -> ClusterOutcome {
    let files = [("count.sched", COUNT), ("worker.subsched", WORKER)];
    let workload = ClusterWorkload::from_toml(workload, "test.toml").expect("it reads");
    let settings = Settings { seed, ..Settings::default() };
    match simulate(&fixture(&files, &[]).checked, &workload, &settings) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}"),
    }
}

fn shared(outcome: &ClusterOutcome, name: &str) -> Value {
    let found = outcome.shared.iter().find(|(known, ..)| known == name);
    found.expect("a shared variable").2
}

const THREADS: &str = r#"
    [[node.thread]]
    name = "job"
    count = 20
    start = "index * 20ms"
    do = [
        { compute = "2ms" },
        { update = "done", add = 1 },
        { sleep = "exponential(5ms)" },
        { update = "done", add = 1, into = "seen" },
        { compute = "(seen > 0) * 1ms" },
    ]
"#;

/// A link that loses one message in four, overtaking, a partition of all: every update arrives, and
/// arrives once.
#[test]
fn no_update_is_lost_or_doubled() {
    for model in ["cache", "request"] {
        for seed in 1..=8 {
            let text = format!(
                r#"
                duration = "20s"
                [models]
                done = "{model}"
                [link]
                delay = "1ms"
                jitter = "4ms"
                loss = 0.25
                [[node]]
                family = "worker"
                count = 3
                every = "30ms"
                {}
                [[partition]]
                node = "worker"
                from = "200ms"
                to = "700ms"
                [[partition]]
                node = "worker"
                index = 1
                from = "1s"
                to = "1.4s"
                "#,
                THREADS
            );
            let outcome = run(&text, seed);
            assert!(outcome.master.lost > 0);
            assert_eq!(shared(&outcome, "threads"), Value::Int(60), "{model}, seed {seed}");
            assert_eq!(shared(&outcome, "weight"), Value::Float(30.0), "{model}, seed {seed}");
            // Two by each thread itself, one by its end.
            assert_eq!(shared(&outcome, "done"), Value::Int(180), "{model}, seed {seed}");
            assert_eq!(outcome.nodes.iter().map(|node| node.outcome.total().jobs).sum::<u64>(), 60);
        }
    }
}

/// Nodes that the master gave up come back, and count on where they were.
#[test]
fn a_node_that_was_given_up_for_dead_counts_on() {
    for seed in 1..=4 {
        let text = format!(
            r#"
            duration = "10s"
            [link]
            delay = "1ms"
            jitter = "1ms"
            loss = 0.1
            heartbeat = "50ms"
            patience = "300ms"
            [[node]]
            family = "worker"
            count = 3
            {}
            [[partition]]
            node = "worker"
            index = 2
            from = "100ms"
            to = "900ms"
            "#,
            THREADS
        );
        let outcome = run(&text, seed);
        assert!(outcome.master.given_up >= 1, "seed {seed}");
        assert_eq!(shared(&outcome, "threads"), Value::Int(60), "seed {seed}");
        assert_eq!(shared(&outcome, "done"), Value::Int(180), "seed {seed}");
        assert_eq!(shared(&outcome, "here"), Value::Int(3), "seed {seed}");
    }
}

/// Commands suspend the threads of other nodes' containers, a crash lets them go on; nodes come and
/// go, and the cluster goes on.
#[test]
fn nodes_crash_depart_and_come_back() {
    let text = format!(
        r#"
        duration = "5s"
        [link]
        delay = "1ms"
        notice = "10ms"
        [[node]]
        family = "worker"
        count = 4
        every = "50ms"
        {}
        [[crash]]
        node = "worker"
        index = 0
        time = "1s"
        back = "100ms"
        [[departure]]
        node = "worker"
        index = 1
        time = "2s"
        "#,
        THREADS
    );
    let outcome = run(&text, 1);
    assert_eq!((outcome.master.arrivals, outcome.master.departures), (5, 2));
    assert_eq!(shared(&outcome, "here"), Value::Int(3));
    assert_eq!(outcome.nodes.len(), 5);
    assert_eq!(outcome.nodes.iter().filter(|node| node.ended.is_some()).count(), 2);
    let came_back = outcome.nodes.last().expect("a node");
    assert_eq!(came_back.start, 1_100_000_000);
    assert_eq!(came_back.outcome.total().jobs, 20);
    assert!(outcome.table().contains("worker.3"), "{}", outcome.table());
}

#[test]
fn threads_wait_for_the_expected_nodes() {
    let text = r#"
        duration = "1s"
        [[node]]
        family = "worker"
        count = 2
        every = "400ms"
        [[node.thread]]
        name = "job"
        do = [{ compute = "1ms" }]
    "#;
    let outcome = run(text, 1);
    let waits: Vec<i64> =
        outcome.nodes.iter().map(|node| node.outcome.total().longest_wait).collect();
    assert_eq!(waits, [400_000_000, 0]);
}

#[test]
fn what_is_wrong_with_a_workload_is_said_with_its_place() {
    let read = |text: &str| match ClusterWorkload::from_toml(text, "w.toml") {
        Ok(_) => panic!("it was read"),
        Err(error) => error.to_string(),
    };
    let node = "[[node]]\nfamily = \"worker\"\n[[node.thread]]\nname = \"t\"\n\
                do = [{ compute = \"1ms\" }]\n";
    assert!(read(node).contains("duration"));
    let with = |more: &str| read(&format!("duration = \"1s\"\n{node}{more}"));
    assert!(with("[link]\nloss = 2\n").contains("from 0 to 1"));
    assert!(with("[[crash]]\nnode = \"x\"\ntime = \"1s\"\n").contains("called `x`"));
    assert!(with("[models]\nr = \"guess\"\n").contains("no model"));
    let partition = "[[partition]]\nnode = \"worker\"\nfrom = \"1s\"\nto = \"1s\"\n";
    assert!(with(partition).contains("w.toml:"), "{}", with(partition));
    assert!(with(node).contains("already nodes called `worker`"));
}
