//! What an atomic `+=` costs by a manager and etcd, and what a compare-and-swap by etcd's own
//! client costs beside it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use attune_cluster_local::connection::Connection;
use attune_linux::child::end_with_parent;
use attune_linux::poll;
use attune_linux::time;
use attune_replica::Time;
use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};
use serde::Serialize;
use tokio::runtime::Runtime;

use super::nodes;
use super::{Etcd, Manager};
use crate::experiment::Options;
use crate::median_interval::{self, Median};

/// Between two updates: longer than a manager gathers writes.
const PAUSE: Duration = Duration::from_millis(8);
const KEY: &str = "attune-lab/number";

/// Seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pair {
    pub swap: f64,
    pub update: f64,
}

pub struct Ratio {
    /// Medians, in microseconds.
    pub swap: f64,
    pub update: f64,
    pub ratio: Median,
}

pub fn ratio(pairs: &[Pair]) -> Result<Ratio> {
    let median = |figure: fn(&Pair) -> f64| {
        let values: Vec<f64> = pairs.iter().map(figure).collect();
        median_interval::of(&values).context("no pair")
    };
    Ok(Ratio {
        swap: median(|pair| pair.swap * 1e6)?.value,
        update: median(|pair| pair.update * 1e6)?.value,
        ratio: median(|pair| pair.update / pair.swap)?,
    })
}

pub fn pairs(options: &Options, folder: &Path, count: usize) -> Result<Vec<Pair>> {
    let mut etcd = Etcd::on_loopback(&folder.join("etcd-alone"))?;
    etcd.wait()?;
    let mut command = Command::new(options.programs.join("attune"));
    end_with_parent(&mut command);
    let _manager = Manager::start(command, folder, "alone", etcd.address())?;
    let mut node = Connection::new(nodes::schema()?, 0, folder.join("alone/farm"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut swap = Swap::new(runtime, etcd.address())?;
    settle(&mut node)?;
    let mut pairs = Vec::new();
    for number in 0..count {
        let mut pair = Pair { swap: 0.0, update: 0.0 };
        for half in 0..2 {
            std::thread::sleep(PAUSE);
            if (number + half) % 2 == 0 {
                pair.swap = swap.once()?;
            } else {
                let begin = Instant::now();
                nodes::add(&mut node, "jobs");
                settle(&mut node)?;
                pair.update = begin.elapsed().as_secs_f64();
            }
        }
        pairs.push(pair);
    }
    ensure!(nodes::number(&node, "jobs") == count as i64, "an update was lost or doubled");
    Ok(pairs)
}

/// Waits until the manager has counted all that the node wrote.
fn settle(node: &mut Connection) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        node.exchange(time::now() as Time);
        if node.replica().is_settled() {
            return Ok(());
        }
        ensure!(Instant::now() < until, "the manager does not answer");
        let socket = node.descriptor().unwrap_or(-1);
        poll::wait(&mut [poll::readable(socket)], 100 * time::MILLISECOND)?;
    }
}

/// The client's compare-and-swap of a number whose revision it knows: one transaction.
struct Swap {
    runtime: Runtime,
    client: Client,
    revision: i64,
    number: u64,
}

impl Swap {
    fn new(runtime: Runtime, address: &str) -> Result<Swap> {
        let (client, revision) = runtime.block_on(async {
            let mut client = Client::connect([address], None).await?;
            let put = client.put(KEY, 0u64.to_le_bytes(), None).await?;
            let revision = put.header().map_or(0, |header| header.revision());
            anyhow::Ok((client, revision))
        })?;
        Ok(Swap { runtime, client, revision, number: 0 })
    }

    /// How long one takes, in seconds.
    fn once(&mut self) -> Result<f64> {
        let begin = Instant::now();
        self.number += 1;
        let same = Compare::mod_revision(KEY, CompareOp::Equal, self.revision);
        let put = TxnOp::put(KEY, self.number.to_le_bytes(), None);
        let transaction = Txn::new().when([same]).and_then([put]);
        let answer = self.runtime.block_on(self.client.txn(transaction))?;
        ensure!(answer.succeeded(), "somebody else has changed the number");
        self.revision = answer.header().map_or(0, |header| header.revision());
        Ok(begin.elapsed().as_secs_f64())
    }
}
