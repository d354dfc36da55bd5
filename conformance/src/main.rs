//! The commands of the conformance tests; CONTRIBUTING.md says when to use which.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;

use attune_conformance::budget::Budget;
use attune_conformance::differential::Against;
use attune_conformance::mutants::{self, Fate, line, try_mutant};
use attune_conformance::{coverage, differential, generator, moves, proof, refuted};
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
        /// Leave guards out, so that many transfers always fail
        #[arg(long)]
        reckless: bool,
        #[command(flatten)]
        chance: Chance,
    },
    /// Compare interpreter and compiled code; a difference is shrunk and shown
    Differential {
        /// What the interpreter is compared with: C in this process, or BPF in this machine's
        /// kernel (as root)
        #[arg(long, value_enum, default_value_t = Engine::Threads)]
        engine: Engine,
        /// Schedulers of a cluster's nodes; what they write is compared, too
        #[arg(long)]
        nodes: bool,
        /// Random schedulers, each compiled once
        #[arg(long, default_value_t = 200)]
        cases: u64,
        /// Event sequences for each scheduler
        #[arg(long, default_value_t = 20)]
        runs: u64,
        /// Steps of an event sequence
        #[arg(long, default_value_t = 60)]
        steps: usize,
        /// Schedulers compiled and run at the same time
        #[arg(long, default_value_t = processors())]
        jobs: usize,
        #[command(flatten)]
        chance: Chance,
    },
    /// Put mistakes into the generated code one by one; each must be found
    Mutants {
        /// Only mutants of the code for this engine
        #[arg(long, value_enum)]
        engine: Option<Engine>,
        /// Only mutants whose name holds this
        #[arg(long, default_value = "")]
        name: String,
        /// Only the mutant of exactly this name, in this process, which it may crash
        #[arg(long, hide = true)]
        alone: Option<String>,
        /// Random schedulers for each mutant
        #[arg(long, default_value_t = 400)]
        cases: u64,
        /// Schedulers compiled and run at the same time
        #[arg(long, default_value_t = processors())]
        jobs: usize,
        #[command(flatten)]
        chance: Chance,
    },
    /// Run the kernel engine's C on this machine, behind a model of the kernel whose threads move
    /// between instances at random
    Moves {
        /// Random events on each machine
        #[arg(long, default_value_t = 100_000)]
        events: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Put mistakes into moves and balance one by one; each must be found
        #[arg(long)]
        mutants: bool,
        /// Only mutants whose name holds this
        #[arg(long, default_value = "")]
        name: String,
    },
    /// Say which of the language's operations random cases execute
    Coverage {
        /// Random schedulers
        #[arg(long, default_value_t = 1000)]
        cases: u64,
        #[command(flatten)]
        chance: Chance,
    },
    /// Run random schedulers that leave guards out and look for a refuted check that holds
    Refuted {
        /// Random schedulers
        #[arg(long, default_value_t = 1000)]
        cases: u64,
        /// Event sequences for each scheduler and engine
        #[arg(long, default_value_t = 10)]
        runs: u64,
        /// Steps of an event sequence
        #[arg(long, default_value_t = 100)]
        steps: usize,
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

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Threads,
    Embedded,
    Kernel,
}

impl Engine {
    fn against(self) -> Against {
        match self {
            Engine::Threads => Against::C,
            Engine::Embedded => Against::Embedded,
            Engine::Kernel => Against::Kernel,
        }
    }
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
        Command::Generate { reckless, chance } => {
            let scheduler = if reckless { generator::reckless } else { generator::scheduler };
            println!("{}", scheduler(chance.seed, chance.size).listing());
            ExitCode::SUCCESS
        }
        Command::Differential { engine, nodes, cases, runs, steps, jobs, chance } => {
            let Chance { seed, size } = chance;
            let budget = differential::Budget {
                against: engine.against(),
                nodes,
                schedulers: cases,
                runs,
                steps,
                seed,
                size,
                jobs,
                differences: 1,
                shrinking: 600,
            };
            let report = differential::run(&budget, &|text| Some(text.to_string()));
            println!("{}", report.summary());
            first_of(&report.differences)
        }
        Command::Mutants { alone: Some(name), cases, jobs, chance, .. } => {
            mutant_alone(&name, cases, jobs, chance)
        }
        Command::Mutants { name, engine, .. } => try_mutants(&name, engine),
        Command::Moves { events, seed, mutants, name } => {
            let done = if mutants {
                moves::try_mutants(&name, seed, events)
            } else {
                moves::try_all(seed, events)
            };
            done.unwrap_or_else(|error| {
                eprintln!("{error:#}");
                ExitCode::from(2)
            })
        }
        Command::Coverage { cases, chance } => {
            let Chance { seed, size } = chance;
            let budget = Budget { schedulers: cases, runs: 4, steps: 60, seed, size };
            println!("{}", coverage::run(&budget).table());
            ExitCode::SUCCESS
        }
        Command::Refuted { cases, runs, steps, chance } => {
            let Chance { seed, size } = chance;
            let report = refuted::run(&Budget { schedulers: cases, runs, steps, seed, size });
            println!("{}", report.table());
            first_of(&report.wrong)
        }
        Command::Proof { cases, runs, steps, chance } => {
            let Chance { seed, size } = chance;
            let report = proof::run(&Budget { schedulers: cases, runs, steps, seed, size });
            println!("{}", report.table());
            first_of(&report.wrong)
        }
    }
}

/// Prints the table as it grows. Each mutant has a process of its own with the same options: what
/// it does to memory is its own affair, and a crash is a difference like any other.
fn try_mutants(name: &str, engine: Option<Engine>) -> ExitCode {
    let mut missed = 0;
    let mut tried = 0;
    let wanted = |mutant: &&mutants::Mutant| {
        mutant.name.contains(name) && engine.is_none_or(|engine| engine.against() == mutant.against)
    };
    for mutant in mutants::all().filter(wanted) {
        let child = std::env::current_exe().and_then(|program| {
            std::process::Command::new(program)
                .args(std::env::args().skip(1))
                .args(["--alone", mutant.name])
                .status()
        });
        let caught = match child {
            Ok(status) => {
                if let Some(signal) = status.signal() {
                    println!("{}", line(mutant, Fate::Crashed { signal }));
                }
                status.success() || status.signal().is_some()
            }
            Err(error) => {
                println!("{}: no process for it: {error}", mutant.name);
                false
            }
        };
        tried += 1;
        missed += u32::from(!caught);
    }
    println!("{} of {tried} mutants caught", tried - missed);
    if missed == 0 && tried > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn mutant_alone(name: &str, schedulers: u64, jobs: usize, chance: Chance) -> ExitCode {
    let Chance { seed, size } = chance;
    let (runs, steps, differences, shrinking) = (10, 60, 1, 0);
    let Some(mutant) = mutants::all().find(|mutant| mutant.name == name) else {
        eprintln!("no mutant is named {name}");
        return ExitCode::from(2);
    };
    let mutants::Mutant { against, nodes, .. } = *mutant;
    let budget = differential::Budget {
        against,
        nodes,
        schedulers,
        runs,
        steps,
        seed,
        size,
        jobs,
        differences,
        shrinking,
    };
    let fate = try_mutant(mutant, &budget);
    println!("{}", line(mutant, fate));
    if matches!(fate, Fate::Caught { .. }) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
