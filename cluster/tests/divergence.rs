//! A cluster over a real socket and one whose messages the test carries decide alike: the same
//! history of arrivals, writes and departures, and after every step the same values, the same nodes
//! in the master's containers, the same orders to each node.

mod support;

use std::path::Path;
use std::time::Duration;

use attune_cluster::Master;
use attune_cluster::manager::Manager;
use attune_cluster_local::connection::Connection;
use attune_language::ir::{NodeProperty, Value};
use attune_linux::event::Event;
use attune_linux::time;
use attune_replica::messages::{Property, Target};
use attune_replica::{Operation, Replica, Time};
use support::{Fixture, fixture};

const MASTER: &str = r#"distributed scheduler farm {
    nodefamilies { "worker.subsched" : worker; "spare.subsched" : spare; }
    nodes { node front; pqueue workers increasing sortable on load; }
    global { int jobs = 10; int come = 0; int gone = 0; float share = 1.5; }
    arrival (n) {
        come += 1;
        if (n is spare && |front| == 0) { n => front; suspend n.RQ; }
        else n => workers;
        if (n is worker) n.load += 5;
    }
    departure (n) {
        gone += 1;
        jobs -= n.load;
        foreach m in front resume m.RQ;
    }
}"#;

const WORKER: &str = "scheduler worker {
    data { queue RQ; int load, seen; }
    event newthread(t) { jobs += 1; seen = workers.load + front.load; t => RQ; }
}";

const SPARE: &str = "scheduler spare {
    data { queue RQ; int load; }
    event newthread(t) { share -= 0.25; t => RQ; }
}";

/// What a node's program is to the cluster: it follows orders and tells its values.
#[derive(Default)]
struct Program {
    load: i64,
    orders: Vec<(Property, Operation)>,
}

impl Program {
    fn follow(&mut self, orders: Vec<(Property, Operation)>, replica: &mut Replica) {
        let load = load_of(replica);
        for (property, operation) in orders {
            if property == load {
                let Value::Int(now) = operation.apply(Value::Int(self.load)) else { continue };
                self.load = now;
                replica.tell(load, Value::Int(now));
            }
            self.orders.push((property, operation));
        }
    }
}

fn load_of(replica: &Replica) -> Property {
    let load = NodeProperty::Variable("load".into());
    replica.schema().property(&load).expect("nodes have it")
}

/// All that a node can know, and what it was ordered.
fn view(replica: &Replica, program: &Program) -> String {
    let schema = replica.schema();
    let shared: Vec<Value> = (0..schema.shared.len()).map(|it| replica.shared(it as u16)).collect();
    let seats: Vec<_> = (0..schema.seats.len() as u16)
        .map(|seat| {
            let properties = 0..schema.properties.len() as Property;
            let values: Vec<Value> =
                properties.map(|property| replica.property_in(seat, property)).collect();
            (replica.seated(seat), replica.family_in(seat), values)
        })
        .collect();
    format!("{:?} {shared:?} {seats:?} {} {:?}", replica.node(), program.load, program.orders)
}

/// Something that a node does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Add(i64),
    Set(i64),
    Scale(f64),
    Load(i64),
    /// Writes the load of the first of the master's sorted nodes.
    Push(i64),
}

fn act(act: Act, replica: &mut Replica, program: &mut Program) {
    let shared = |name: &str| Target::Shared(replica.schema().shared(name).expect("declared"));
    let (jobs, share, load) = (shared("jobs"), shared("share"), load_of(replica));
    match act {
        Act::Add(by) => replica.write(jobs, Operation::Add(Value::Int(by))),
        Act::Set(to) => replica.write(jobs, Operation::Set(Value::Int(to))),
        Act::Scale(by) => replica.write(share, Operation::Multiply(Value::Float(by))),
        Act::Load(now) => {
            program.load = now;
            replica.tell(load, Value::Int(now));
        }
        Act::Push(by) => {
            let workers = replica.schema().seats.iter().position(|(name, _)| name == "workers");
            let seat = workers.expect("a seat") as u16;
            if let Some(node) = replica.seated(seat) {
                replica.write(Target::Of(node, load), Operation::Add(Value::Int(by)));
            }
        }
    }
}

/// Carries messages until nobody has anything to say.
fn settle(master: &mut Master, nodes: &mut [Option<(Replica, Program)>]) {
    loop {
        let mut quiet = true;
        for (replica, program) in nodes.iter_mut().flatten() {
            let Some(number) = replica.node() else { continue };
            if let Some(report) = replica.report(false) {
                assert!(master.receive(&report, 0).is_ok(), "known and sensible");
                quiet = false;
            }
            if let Some(news) = master.news(number, false) {
                let orders = replica.receive(&news, 0);
                program.follow(orders, replica);
                quiet = false;
            }
        }
        if quiet {
            return;
        }
    }
}

fn now() -> Time {
    time::now() as Time
}

/// Lets the nodes talk over their sockets until they know what the others know.
fn follow(nodes: &mut [Option<(Connection, Program)>], wanted: &[Option<String>], step: &str) {
    let views = |nodes: &[Option<(Connection, Program)>]| -> Vec<Option<String>> {
        let view = |(node, program): &(Connection, Program)| view(node.replica(), program);
        nodes.iter().map(|node| node.as_ref().map(view)).collect()
    };
    for _ in 0..120_000 {
        for (node, program) in nodes.iter_mut().flatten() {
            let orders = node.exchange(now()).orders;
            program.follow(orders, node.replica_mut());
        }
        let settled = nodes.iter().flatten().all(|(node, _)| node.replica().is_settled());
        if settled && views(nodes) == wanted {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    panic!("{step}: over the socket {:#?}\nby hand {wanted:#?}", views(nodes));
}

fn chosen(random: &mut fastrand::Rng) -> Act {
    match random.u32(0..5) {
        0 => Act::Add(random.i64(-3..4)),
        1 => Act::Set(random.i64(0..100)),
        2 => Act::Scale([0.5, 2.0, 3.0][random.usize(0..3)]),
        3 => Act::Load(random.i64(0..20)),
        _ => Act::Push(random.i64(1..4)),
    }
}

/// Ends the manager, also where a step of the test fails.
struct Ends(Event);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set();
    }
}

fn history(fixture: &Fixture, path: &Path, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut master = fixture.master();
    let mut manager =
        Manager::new(&fixture.texts(), fixture.schema.clone(), path).expect("nobody else listens");
    let stop = Event::new().expect("an event");
    let stopped = stop.share().expect("shared");
    std::thread::scope(|scope| {
        let ends = Ends(stop);
        let serving = scope.spawn(move || manager.serve(&stopped, &mut |_, _| {}));
        let (mut by_hand, mut by_socket) = (Vec::new(), Vec::new());
        for number in 0..60 {
            let living: Vec<usize> =
                (0..by_hand.len()).filter(|&it| Option::is_some(&by_hand[it])).collect();
            // The first node stays, so that one always sees what the others do.
            let step = match random.u32(0..6) {
                kind if living.len() < 2 || kind == 0 && living.len() < 6 => {
                    let family = if by_hand.is_empty() { 1 } else { random.usize(0..2) };
                    let schema = fixture.schema.clone();
                    let mut replica = Replica::new(schema.clone(), family, by_hand.len() as u64);
                    let mut node = Connection::new(schema, family, path.to_owned());
                    let load = load_of(&replica);
                    replica.tell(load, Value::Int(0));
                    node.replica_mut().tell(load, Value::Int(0));
                    let hello = replica.hello().expect("not joined");
                    let welcome = master.arrive(&hello, 0).expect("arrival is right");
                    replica.welcome(&welcome.expect("not refused"), 0);
                    by_hand.push(Some((replica, Program::default())));
                    by_socket.push(Some((node, Program::default())));
                    format!("node of family {family}")
                }
                1 if living.len() > 2 => {
                    let leaves = living[random.usize(1..living.len())];
                    let (replica, _) = by_hand[leaves].take().expect("it lives");
                    master.depart(replica.node().expect("joined"), 0).expect("departure is right");
                    by_socket[leaves] = None;
                    format!("{leaves} leaves")
                }
                _ => {
                    let (acts, it) = (chosen(&mut random), living[random.usize(0..living.len())]);
                    let (replica, program) = by_hand[it].as_mut().expect("it lives");
                    act(acts, replica, program);
                    let (node, program) = by_socket[it].as_mut().expect("it lives");
                    act(acts, node.replica_mut(), program);
                    format!("{it}: {acts:?}")
                }
            };
            settle(&mut master, &mut by_hand);
            let wanted: Vec<Option<String>> = by_hand
                .iter()
                .map(|it| it.as_ref().map(|(replica, program)| view(replica, program)))
                .collect();
            follow(&mut by_socket, &wanted, &format!("seed {seed}, step {number}, {step}"));
        }
        drop(ends);
        serving.join().expect("no panic").expect("no check fails");
    });
}

#[test]
fn the_same_history_comes_to_the_same_over_a_socket_and_by_hand() {
    let files = [("farm.sched", MASTER), ("worker.subsched", WORKER), ("spare.subsched", SPARE)];
    let fixture = fixture(&files, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 1..=4 {
        history(&fixture, &folder.path().join(format!("farm{seed}")), seed);
    }
}
