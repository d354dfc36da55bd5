//! Random histories: nodes write, read and ask while messages are delayed, lost, repeated and
//! overtake each other, links are cut, nodes crash or are given up, and the manager is killed.
//! Afterwards checkers look at what each node saw, at what each request was answered, and at what
//! the store holds.
//!
//! Variants of the protocol that are wrong on purpose must be caught by the same checkers.

mod causal;
mod linearizable;
#[path = "../support/mod.rs"]
mod support;
mod world;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use support::{Fixture, fixture};
use world::{NODES, World};

/// Each node has a sum of its own among the shared variables, so that what it wrote can be read off
/// any copy: `x0` counts the writes of node 0. Requests are about `other` and `second`.
const MASTER: &str = r#"distributed scheduler m {
    nodefamilies { "n.subsched" : n; }
    nodes { queue all; }
    global { int x0, x1, x2, x3; int sum = 0; int other = 0; int second = 0; }
    arrival (n) { n => all; }
}"#;
const NODE: &str = "scheduler n {
    data { threadref current; queue ready; }
    event newthread(t) { t => ready; }
    event schedule { if (|ready| > 0) { ready => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => ready; }
}";

fn cluster() -> Fixture {
    fixture(&[("m.sched", MASTER), ("n.subsched", NODE)], &[])
}

/// One thing that happens; the numbers choose among what there is.
#[derive(Clone, Debug)]
pub enum Step {
    /// A node adds 1 to its own count and to the sum, together.
    Write(usize),
    /// A node looks at all counts, in one handler.
    Look(usize),
    /// A thread of a node asks the owner.
    Ask(usize, Asked),
    NodeSends(usize, bool),
    MasterSends(usize, bool),
    /// The message of that number among those on their way arrives, is lost, or is repeated.
    Arrives(usize),
    Lost(usize),
    Repeated(usize),
    /// The link of a node is cut, or joined again: what arrives meanwhile is lost.
    Cut(usize, bool),
    /// The master gives a node up, which comes back when it hears of it.
    GivenUp(usize),
    /// The node is gone for good, with all that it had not sent.
    Crash(usize),
    /// The manager is killed, and another goes on with what it has kept.
    Killed,
}

/// What a thread asks the owner to do.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    Read {
        second: bool,
    },
    Add {
        second: bool,
    },
    Set(i64),
    /// Both numbers, together.
    Both(i64),
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        3 => any::<bool>().prop_map(|second| Asked::Read { second }),
        3 => any::<bool>().prop_map(|second| Asked::Add { second }),
        1 => (10..90i64).prop_map(Asked::Set),
        2 => (1000..9000i64).prop_map(Asked::Both),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    let some = any::<bool>();
    prop_oneof![
        6 => node.clone().prop_map(Step::Write),
        4 => node.clone().prop_map(Step::Look),
        3 => (node.clone(), asked()).prop_map(|(node, asked)| Step::Ask(node, asked)),
        6 => (node.clone(), some).prop_map(|(node, again)| Step::NodeSends(node, again)),
        6 => (node.clone(), some).prop_map(|(node, again)| Step::MasterSends(node, again)),
        14 => (0..1000usize).prop_map(Step::Arrives),
        2 => (0..1000usize).prop_map(Step::Lost),
        2 => (0..1000usize).prop_map(Step::Repeated),
        1 => (node.clone(), some).prop_map(|(node, cut)| Step::Cut(node, cut)),
        1 => node.clone().prop_map(Step::GivenUp),
        1 => node.prop_map(Step::Crash),
        1 => Just(Step::Killed),
    ]
}

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    Right,
    /// The network delivers a batch under a new number each time, so that repetitions count.
    BatchesCountTwice,
    /// Likewise requests.
    RequestsCountTwice,
    /// The owner does the writes of one request one by one.
    RequestsInPieces,
    /// Reads of the request model come from the node's copy.
    ReadsFromTheCopy,
    /// A node takes half of the news only.
    NewsInPieces,
    /// The manager keeps what it has said only now and then.
    SpeaksBeforeItKeeps,
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
    for (variant, name, least) in [
        (Variant::BatchesCountTwice, "batches count twice", 20),
        (Variant::RequestsCountTwice, "requests count twice", 20),
        (Variant::RequestsInPieces, "requests in pieces", 5),
        (Variant::ReadsFromTheCopy, "reads from the copy", 20),
        (Variant::NewsInPieces, "news in pieces", 20),
        (Variant::SpeaksBeforeItKeeps, "speaks before it keeps", 20),
    ] {
        let caught = refused(variant);
        assert!(caught >= least, "{name}: {caught} of 500");
    }
}
