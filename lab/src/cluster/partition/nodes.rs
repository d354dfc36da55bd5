//! Nodes that decide all the time: each on a thread of its own, with what an engine's node has.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use attune_cluster_local::connection::Connection;
use attune_language::ir::Value;
use attune_language::resolve::SourceText;
use attune_language::{Options, check};
use attune_linux::time;
use attune_replica::messages::Target;
use attune_replica::{Operation, Schema, Time};
use serde::Serialize;

use super::{MASTER, WORKER};

/// Between two decisions, and between two samples.
const PAUSE: Duration = Duration::from_millis(2);
const SAMPLE: Duration = Duration::from_millis(20);
/// Room for the samples of five minutes. A list that grows moves, and other threads of the process
/// wait for the memory meanwhile.
const ROOM: usize = 15_000;
/// How long all nodes may take to know the same in the end.
const SETTLE: Duration = Duration::from_secs(60);

/// What a node saw.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub machine: usize,
    pub node: usize,
    /// Seconds since the start.
    pub at: f64,
    /// Seconds.
    pub age: f64,
    pub here: i64,
}

#[derive(Debug, Serialize)]
pub struct Outcome {
    pub decisions: u64,
    /// Decisions in which the thread gave up its CPU to wait.
    pub waits: u64,
    /// What each node reads in the end.
    pub read: Vec<i64>,
    pub samples: Vec<Sample>,
}

/// What the nodes' threads have in common.
#[derive(Default)]
struct Board {
    /// Nobody adds any more.
    is_over: AtomicBool,
    /// Nodes that add no more.
    quiet: AtomicU64,
    decisions: AtomicU64,
}

struct Single {
    waits: u64,
    read: i64,
    samples: Vec<Sample>,
}

pub struct Nodes {
    board: Arc<Board>,
    threads: Vec<JoinHandle<Result<Single>>>,
}

/// The farm's schema.
pub fn schema() -> Result<Arc<Schema>> {
    let main = SourceText { name: "farm.sched".into(), text: MASTER.into() };
    let files: &[(&str, &str)] = &[("worker.subsched", WORKER)];
    let checked = check(&main, &mut { files }, &Options::default());
    let cluster = checked.cluster.as_ref().context("the farm's text has errors")?;
    Ok(Arc::new(Schema::new(cluster, &checked.sources, &Default::default())))
}

pub fn number(node: &Connection, name: &str) -> i64 {
    let replica = node.replica();
    let Some(shared) = replica.schema().shared(name) else { return 0 };
    match replica.shared(shared) {
        Value::Int(value) => value,
        Value::Float(value) => value as i64,
    }
}

pub fn add(node: &mut Connection, name: &str) {
    if let Some(shared) = node.replica().schema().shared(name) {
        node.replica_mut().write(Target::Shared(shared), Operation::Add(Value::Int(1)));
    }
}

impl Nodes {
    pub fn start(folder: &Path, machines: &[&str], each: usize, begin: Instant) -> Result<Nodes> {
        let board = Arc::new(Board::default());
        let schema = schema()?;
        let mut threads = Vec::new();
        let all = machines.len() * each;
        for (machine, name) in machines.iter().enumerate() {
            let path = folder.join(name).join("farm");
            for node in 0..each {
                let (schema, path, board) = (schema.clone(), path.clone(), board.clone());
                threads.push(std::thread::spawn(move || {
                    decide(schema, path, (machine, node), all as u64, begin, &board)
                }));
            }
        }
        Ok(Nodes { board, threads })
    }

    /// Waits until all nodes know what all have written.
    pub fn finish(self) -> Result<Outcome> {
        self.board.is_over.store(true, Ordering::SeqCst);
        let mut outcome = Outcome { decisions: 0, waits: 0, read: vec![], samples: vec![] };
        for thread in self.threads {
            let single = thread.join().map_err(|_| anyhow!("a node's thread has panicked"))??;
            outcome.waits += single.waits;
            outcome.read.push(single.read);
            outcome.samples.extend(single.samples);
        }
        outcome.decisions = self.board.decisions.load(Ordering::SeqCst);
        ensure!(outcome.decisions > 0, "no node has decided");
        Ok(outcome)
    }
}

fn decide(
    schema: Arc<Schema>,
    path: PathBuf,
    (machine, number_of_node): (usize, usize),
    all: u64,
    begin: Instant,
    board: &Board,
) -> Result<Single> {
    let mut node = Connection::new(schema, 0, path);
    let samples = Vec::with_capacity(ROOM);
    let mut single = Single { waits: 0, read: 0, samples };
    let mut next_sample = begin;
    while !board.is_over.load(Ordering::SeqCst) {
        let before = waits();
        let now = time::now() as Time;
        let age = node.replica().age(now);
        let (_, here) = (number(&node, "jobs"), number(&node, "here"));
        add(&mut node, "jobs");
        node.exchange(now);
        single.waits += u64::from(waits() != before);
        board.decisions.fetch_add(1, Ordering::SeqCst);
        // Before it has heard of the manager for the first time, nothing has an age.
        if Instant::now() >= next_sample && age != Time::MAX {
            next_sample = Instant::now() + SAMPLE;
            let (at, age) = (begin.elapsed().as_secs_f64(), age as f64 / 1e9);
            single.samples.push(Sample { machine, node: number_of_node, at, age, here });
        }
        std::thread::sleep(PAUSE);
    }
    board.quiet.fetch_add(1, Ordering::SeqCst);
    let until = Instant::now() + SETTLE;
    loop {
        node.exchange(time::now() as Time);
        single.read = number(&node, "jobs");
        let is_quiet = board.quiet.load(Ordering::SeqCst) == all;
        let decisions = board.decisions.load(Ordering::SeqCst) as i64;
        let is_done = is_quiet && node.replica().is_settled() && single.read == decisions;
        if is_done || Instant::now() > until {
            return Ok(single);
        }
        std::thread::sleep(PAUSE);
    }
}

/// How often this thread has given up its CPU to wait.
fn waits() -> i64 {
    // SAFETY: an rusage of zeroes is valid, and the kernel writes one there.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nvcsw
    }
}
