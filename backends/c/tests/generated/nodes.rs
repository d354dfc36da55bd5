//! The scheduler of a cluster's node: what it reads of others it reads once, what it writes it
//! tells the engine as operations. Beside the interpreter, which says what each assignment means.

use std::sync::Arc;

use attune_backend_c::{Policy, Refusal, embedded};
use attune_language::engine::Engine;
use attune_language::engine::event::Event;
use attune_replica::Operation;
use attune_simulator::interpreter::{self, Interpreter, Updated};
use attune_simulator::scheduler::{Call, CpuSet, Decision, Scheduler, ThreadId, Value};

use crate::support::{Compiled, c_of_node, cluster};

const MASTER: &str = r#"distributed scheduler farm {
    nodefamilies { "worker.subsched" : worker; }
    nodes { node front; queue others; }
    global { int jobs = 10; float share = 0.5; time patience = 5ms; }
    arrival (n) { if (|front| == 0) n => front; else n => others; }
    event alarm(t) { jobs *= 3; t => RQ; }
}"#;

const WORKER: &str = "scheduler worker {
    data { threadref current; queue RQ; int load; int seen; }
    event newthread(t) {
        jobs += 1;
        GLOBAL.jobs = jobs - 2;
        seen = jobs++ + --jobs;
        share -= 0.25;
        share = share / load;
        patience %= 2ms;
        load = load + 1;
        jobs = load * jobs;
        share = jobs;
        t => RQ;
    }
    event schedule {
        if (|RQ| > 0 && front.load <= load && |front.RQ| < jobs && age(GLOBAL.jobs) < patience) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; front.load += load / 0; }
    event event_raised(t) { t => RQ; }
}";

#[test]
fn a_node_reads_once_and_tells_operations() {
    let c = c_of_node(MASTER, WORKER);
    let (_, scheduler) = c.split_once("#define ATTUNE_FIRST").expect("the scheduler's part");
    let (handlers, _) = scheduler.split_once("static void attune_start").expect("handlers first");
    let (_, node) = c.split_once("static const struct attune_node").expect("a table of the node");
    insta::assert_snapshot!(format!("{MASTER}\n{WORKER}\n----------\n{handlers}\n..{node}"));
}

/// Each assignment of the interpreter as the small engine prints it.
fn interpreted(calls: &[(Event, u32)]) -> Vec<String> {
    let (checked, cluster) = cluster(MASTER, WORKER);
    let program = Arc::new(cluster.families[0].program.clone());
    let options = interpreter::Options { seed: 1, ..Default::default() };
    let mut policy =
        Interpreter::new(program.clone(), &checked.sources, options).expect("not refused");
    let mut lines = Vec::new();
    for &(event, thread) in calls {
        if event == Event::NewThread {
            policy.thread_created(ThreadId(thread), &CpuSet::ALL);
        }
        let mut decision = Decision::default();
        let thread = Some(ThreadId(thread));
        let call = Call { event, thread, now: 0, cpu: 0, cpus: 1 };
        policy.call(&call, &mut decision).expect("no check fails");
        let mut line = String::new();
        for update in policy.take_updates() {
            let Updated::Global(global) = update.place else { panic!("nodes have no nodes") };
            let (name, operand) = match update.operation {
                Operation::Set(value) => ("set", value),
                Operation::Add(value) => ("add", value),
                Operation::Multiply(value) => ("multiply", value),
                Operation::Divide(value) => ("divide", value),
                Operation::Remainder(value) => ("remainder", value),
            };
            let operand = match operand {
                Value::Int(value) => value.to_string(),
                Value::Float(value) => value.to_string(),
            };
            line += &format!("{} {name} {operand}; ", program.globals[global].name);
        }
        let globals = program.globals.iter().map(|(id, global)| match policy.global(id) {
            Value::Int(value) => format!(" {} {value}", global.name),
            Value::Float(value) => format!(" {} {value}", global.name),
        });
        lines.push(format!("{line}|{}", globals.collect::<String>()));
    }
    lines
}

#[test]
fn compiled_nodes_tell_what_the_interpreter_tells() {
    let calls = [
        (Event::NewThread, 1),
        (Event::NewThread, 2),
        (Event::SwitchOut, 1),
        (Event::NewThread, 3),
        (Event::Alarm, 2),
        (Event::SwitchOut, 2),
    ];
    let mut commands = Vec::new();
    for (event, thread) in calls {
        if event == Event::NewThread {
            commands.push(format!("thread {thread}"));
        }
        commands.push(format!("call {} {thread} 0 0", event.name()));
    }
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let run = Compiled::of_c("node", &c_of_node(MASTER, WORKER), &[]).run(&commands);
    assert!(!run.trapped, "{:#?}", run.lines);
    // `updates | RQ: .. | current: .. | globals | links | counts`
    let compiled: Vec<String> = run
        .lines
        .iter()
        .map(|line| {
            let parts: Vec<&str> = line.split('|').collect();
            format!("{}|{}", parts[0], parts[3].trim_end())
        })
        .collect();
    assert_eq!(compiled, interpreted(&calls));
    assert!(compiled[0].contains("jobs add 1; "), "{compiled:#?}");
    // `seen = jobs++ + --jobs` merges as well.
    assert!(compiled[0].contains("jobs add 1; jobs add -1; "), "{compiled:#?}");
    assert!(compiled[4].starts_with("jobs multiply 3; "), "the master's default: {compiled:#?}");
}

#[test]
fn the_embedded_target_refuses_a_node_whose_exchange_it_does_not_know() {
    let (checked, cluster) = cluster(MASTER, WORKER);
    let family = &cluster.families[0];
    let verdicts = &family.engines[Engine::Embedded as usize].verdicts;
    let policy = Policy { program: &family.program, verdicts, sources: &checked.sources };
    let (header, before, behind) = Default::default();
    let (members, alarm_members, table) = (0, 0, false);
    let node = None;
    let none = embedded::Engine { header, before, behind, members, alarm_members, node, table };
    let refused = embedded::generate(policy, false, &none).map(drop);
    assert_eq!(refused.unwrap_err(), Refusal::Node("worker".into()));
}
