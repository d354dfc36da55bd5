//! Simulates machines with 1 to 512 CPUs whose threads send each other messages in pairs, with the
//! measured time under the lock and a time for which the lock goes from CPU to CPU.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use attune_simulator::interpreter::Interpreter;
use attune_simulator::{Options, Per, Workload, simulate_instances};
use serde::Serialize;

use super::lock::Cost;

/// CPUs that share a last-level cache.
pub const CACHE: u32 = 16;
/// Pairs of threads for each CPU: one of them is nearly always ready.
const PAIRS: u32 = 2;
/// Handing a lock over inside a cache and across, in ns.
const NEAR: f64 = 60.0;
const FAR: f64 = 200.0;
/// Simulated time, in ms: with more CPUs less is enough for as many messages.
const LONGEST: u32 = 40;
const SHORTEST: u32 = 4;

/// What is changed of the machines of one table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Case {
    /// Times are so many times [`NEAR`] and [`FAR`].
    pub hand_over: f64,
    /// The work between two messages is so many times what was measured.
    pub work: f64,
}

/// One simulated machine.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub per: &'static str,
    pub cpus: u32,
    pub case: Case,
    /// Messages a second.
    pub rate: f64,
    /// Part of all CPU time that went into waiting for locks.
    pub waits: f64,
}

/// One machine under the policy, which costs so much.
pub fn run(policy: &Interpreter, cost: &Cost, per: Per, cpus: u32, case: Case) -> Result<Point> {
    let text = workload(cost, cpus, case);
    let workload = Workload::from_toml(&text, "scale.toml").map_err(|error| anyhow!("{error}"))?;
    let options = Options { cpus: Some(cpus), per, ..Options::default() };
    let outcome = simulate_instances(|| policy.clone(), &workload, &options)
        .map_err(|error| anyhow!("{cpus} CPUs, per {}: {error}", per.name()))?;
    let waited: i64 = outcome.cpus().iter().map(|cpu| cpu.lock_wait).sum();
    let elapsed = outcome.elapsed() as f64;
    Ok(Point {
        per: per.name(),
        cpus,
        case,
        rate: outcome.total().jobs as f64 * 1e9 / elapsed,
        waits: waited as f64 / elapsed / f64::from(cpus),
    })
}

/// Each thread of a pair works for a message, sends it, and waits for the next.
fn workload(cost: &Cost, cpus: u32, case: Case) -> String {
    let hold = cost.held / cost.calls;
    let work = (cost.message - cost.held) * case.work;
    let milliseconds = (LONGEST * 16 / (cpus + 15)).max(SHORTEST);
    let mut text = format!(
        "duration = \"{milliseconds}ms\"\ncpus_per_cache = {CACHE}\n[scheduler_lock]\n\
         hold = \"{hold:.0}ns\"\nnear = \"{:.0}ns\"\nfar = \"{:.0}ns\"\n",
        NEAR * case.hand_over,
        FAR * case.hand_over,
    );
    // Times of equal length would keep all CPUs in step.
    let work = format!("{{ compute = \"uniform({:.0}ns, {:.0}ns)\" }}", work * 0.5, work * 1.5);
    for pair in 0..PAIRS * cpus {
        let send = |to| format!("{{ send = \"{to}{pair}\", value = 1 }}");
        let receive = |at| format!("{{ receive = \"{at}{pair}\", into = \"got\" }}");
        let mut thread = |name: &str, steps: [&str; 3]| {
            let _ = write!(
                text,
                "[[thread]]\nname = \"{name}{pair}\"\nrepeat = \"forever\"\n\
                 do = [{{ job = [{}] }}]\n",
                steps.join(", ")
            );
        };
        thread("asks", [&work, &send("there"), &receive("back")]);
        thread("answers", [&receive("there"), &work, &send("back")]);
    }
    text
}
