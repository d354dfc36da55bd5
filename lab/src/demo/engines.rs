//! Runs one policy in two engines: the simulator interprets its text, and a program's threads
//! follow the same text compiled. Each sends the same replies; the order of the chunks tells the
//! decisions.

use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use attune_simulator::{Workload, simulate};
use serde::Serialize;
use serde_json::Value;

use crate::experiment::{Options, Progress};
use crate::report::Claim;
use crate::{files, schedulers};

const POLICIES: [&str; 2] = ["fifo", "shortest_reply"];
/// Chunks of each reply.
const REPLIES: [u32; 4] = [5, 1, 3, 2];
/// In the simulator a chunk takes a millisecond.
const CHUNK_NS: f64 = 1_000_000.0;

/// A policy's decisions, a letter for each chunk: the reply that it belongs to.
#[derive(Serialize)]
pub struct Orders {
    policy: &'static str,
    simulator: String,
    program: String,
}

impl Orders {
    pub fn claim(&self) -> Claim {
        let Orders { policy, simulator, program } = self;
        let same = simulator == program;
        let found = if same {
            simulator.clone()
        } else {
            format!("the simulator {simulator}, the program {program}")
        };
        Claim::new(
            format!("{policy} chooses the same order in the simulator and in a program"),
            Some((same, found)),
        )
    }

    /// A label and its order, for a picture.
    pub fn rows(&self) -> [(String, String); 2] {
        let label = |engine| format!("{}, {engine}", self.policy);
        [(label("simulator"), self.simulator.clone()), (label("program"), self.program.clone())]
    }
}

pub fn compare(options: &Options, progress: Progress) -> Result<Vec<Orders>> {
    let orders = POLICIES.iter().map(|policy| {
        progress(&format!("{policy} in the simulator and in a program"));
        Ok(Orders { policy, simulator: simulated(policy)?, program: program(policy, options)? })
    });
    orders.collect()
}

/// Four threads, each with chunks to send; it yields before each chunk.
fn workload() -> String {
    let thread = |(name, chunks): (char, u32)| {
        format!(
            "[[thread]]\nname = \"{name}\"\nimports = {{ remaining = {chunks} }}\ndo = [{{ while = \
             \"remaining > 0\", do = [\"yield\", {{ compute = \"1ms\" }}, {{ set = {{ remaining = \
             \"remaining - 1\" }} }}] }}]\n"
        )
    };
    let threads: String = ('A'..).zip(REPLIES).map(thread).collect();
    format!("duration = \"1s\"\ncpus = 1\n{threads}")
}

fn simulated(policy: &str) -> Result<String> {
    let workload =
        Workload::from_toml(&workload(), "replies").map_err(|error| anyhow!("{error}"))?;
    let options = attune_simulator::Options { trace: true, ..Default::default() };
    let mut interpreter = schedulers::interpret(policy)?;
    let outcome =
        simulate(&mut interpreter, &workload, &options).map_err(|error| anyhow!("{error}"))?;
    let letters = outcome.stays().into_iter().map(|(thread, lasts)| {
        let chunks = (lasts as f64 / CHUNK_NS).round() as usize;
        Some(thread.get(..1)?.repeat(chunks))
    });
    letters.collect::<Option<String>>().context("a stay of a thread without a name")
}

fn program(policy: &str, options: &Options) -> Result<String> {
    let folder = options.folder.join("schedulers");
    files::create_folder(&folder)?;
    let compiled = folder.join(format!("{policy}.so"));
    schedulers::compile(policy, &compiled)?;
    let replies = options.programs.join("attune-replies");
    let chunks = REPLIES.map(|chunks| chunks.to_string()).join(",");
    let mut command = Command::new(&replies);
    command.args(["--chunks", &chunks]).env("ATTUNE_SCHED", &compiled);
    let output = command.output().with_context(|| format!("starting {}", replies.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{policy} in a program: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let result: Value = serde_json::from_str(&said).context("its result")?;
    Ok(result["order"].as_str().context("its order")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_follows_each_policy() {
        assert_eq!(simulated("fifo").unwrap(), "ABCDACDACAA");
        assert_eq!(simulated("shortest_reply").unwrap(), "BDDCCCAAAAA");
    }

    #[test]
    fn another_order_is_no_match() {
        let orders = |program: &str| Orders {
            policy: "fifo",
            simulator: "AB".to_owned(),
            program: program.to_owned(),
        };
        assert!(orders("AB").claim().holds() && !orders("BA").claim().holds());
    }
}
