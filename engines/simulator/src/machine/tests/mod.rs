//! Runs workloads on a machine with a plain policy: what the policy sees, and what comes out.

mod errors;
mod instances;
mod known;
mod life;
mod starvation;
mod synchronisation;

use crate::testing::Fifo;
use crate::{Options, Outcome, Workload, simulate};

fn run(policy: &mut Fifo, text: &str) -> Outcome {
    run_on(policy, text, 1)
}

fn run_on(policy: &mut Fifo, text: &str, cpus: u32) -> Outcome {
    let workload = Workload::from_toml(text, "w.toml").unwrap_or_else(|error| panic!("{error}"));
    let options = Options { cpus: Some(cpus), ..Options::default() };
    simulate(policy, &workload, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn fails(policy: &mut Fifo, text: &str) -> String {
    let workload = Workload::from_toml(text, "w.toml").unwrap_or_else(|error| panic!("{error}"));
    match simulate(policy, &workload, &Options::default()) {
        Ok(outcome) => panic!("it should have failed:\n{}", outcome.table()),
        Err(error) => error.to_string(),
    }
}
