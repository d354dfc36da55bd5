//! A master and four nodes, the letters between them, and what the checkers must know of both.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use attune_cluster::Master;
use attune_cluster::master::Unknown;
use attune_cluster_local::packets::reader::Reader;
use attune_cluster_local::packets::writer::Writer;
use attune_replica::Operation;
use attune_replica::messages::{Answer, Ask, News, NodeId, Report, Shared, Target};
use attune_replica::{Replica, Schema};
use attune_simulator::scheduler::Value;

use super::causal::{Counts, Seen};
use super::linearizable::{Requested, is_linearizable};
use super::support::Fixture;
use super::{Asked, Step, Variant};

pub const NODES: usize = 4;
/// Shared variables behind the nodes' counts.
const SUM: Shared = 4;
const OTHER: Shared = 5;
const SECOND: Shared = 6;
const VARIABLES: usize = 7;

#[derive(Clone, Debug)]
enum Letter {
    Report(usize, Report),
    Ask(usize, Ask),
    News(usize, News),
    Answer(usize, Answer),
}

pub struct World<'a> {
    fixture: &'a Fixture,
    variant: Variant,
    schema: Arc<Schema>,
    master: Master,
    nodes: Vec<Option<Replica>>,
    post: Vec<Letter>,
    cut: [bool; NODES],
    keys: u64,
    time: usize,
    /// By node, how many writes it has made.
    written: Counts,
    seen: Seen,
    /// By node and number.
    requested: BTreeMap<(usize, u64), Requested>,
    crashed: HashSet<usize>,
    /// What is written together was not seen together.
    torn: Option<String>,
    /// What a manager that is killed leaves.
    kept: Vec<u8>,
}

impl World<'_> {
    pub fn new(fixture: &Fixture, variant: Variant) -> World<'_> {
        let nodes =
            (0..NODES).map(|node| Some(Replica::new(fixture.schema.clone(), 0, node as u64 + 1)));
        let mut world = World {
            fixture,
            variant,
            schema: fixture.schema.clone(),
            master: fixture.master(),
            nodes: nodes.collect(),
            post: Vec::new(),
            cut: [false; NODES],
            keys: NODES as u64 + 1,
            time: 0,
            written: [0; NODES],
            seen: Seen::default(),
            requested: BTreeMap::new(),
            crashed: HashSet::new(),
            torn: None,
            kept: Vec::new(),
        };
        (0..NODES).for_each(|node| world.join(node));
        world.keep();
        world
    }

    /// Joining is not what is tested here: it succeeds at once.
    fn join(&mut self, node: usize) {
        let Some(replica) = &mut self.nodes[node] else { return };
        let Some(hello) = replica.hello() else { return };
        let welcome = self.master.arrive(&hello, 0).expect("no check fails").expect("same text");
        replica.welcome(&welcome, 0);
    }

    fn counts(&self, node: usize) -> Counts {
        let Some(replica) = &self.nodes[node] else { return [0; NODES] };
        std::array::from_fn(|of| integer(replica.shared(of as Shared)))
    }

    pub fn happens(&mut self, step: &Step) {
        self.time += 1;
        match *step {
            Step::Write(node) => {
                let seen = self.counts(node);
                if let Some(replica) = &mut self.nodes[node] {
                    self.written[node] += 1;
                    self.seen.writes(node, self.written[node], seen);
                    replica.write(Target::Shared(node as Shared), add(1));
                    replica.write(Target::Shared(SUM), add(1));
                }
            }
            Step::Look(node) => {
                if let Some(replica) = &self.nodes[node] {
                    let counts = self.counts(node);
                    if integer(replica.shared(SUM)) != counts.iter().sum::<i64>() {
                        self.torn = Some(format!("node {node} sees a part of a batch: {counts:?}"));
                    }
                    self.seen.looks(node, counts);
                }
            }
            Step::Ask(node, asked) => self.ask(node, asked),
            Step::NodeSends(node, again) => {
                let Some(replica) = &mut self.nodes[node] else { return };
                let report = replica.report(again).map(|report| Letter::Report(node, report));
                self.post.extend(report);
                let asks = replica.asks(0).map(|ask| Letter::Ask(node, ask));
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
            Step::Cut(node, cut) => self.cut[node] = cut,
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
            Step::Killed => self.killed(),
            _ => {}
        }
        if self.variant == Variant::SpeaksBeforeItKeeps && self.time.is_multiple_of(16) {
            self.keep();
        }
    }

    fn keep(&mut self) {
        let mut to = Writer::default();
        self.master.save(&mut to);
        self.kept = to.bytes;
    }

    /// The connections end with the manager, and all letters with them.
    fn killed(&mut self) {
        // A right one has kept all that it has said; what it has not said may be lost or not.
        if self.variant != Variant::SpeaksBeforeItKeeps {
            self.keep();
        }
        let checked = &self.fixture.checked;
        let cluster = checked.cluster.as_ref().expect("a master");
        let mut from = Reader { bytes: &self.kept };
        let master = Master::restored(cluster, self.schema.clone(), &checked.sources, 1, &mut from);
        self.master = master.expect("it runs").expect("our own");
        self.post.clear();
        for node in 0..NODES {
            if let Some(replica) = &mut self.nodes[node] {
                self.keys += 1;
                replica.forgotten(self.keys);
                self.join(node);
            }
        }
    }

    fn ask(&mut self, node: usize, asked: Asked) {
        let (begins, variant) = (self.time, self.variant);
        let Some(replica) = &mut self.nodes[node] else { return };
        let about = |second| if second { SECOND } else { OTHER };
        let (variable, writes) = match asked {
            Asked::Read { second } => (about(second), Vec::new()),
            Asked::Add { second } => (about(second), vec![(about(second), add(1))]),
            Asked::Set(value) => (OTHER, vec![(OTHER, Operation::Set(Value::Int(value)))]),
            Asked::Both(value) => {
                let value = Operation::Set(Value::Int(value));
                (OTHER, vec![(SECOND, value), (OTHER, value), (OTHER, add(1))])
            }
        };
        if variant == Variant::ReadsFromTheCopy && writes.is_empty() {
            let ended = Some((begins, integer(replica.shared(variable))));
            let requested = Requested { begins, ended, variable, writes };
            self.requested.insert((node, u64::MAX - begins as u64), requested);
            return;
        }
        let number = replica.ask(variable, writes.clone());
        let requested = Requested { begins, ended: None, variable, writes };
        self.requested.insert((node, number), requested);
    }

    fn delivered(&mut self, letter: Letter) {
        let (Letter::Report(node, _)
        | Letter::Ask(node, _)
        | Letter::News(node, _)
        | Letter::Answer(node, _)) = &letter;
        if self.cut[*node] {
            return;
        }
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
            Letter::Ask(node, ask) => self.asked(node, ask),
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
                    && let Some(requested) = self.requested.get_mut(&(node, answer.number))
                {
                    requested.ended = Some((time, integer(value)));
                }
            }
        }
    }

    fn asked(&mut self, node: usize, mut ask: Ask) {
        let number = ask.number;
        if self.variant == Variant::RequestsCountTwice {
            self.keys += 1;
            ask.number = self.keys + 1_000_000;
            ask.unanswered = 0;
        }
        if self.variant == Variant::RequestsInPieces && ask.writes.len() > 1 {
            // As a master that does the first write now, and the others when it is asked again.
            let first = Ask { number: number + 1_000_000, unanswered: 0, ..ask.clone() };
            let first = Ask { writes: first.writes[..1].to_vec(), ..first };
            if self.master.ask(&first, 0).is_ok() && !number.is_multiple_of(2) {
                return;
            }
        }
        match self.master.ask(&ask, 0) {
            Ok(answer) => self.post.push(Letter::Answer(node, Answer { number, ..answer })),
            Err(Unknown::Node) => self.stranger(node, ask.node),
            Err(Unknown::Nonsense) => {}
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
    pub fn settles(&mut self) {
        self.cut = [false; NODES];
        for _ in 0..60 {
            if self.post.is_empty() && self.has_settled() {
                return;
            }
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

    fn has_settled(&self) -> bool {
        let revision = self.master.store().revision();
        let settled = |it: &Replica| it.is_settled() && it.revision() == revision;
        self.nodes.iter().flatten().all(settled)
    }

    pub fn check(&self) -> Result<(), String> {
        self.torn.clone().map_or(Ok(()), Err)?;
        self.check_counts()?;
        self.seen.check()?;
        self.check_requests()
    }

    /// No increment is lost or doubled. The store holds a beginning of what a crashed node wrote.
    fn check_counts(&self) -> Result<(), String> {
        let values = self.values();
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
        if values[usize::from(SUM)] != values[..NODES].iter().sum::<i64>() {
            return Err(format!("the sum is not that of the counts: {values:?}"));
        }
        let living = (0..NODES).filter(|node| !self.crashed.contains(node));
        for node in living {
            if self.counts(node)[..] != values[..NODES] {
                return Err(format!("node {node} has {:?}, not {values:?}", self.counts(node)));
            }
        }
        Ok(())
    }

    /// Requests are linearizable, with a last look at the store.
    fn check_requests(&self) -> Result<(), String> {
        let values = self.values();
        let mut requested: Vec<Requested> = self.requested.values().cloned().collect();
        for variable in [OTHER, SECOND] {
            let last = (usize::MAX, values[usize::from(variable)]);
            let ended = Some(last);
            requested.push(Requested {
                begins: self.time + 1,
                ended,
                variable,
                writes: Vec::new(),
            });
        }
        if is_linearizable(vec![0; VARIABLES], &requested) {
            return Ok(());
        }
        Err(format!("no order explains the answers: {requested:#?}"))
    }

    fn values(&self) -> Vec<i64> {
        (0..VARIABLES).map(|shared| integer(self.master.store().get(shared as u32))).collect()
    }
}

fn add(number: i64) -> Operation {
    Operation::Add(Value::Int(number))
}

fn integer(value: Value) -> i64 {
    match value {
        Value::Int(value) => value,
        Value::Float(value) => panic!("{value} is no integer"),
    }
}
