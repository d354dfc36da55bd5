//! The `attune` program: only words and wiring. Each command is a module; what it does lives in the
//! crates.
//!
//! Exit status: 0 when all is well, 1 when a scheduler has errors or a run failed, 2 when the
//! command itself is wrong or a file cannot be read.

mod args;
mod bandwidth;
mod build;
mod check;
mod child;
mod coop;
mod diagram;
mod diary;
mod engine;
mod explain;
mod failure;
mod focus;
mod gateway;
mod hint;
mod join;
mod lab;
mod load;
mod manager;
mod node;
mod objects;
mod output;
mod period;
mod run;
mod schedulers;
mod set;
mod sim;
mod source;
mod status;
mod terms;
mod top;
mod trace;
mod tune;
mod vm;
mod worst_case;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Diagram(args) => diagram::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Bandwidth(args) => bandwidth::run(&args),
        Command::Period(args) => period::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Coop(args) => coop::run(&args),
        Command::Hint(args) => hint::run(&args),
        Command::Set(args) => set::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Manager(args) => manager::run(&args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Focus(args) => focus::run(&args),
        Command::TunerGuardian { journal } => tune::guard(&journal),
        Command::Vm(args) => vm::run(&args),
        Command::Schedulers(args) => schedulers::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
