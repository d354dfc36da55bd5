//! `attune coop run`: a program with the library preloaded by which its poll-type calls cooperate (knowledge/coop/preload).

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::args::{CoopArgs, CoopCommand, CoopRunArgs};
use crate::failure::Failure;

/// What the dynamic linker loads before all other libraries, separated by colons.
const PRELOAD: &str = "LD_PRELOAD";
const LIBRARY: &str = "libattune_coop_preload.so";

pub fn run(args: &CoopArgs) -> Result<ExitCode, Failure> {
    let CoopCommand::Run(args) = &args.command;
    become_command(args)
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
        transport
            .parse::<attune_coop::Wanted>()
            .map_err(|error| Failure::usage(format!("--transport {transport}: {error}")))?;
        command.env("ATTUNE_COOP", transport);
    }
    let error = command.exec();
    let status = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
    Err(Failure::with_status(format!("cannot run {}: {error}", program.to_string_lossy()), status))
}

/// It lies beside this program, where cargo puts both.
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
