//! Random histories: nodes write and read while messages are delayed, lost, repeated and overtake
//! each other, and nodes crash or are given up. Afterwards checkers look at what each node saw, and
//! at what the store holds.
//!
//! A variant of the protocol that is wrong on purpose must be caught by the same checkers.

mod support;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use attune_cluster::Master;
use attune_replica::Operation;
use attune_replica::messages::{Answer, Ask, News, NodeId, Report, Target};
use attune_replica::{Replica, Schema};
use attune_simulator::scheduler::Value;
use proptest::prelude::*;
use support::{Fixture, fixture};

/// Each node has a sum of its own among the shared variables, so that what it wrote can be read off
/// any copy: `x[n]` counts the writes of node n.
const MASTER: &str = r#"distributed scheduler m {
    nodefamilies { "n.subsched" : n; }
    nodes { queue all; }
    global { int x0, x1, x2, x3; int sum = 0; int other = 0; }
    arrival (n) { n => all; }
}"#;
const NODE: &str = "scheduler n {
    data { threadref current; queue ready; }
    event newthread(t) { t => ready; }
    event schedule { if (|ready| > 0) { ready => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => ready; }
}";

const NODES: usize = 4;
const SUM: u16 = 4;

fn cluster() -> Fixture {
    fixture(&[("m.sched", MASTER), ("n.subsched", NODE)], &[])
}

/// One thing that happens; the numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    /// A node adds 1 to its own count and to the sum, together.
    Write(usize),
    /// A node looks at all counts, in one handler.
    Look(usize),
    /// A node asks the owner to add 1 to the other sum, or to read it.
    Ask(usize, bool),
    NodeSends(usize, bool),
    MasterSends(usize, bool),
    /// The message of that number among those on their way arrives, is lost, or is repeated.
    Arrives(usize),
    Lost(usize),
    Repeated(usize),
    /// The master gives a node up, which comes back when it hears of it.
    GivenUp(usize),
    /// The node is gone for good, with all that it had not sent.
    Crash(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    prop_oneof![
        6 => node.clone().prop_map(Step::Write),
        4 => node.clone().prop_map(Step::Look),
        3 => (node.clone(), any::<bool>()).prop_map(|(node, adds)| Step::Ask(node, adds)),
        6 => (node.clone(), any::<bool>()).prop_map(|(node, again)| Step::NodeSends(node, again)),
        6 => (node.clone(), any::<bool>()).prop_map(|(node, again)| Step::MasterSends(node, again)),
        14 => (0..1000usize).prop_map(Step::Arrives),
        2 => (0..1000usize).prop_map(Step::Lost),
        2 => (0..1000usize).prop_map(Step::Repeated),
        1 => node.clone().prop_map(Step::GivenUp),
        1 => node.prop_map(Step::Crash),
    ]
}

#[derive(Clone, Debug)]
enum Letter {
    Report(usize, Report),
    Ask(usize, Ask),
    News(usize, News),
    Answer(usize, Answer),
}

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Right,
    /// The network delivers a batch under a new number each time, so that repetitions count.
    BatchesCountTwice,
    /// Likewise requests.
    RequestsCountTwice,
    /// Reads of the request model come from the node's copy.
    ReadsFromTheCopy,
    /// A node takes half of the news only.
    NewsInPieces,
}

/// An operation at the owner, from its beginning to its answer.
#[derive(Clone, Copy, Debug)]
struct Operated {
    begins: usize,
    /// None: no answer came, so it may have been done or not.
    ends: Option<usize>,
    adds: bool,
    value: i64,
}

struct World {
    variant: Variant,
    schema: Arc<Schema>,
    master: Master,
    nodes: Vec<Option<Replica>>,
    post: Vec<Letter>,
    keys: u64,
    time: usize,
    /// By node, how many writes it has made.
    written: [i64; NODES],
    /// By node and number of its write, what it had seen of all counts when it made it.
    seen_by: BTreeMap<(usize, i64), [i64; NODES]>,
    looks: Vec<(usize, [i64; NODES])>,
    operated: BTreeMap<(usize, u64), Operated>,
    crashed: HashSet<usize>,
    /// What is written together was not seen together.
    torn: Option<String>,
}

impl World {
    fn new(fixture: &Fixture, variant: Variant) -> World {
        let nodes =
            (0..NODES).map(|node| Some(Replica::new(fixture.schema.clone(), 0, node as u64 + 1)));
        let mut world = World {
            variant,
            schema: fixture.schema.clone(),
            master: fixture.master(),
            nodes: nodes.collect(),
            post: Vec::new(),
            keys: NODES as u64 + 1,
            time: 0,
            written: [0; NODES],
            seen_by: BTreeMap::new(),
            looks: Vec::new(),
            operated: BTreeMap::new(),
            crashed: HashSet::new(),
            torn: None,
        };
        (0..NODES).for_each(|node| world.join(node));
        world
    }

    /// Joining is not what is tested here: it succeeds at once.
    fn join(&mut self, node: usize) {
        let Some(replica) = &mut self.nodes[node] else { return };
        let Some(hello) = replica.hello() else { return };
        let welcome = self.master.arrive(&hello, 0).expect("no check fails").expect("same text");
        replica.welcome(&welcome, 0);
    }

    fn counts(&self, node: usize) -> [i64; NODES] {
        let Some(replica) = &self.nodes[node] else { return [0; NODES] };
        std::array::from_fn(|of| integer(replica.shared(of as u16)))
    }

    fn happens(&mut self, step: &Step) {
        self.time += 1;
        match *step {
            Step::Write(node) => {
                let seen = self.counts(node);
                if let Some(replica) = &mut self.nodes[node] {
                    self.written[node] += 1;
                    self.seen_by.insert((node, self.written[node]), seen);
                    let one = Operation::Add(Value::Int(1));
                    replica.write(Target::Shared(node as u16), one);
                    replica.write(Target::Shared(SUM), one);
                }
            }
            Step::Look(node) => {
                if let Some(replica) = &self.nodes[node] {
                    let counts = self.counts(node);
                    if integer(replica.shared(SUM)) != counts.iter().sum::<i64>() {
                        self.torn = Some(format!("node {node} sees a part of a batch: {counts:?}"));
                    }
                    self.looks.push((node, counts));
                }
            }
            Step::Ask(node, adds) => self.ask(node, adds),
            Step::NodeSends(node, again) => {
                let Some(replica) = &mut self.nodes[node] else { return };
                let report = replica.report(again).map(|report| Letter::Report(node, report));
                self.post.extend(report);
                let asks = replica.asks().map(|ask| Letter::Ask(node, ask));
                self.post.extend(asks);
            }
            Step::MasterSends(node, again) => {
                let number = self.nodes[node].as_ref().and_then(Replica::node);
                let news = number.and_then(|number| self.master.news(number, again));
                self.post.extend(news.map(|news| Letter::News(node, news)));
            }
            Step::Arrives(number) if !self.post.is_empty() => {
                let letter = self.post.swap_remove(number % self.post.len());
                self.delivered(letter);
            }
            Step::Lost(number) if !self.post.is_empty() => {
                self.post.swap_remove(number % self.post.len());
            }
            Step::Repeated(number) if !self.post.is_empty() => {
                let letter = self.post[number % self.post.len()].clone();
                self.delivered(letter);
            }
            Step::GivenUp(node) => {
                let number = self.nodes[node].as_ref().and_then(Replica::node);
                if let Some(number) = number {
                    self.master.depart(number, 0).expect("no check fails");
                }
            }
            // Only one node, so that the others can be compared.
            Step::Crash(node) if self.crashed.is_empty() => {
                let number = self.nodes[node].take().and_then(|replica| replica.node());
                if let Some(number) = number {
                    self.master.depart(number, 0).expect("no check fails");
                }
                self.crashed.insert(node);
            }
            _ => {}
        }
    }

    fn ask(&mut self, node: usize, adds: bool) {
        let (time, variant) = (self.time, self.variant);
        let Some(replica) = &mut self.nodes[node] else { return };
        let other = self.schema.shared("other").expect("declared");
        if variant == Variant::ReadsFromTheCopy && !adds {
            let value = integer(replica.shared(other));
            let operated = Operated { begins: time, ends: Some(time), adds, value };
            self.operated.insert((node, u64::MAX - time as u64), operated);
            return;
        }
        let operation = adds.then_some(Operation::Add(Value::Int(1)));
        let number = replica.ask(other, operation);
        let operated = Operated { begins: time, ends: None, adds, value: 0 };
        self.operated.insert((node, number), operated);
    }

    fn delivered(&mut self, letter: Letter) {
        match letter {
            Letter::Report(node, mut report) => {
                if self.variant == Variant::BatchesCountTwice
                    && let Some(batch) = &mut report.batch
                {
                    // As a master that does not look at the number.
                    batch.number = self.counted(report.node) + 1;
                }
                if self.master.receive(&report, 0).is_err() {
                    self.stranger(node, report.node);
                }
            }
            Letter::Ask(node, mut ask) => {
                let number = ask.number;
                if self.variant == Variant::RequestsCountTwice {
                    self.keys += 1;
                    ask.number = self.keys + 1_000_000;
                    ask.unanswered = 0;
                }
                match self.master.ask(&ask, 0) {
                    Ok(answer) => self.post.push(Letter::Answer(node, Answer { number, ..answer })),
                    Err(attune_cluster::master::Unknown::Node) => self.stranger(node, ask.node),
                    Err(_) => {}
                }
            }
            Letter::News(node, mut news) => {
                let Some(replica) = &mut self.nodes[node] else { return };
                if self.variant == Variant::NewsInPieces {
                    let half = news.cells.len() / 2;
                    news.cells.truncate(half);
                }
                replica.receive(&news, 0);
            }
            Letter::Answer(node, answer) => {
                let time = self.time;
                let Some(replica) = &mut self.nodes[node] else { return };
                if let Some(value) = replica.answer(&answer)
                    && let Some(operated) = self.operated.get_mut(&(node, answer.number))
                {
                    operated.ends = Some(time);
                    operated.value = integer(value);
                }
            }
        }
    }

    /// The last batch of a node that the master has counted.
    fn counted(&mut self, node: NodeId) -> u64 {
        self.master.news(node, true).map_or(0, |news| news.counted)
    }

    /// The node hears that the master has given it up, and comes again.
    fn stranger(&mut self, node: usize, number: NodeId) {
        let Some(replica) = &mut self.nodes[node] else { return };
        if replica.node() == Some(number) {
            self.keys += 1;
            replica.forgotten(self.keys);
            self.join(node);
        }
    }

    /// The links are well again, and all that is left to say is said.
    fn settles(&mut self) {
        for _ in 0..60 {
            for node in 0..NODES {
                self.happens(&Step::NodeSends(node, true));
                self.happens(&Step::MasterSends(node, true));
            }
            while let Some(letter) = self.post.pop() {
                self.time += 1;
                self.delivered(letter);
            }
        }
    }

    /// No increment is lost or doubled. The store holds a beginning of what a crashed node wrote.
    fn check_counts(&self) -> Result<(), String> {
        let values: Vec<i64> =
            (0..6).map(|shared| integer(self.master.store().get(shared))).collect();
        for (node, written) in self.written.iter().enumerate() {
            let counted = values[node];
            let right = if self.crashed.contains(&node) {
                counted <= *written
            } else {
                counted == *written
            };
            if !right {
                return Err(format!("node {node} wrote {written}, the store has {counted}"));
            }
        }
        if values[4] != values[..NODES].iter().sum::<i64>() {
            return Err(format!("the sum is not that of the counts: {values:?}"));
        }
        let adds = self.operated.values().filter(|it| it.adds);
        let done = adds.clone().filter(|it| it.ends.is_some()).count() as i64;
        if !(done..=adds.count() as i64).contains(&values[5]) {
            return Err(format!("{done} additions were confirmed, the store has {}", values[5]));
        }
        let living = (0..NODES).filter(|node| !self.crashed.contains(node));
        for node in living {
            if self.counts(node)[..] != values[..NODES] {
                return Err(format!("node {node} has {:?}, not {values:?}", self.counts(node)));
            }
        }
        Ok(())
    }

    /// Causal order: a node that sees the k-th write of n sees all that n had seen when it wrote
    /// it, and never sees less than it has seen before or has written itself.
    fn check_causal(&self) -> Result<(), String> {
        let mut before = [[0; NODES]; NODES];
        for (node, counts) in &self.looks {
            for of in 0..NODES {
                if counts[of] < before[*node][of] {
                    return Err(format!("node {node} sees less of {of} than before: {counts:?}"));
                }
                if counts[of] == 0 {
                    continue;
                }
                let Some(seen) = self.seen_by.get(&(of, counts[of])) else {
                    return Err(format!("node {node} sees a write of {of} that is not there"));
                };
                if (0..NODES).any(|each| each != of && seen[each] > counts[each]) {
                    return Err(format!(
                        "node {node} sees write {} of {of} and not what {of} had seen: {counts:?}, \
                         {seen:?}",
                        counts[of]
                    ));
                }
            }
            before[*node] = *counts;
        }
        Ok(())
    }

    /// Linearizability of the number behind the request model. Every addition adds 1 and answers
    /// with the value after it, so that the values order the additions: one operation that ended
    /// before another began never has a larger value, an addition after anything has a larger one,
    /// no two additions have the same, and none counts what had not begun.
    fn check_linearizable(&self) -> Result<(), String> {
        let ended: Vec<&Operated> =
            self.operated.values().filter(|operated| operated.ends.is_some()).collect();
        let mut values = HashSet::new();
        for operated in &ended {
            if operated.adds && !values.insert(operated.value) {
                return Err(format!("two additions gave {}", operated.value));
            }
        }
        let begun = |time: usize| self.operated.values().filter(move |it| it.begins < time);
        for later in &ended {
            let end = later.ends.unwrap_or(usize::MAX);
            let possible = begun(end + 1).filter(|it| it.adds).count() as i64;
            if later.value > possible {
                return Err(format!("{later:?} has counted what nobody added"));
            }
            for earlier in &ended {
                if earlier.ends.is_some_and(|end| end < later.begins)
                    && (later.value < earlier.value || later.adds && later.value == earlier.value)
                {
                    return Err(format!("{later:?} came after {earlier:?}"));
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.torn.clone().map_or(Ok(()), Err)?;
        self.check_counts()?;
        self.check_causal()?;
        self.check_linearizable()
    }
}

fn integer(value: Value) -> i64 {
    match value {
        Value::Int(value) => value,
        Value::Float(value) => panic!("{value} is no integer"),
    }
}

fn history(fixture: &Fixture, variant: Variant, steps: &[Step]) -> Result<(), String> {
    let mut world = World::new(fixture, variant);
    steps.iter().for_each(|step| world.happens(step));
    world.settles();
    world.check()
}

#[test]
fn ten_thousand_histories_lose_nothing_and_keep_their_order() {
    let fixture = cluster();
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..80))| {
        let found = history(&fixture, Variant::Right, &steps);
        prop_assert!(found.is_ok(), "{:?}", found);
    });
}

/// How many of 500 random histories a checker refuses.
fn refused(variant: Variant) -> usize {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let fixture = cluster();
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 40..120);
    let mut wrong = || {
        let steps = steps.new_tree(&mut runner).expect("a history").current();
        history(&fixture, variant, &steps).is_err()
    };
    (0..500).filter(|_| wrong()).count()
}

#[test]
fn what_is_wrong_on_purpose_is_caught() {
    assert_eq!(refused(Variant::Right), 0);
    for (variant, name) in [
        (Variant::BatchesCountTwice, "batches count twice"),
        (Variant::RequestsCountTwice, "requests count twice"),
        (Variant::ReadsFromTheCopy, "reads from the copy"),
        (Variant::NewsInPieces, "news in pieces"),
    ] {
        let caught = refused(variant);
        assert!(caught >= 50, "{name}: {caught} of 500");
    }
}
