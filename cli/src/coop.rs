//! `attune coop run` preloads the library by which a program's poll-type calls cooperate
//! (knowledge/coop/preload); `attune coop status` tells whether programs cooperate.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use attune_coop::Wanted;
use attune_kernel::Snapshot;
use attune_kernel::snapshot::{PolicySnapshot, ThreadSnapshot};
use attune_values::wire::Request;

use crate::args::{CoopArgs, CoopCommand, CoopRunArgs};
use crate::child::cannot_run;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output;

/// The dynamic linker loads these libraries before all others; colons separate them.
const PRELOAD: &str = "LD_PRELOAD";
const LIBRARY: &str = "libattune_coop_preload.so";

pub fn run(args: &CoopArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        CoopCommand::Run(args) => become_command(args),
        CoopCommand::Status(args) => status(args.transport.as_deref()),
    }
}

/// Whether cooperation is in force: opens the transport as a program would that starts now.
fn status(transport: Option<&str>) -> Result<ExitCode, Failure> {
    let wanted = transport.map_or(Ok(Wanted::Auto), wanted)?;
    let opened = attune_coop::open(wanted)
        .map_err(|error| Failure::wrong(format!("programs cannot cooperate: {error}")))?;
    let text = match opened.name() {
        "kernel" => match Engine::connect().and_then(|engine| engine.ask(&Request::Snapshot)) {
            Ok(snapshot) => format!("kernel: {}", cooperating(&snapshot)),
            Err(_) => "kernel: a scheduler listens".to_owned(),
        },
        "shared" => "shared: programs of this user cooperate through shared memory".to_owned(),
        name => format!(
            "{name}: programs that start now do not cooperate. No scheduler in the kernel listens \
             (`attune run coop --all` does), and neither --transport nor ATTUNE_COOP names another \
             transport"
        ),
    };
    output::print(&(text + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The threads that have told the scheduler a release time.
fn cooperating(snapshot: &Snapshot) -> String {
    let policies = snapshot.policies.iter();
    let threads =
        policies.clone().flat_map(|policy| policy.threads().map(move |thread| (policy, thread)));
    let told = |it: &(&PolicySnapshot, &ThreadSnapshot), name| it.0.value(it.1, name) > Some(0);
    let polling: Vec<_> = threads.filter(|it| told(it, "polls")).collect();
    let implicit = polling.iter().filter(|it| told(it, "implicit")).count();
    let at_least = match policies.clone().any(|policy| policy.left_out > 0) {
        true => "at least ",
        false => "",
    };
    let names: Vec<&str> = policies.map(|policy| policy.scheduler.as_str()).collect();
    format!(
        "{} listens; {at_least}{} threads cooperate, {implicit} of them implicitly",
        names.join(" and "),
        polling.len()
    )
}

fn wanted(transport: &str) -> Result<Wanted, Failure> {
    transport.parse().map_err(|error| Failure::usage(format!("--transport {transport}: {error}")))
}

/// Returns only when the command cannot be started.
fn become_command(args: &CoopRunArgs) -> Result<ExitCode, Failure> {
    let Some((program, arguments)) = args.words.split_first() else {
        return Err(Failure::usage("no command was given"));
    };
    let mut preload: OsString = library()?.into();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let mut command = Command::new(program);
    command.args(arguments).env(PRELOAD, preload);
    if let Some(transport) = &args.transport {
        wanted(transport)?;
        command.env("ATTUNE_COOP", transport);
    }
    Err(cannot_run(program, &command.exec()))
}

/// Cargo puts it beside this program.
fn library() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::wrong(format!("cannot find this program's folder: {error}")))?;
    let library = own.with_file_name(LIBRARY);
    if library.exists() {
        return Ok(library);
    }
    Err(Failure::wrong(format!(
        "{} is not there; build it with: cargo build --release -p attune-coop-preload",
        library.display()
    )))
}
