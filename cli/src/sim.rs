//! `attune sim`: a scheduler under a workload, in virtual time.

mod cluster;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use attune_lab::workloads;
use attune_language::engine::Engine;
use attune_language::ir::{Global, Program, Storage, Type};
use attune_language::syntax::ast::LiteralValue;
use attune_simulator::cluster::ClusterWorkload;
use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::scheduler::{MAX_CPUS, Value};
use attune_simulator::{Options, Per, Workload, simulate_instances};

use crate::args::{PerArg, SimArgs};
use crate::failure::Failure;
use crate::output;
use crate::source::{accepted, checked};

pub fn run(args: &SimArgs) -> Result<ExitCode, Failure> {
    if let Some(cpus) = args.cpus.filter(|cpus| !(1..=MAX_CPUS).contains(cpus)) {
        return Err(Failure::usage(format!(
            "--cpus {cpus}: the simulator has 1 to {MAX_CPUS} CPUs"
        )));
    }
    let checked = checked(&args.scheduler, &args.source)?;
    if checked.cluster.is_some() {
        return cluster::run(&checked, args);
    }
    let (program, _) = accepted(&checked, Engine::Simulator)?;
    let workload = read_workload(&args.workload)?;

    let defaults = Options::default();
    let options = Options {
        cpus: args.cpus,
        per: per(args.per, program)?,
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

    let outcome = simulate_instances(|| policy.clone(), &workload, &options)
        .map_err(|diagnostic| Failure::wrong(diagnostic.to_string()))?;
    tell(
        args,
        outcome.warnings(),
        || outcome.html(),
        || outcome.perfetto(),
        &if args.json { outcome.json() } else { outcome.table() },
    )
}

/// Says what came of a run, and writes the page and the trace that were asked for.
fn tell(
    args: &SimArgs,
    warnings: &[impl Display],
    page: impl FnOnce() -> String,
    trace: impl FnOnce() -> Vec<u8>,
    result: &str,
) -> Result<ExitCode, Failure> {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    if let Some(path) = &args.report {
        output::write(path, page())?;
    }
    if let Some(path) = &args.trace {
        output::write(path, trace())?;
    }
    output::print(result)?;
    Ok(ExitCode::SUCCESS)
}

/// A scheduler that orders a whole machine runs as one instance.
fn per(asked: Option<PerArg>, program: &Program) -> Result<Per, Failure> {
    let per = match asked {
        None if program.may_be_split => Per::Cache,
        None | Some(PerArg::Machine) => Per::Machine,
        Some(PerArg::Cache) => Per::Cache,
        Some(PerArg::Cpu) => Per::Cpu,
    };
    if per == Per::Machine || program.may_be_split {
        return Ok(per);
    }
    Err(Failure::usage(format!(
        "--per {}: `{}` has no `arrives` of its own, so it orders the whole machine; leave out \
         --per, or say in the scheduler what happens to a thread that arrives from another \
         instance",
        per.name(),
        program.name
    )))
}

fn read_workload(path: &Path) -> Result<Workload, Failure> {
    let (text, name) = workload_text(path)?;
    if ClusterWorkload::is_meant(&text) {
        return Err(Failure::usage(format!(
            "{name} is the workload of a cluster, and this is no distributed scheduler: name a \
             master, such as examples/pool/pool.sched"
        )));
    }
    Workload::from_file_text(&text, &name)
        .map_err(|diagnostic| Failure::wrong(diagnostic.to_string()))
}

/// The text and the name of a file, or of a workload that is built in.
fn workload_text(path: &Path) -> Result<(String, String), Failure> {
    let text = match (path.exists(), workloads::find(path)) {
        (false, Some((name, text))) => Ok((text.to_owned(), name.to_owned())),
        _ => attune_schedulers::read_text(path).map(|text| (text, path.display().to_string())),
    };
    text.map_err(|error| {
        let names = workloads::names().join(", ");
        Failure::usage(format!(
            "cannot read the workload {}: {error}; built in are {names}",
            path.display()
        ))
    })
}

/// `NAME=VALUE`, the value written as in a scheduler.
fn set(policy: &mut Interpreter, program: &Program, setting: &str) -> Result<(), Failure> {
    let Some((name, text)) = setting.split_once('=') else {
        return Err(Failure::usage(format!(
            "--set {setting}: wants NAME=VALUE, such as period=10ms"
        )));
    };
    let tunables: Vec<&Global> =
        program.globals.values().filter(|global| global.storage == Storage::Tunable).collect();
    let Some(tunable) = tunables.iter().find(|global| global.name == name) else {
        let names: Vec<&str> = tunables.iter().map(|global| global.name.as_str()).collect();
        let has = if names.is_empty() { "none".to_string() } else { names.join(", ") };
        return Err(Failure::usage(format!(
            "--set {setting}: no tunable {name}; this scheduler has {has}"
        )));
    };
    policy.set_tunable(name, literal(setting, name, text, tunable.ty)?);
    Ok(())
}

/// The value of a setting, for a variable of that type.
fn literal(setting: &str, name: &str, text: &str, ty: Type) -> Result<Value, Failure> {
    Ok(match (LiteralValue::parse(text), ty) {
        (Some(LiteralValue::Int(value)), Type::Float) => Value::Float(value as f64),
        (Some(LiteralValue::Float(value)), Type::Float) => Value::Float(value),
        (Some(LiteralValue::Int(value)), Type::Int) => Value::Int(value),
        // Nothing has no unit.
        (Some(LiteralValue::Int(0)), Type::Time) => Value::Int(0),
        (Some(LiteralValue::Bool(value)), Type::Int) => Value::Int(i64::from(value)),
        (Some(LiteralValue::Time(value)), Type::Time) => Value::Int(value),
        (_, ty) => {
            let example = match ty {
                Type::Int => "3",
                Type::Float => "0.5",
                Type::Time => "10ms",
            };
            return Err(Failure::usage(format!(
                "--set {setting}: wants a value such as {name}={example}"
            )));
        }
    })
}
