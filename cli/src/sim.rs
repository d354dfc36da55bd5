//! `attune sim`: a scheduler under a workload, in virtual time.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use attune_language::event::Engine;
use attune_language::ir::{Global, Program, Storage, Type};
use attune_language::syntax::ast::LiteralValue;
use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::policy::{MAX_CPUS, Value};
use attune_simulator::{Options, Workload, simulate};

use crate::args::SimArgs;
use crate::failure::Failure;
use crate::output;
use crate::source::{accepted, checked};

pub fn run(args: &SimArgs) -> Result<ExitCode, Failure> {
    if let Some(cpus) = args.cpus.filter(|cpus| !(1..=MAX_CPUS).contains(cpus)) {
        return Err(Failure::usage(format!("--cpus {cpus}: the simulator has 1 to {MAX_CPUS} CPUs")));
    }
    let checked = checked(&args.scheduler, &args.source)?;
    let (program, _) = accepted(&checked, Engine::Simulator)?;
    let workload = read_workload(&args.workload)?;

    let defaults = Options::default();
    let options = Options {
        cpus: args.cpus,
        seed: args.seed.unwrap_or(defaults.seed),
        trace: args.trace.is_some(),
        ..defaults
    };
    let program = Arc::new(program.clone());
    let settings = interpreter::Options { debug: args.debug, ..interpreter::Options::default() };
    let mut policy = Interpreter::new(program.clone(), &checked.sources, settings)
        .map_err(|refusal| Failure::wrong(refusal.to_string()))?;
    for setting in &args.set {
        set(&mut policy, &program, setting)?;
    }

    let outcome = simulate(&mut policy, &workload, &options)
        .map_err(|diagnostic| Failure::wrong(diagnostic.to_string()))?;
    for warning in outcome.warnings() {
        eprintln!("warning: {warning}");
    }
    if let Some(path) = &args.report {
        output::write(path, outcome.html())?;
    }
    if let Some(path) = &args.trace {
        output::write(path, outcome.perfetto())?;
    }
    output::print(&if args.json { outcome.json() } else { outcome.table() })?;
    Ok(ExitCode::SUCCESS)
}

fn read_workload(path: &Path) -> Result<Workload, Failure> {
    let text = attune_schedulers::read_text(path).map_err(|error| Failure::file("read", path, error))?;
    Workload::from_file_text(&text, &path.display().to_string())
        .map_err(|diagnostic| Failure::wrong(diagnostic.to_string()))
}

/// `NAME=VALUE`, the value written as in a scheduler.
fn set(policy: &mut Interpreter, program: &Program, setting: &str) -> Result<(), Failure> {
    let Some((name, text)) = setting.split_once('=') else {
        return Err(Failure::usage(format!("--set {setting}: wants NAME=VALUE, such as period=10ms")));
    };
    let tunables: Vec<&Global> =
        program.globals.values().filter(|global| global.storage == Storage::Tunable).collect();
    let Some(tunable) = tunables.iter().find(|global| global.name == name) else {
        let names: Vec<&str> = tunables.iter().map(|global| global.name.as_str()).collect();
        let has = if names.is_empty() { "none".to_string() } else { names.join(", ") };
        return Err(Failure::usage(format!("--set {setting}: no tunable {name}; this scheduler has {has}")));
    };
    let value = match (LiteralValue::parse(text), tunable.ty) {
        (Some(LiteralValue::Int(value)), Type::Float) => Value::Float(value as f64),
        (Some(LiteralValue::Float(value)), Type::Float) => Value::Float(value),
        (Some(LiteralValue::Int(value)), _) => Value::Int(value),
        (Some(LiteralValue::Bool(value)), Type::Int) => Value::Int(i64::from(value)),
        (Some(LiteralValue::Time(value)), Type::Time) => Value::Int(value),
        (_, ty) => {
            let example = match ty {
                Type::Int => "3",
                Type::Float => "0.5",
                Type::Time => "10ms",
            };
            return Err(Failure::usage(format!("--set {setting}: wants a value such as {name}={example}")));
        }
    };
    policy.set_tunable(name, value);
    Ok(())
}
