//! The commands of the conformance tests; CONTRIBUTING.md says when to use which.

use std::process::ExitCode;

use attune_conformance::{generator, proof};
use clap::{Args, Parser, Subcommand};

/// Tests that every engine means the same by a scheduler.
#[derive(Parser)]
struct Words {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print a random scheduler
    Generate {
        #[command(flatten)]
        chance: Chance,
    },
    /// Run random schedulers and look for a proved check that fails
    Proof {
        /// Random schedulers
        #[arg(long, default_value_t = 300)]
        cases: u64,
        /// Event sequences for each scheduler and engine
        #[arg(long, default_value_t = 20)]
        runs: u64,
        /// Steps of an event sequence
        #[arg(long, default_value_t = 150)]
        steps: usize,
        #[command(flatten)]
        chance: Chance,
    },
}

#[derive(Args, Clone, Copy)]
struct Chance {
    /// The same seed makes the same cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// About so many statements in a handler
    #[arg(long, default_value_t = 6)]
    size: usize,
}

fn main() -> ExitCode {
    match Words::parse().command {
        Command::Generate { chance } => {
            println!("{}", generator::scheduler(chance.seed, chance.size).listing());
            ExitCode::SUCCESS
        }
        Command::Proof { cases, runs, steps, chance } => {
            let Chance { seed, size } = chance;
            let report = proof::run(&proof::Effort { schedulers: cases, runs, steps, seed, size });
            println!("{}", report.table());
            first_of(&report.wrong)
        }
    }
}

/// Shows the first of the things that went wrong, if any did.
fn first_of(wrong: &[String]) -> ExitCode {
    match wrong.first() {
        None => ExitCode::SUCCESS,
        Some(first) => {
            println!("{first}");
            ExitCode::FAILURE
        }
    }
}
