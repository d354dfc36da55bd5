//! `attune build`: a scheduler compiled for an engine.

use std::path::Path;
use std::process::ExitCode;

use attune_backend_c as c;
use attune_language::event::Engine;

use crate::args::BuildArgs;
use crate::failure::Failure;
use crate::output;
use crate::run::bpf_text;
use crate::source::{accepted, checked};

pub fn run(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let engine = Engine::from(args.engine);
    let ending = args.output.extension().and_then(|ending| ending.to_str());
    let (known, endings) = match engine {
        Engine::Kernel => (matches!(ending, Some("c" | "o")), ".bpf.c or .bpf.o"),
        _ => (matches!(ending, Some("c" | "so")), ".c or .so"),
    };
    if !known {
        let message = format!("{}: the output's name must end in {endings}", args.output.display());
        return Err(Failure::usage(message));
    }
    if engine == Engine::Kernel {
        return kernel(args);
    }
    if args.others.is_some() {
        return Err(Failure::usage("--others is for the kernel engine: two schedulers that share a machine"));
    }
    let checked = checked(&args.scheduler, &args.source)?;
    let (program, report) = accepted(&checked, engine)?;
    if engine == Engine::Simulator {
        return Err(Failure::usage("the simulator runs a scheduler as it is: `attune sim`"));
    }
    let options = c::Options { debug: args.debug, ..c::Options::default() };
    let source = c::generate(program, &report.verdicts, &checked.sources, &options)
        .map_err(|refusal| Failure::wrong(refusal.to_string()))?;
    match ending {
        Some("c") => output::write(&args.output, source)?,
        _ => compile(&source, &args.output, args.debug)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A BPF program: its C, or the object that `attune run` loads.
fn kernel(args: &BuildArgs) -> Result<ExitCode, Failure> {
    if args.debug {
        return Err(Failure::usage(
            "--debug is for engines in programs: the kernel engine has no debug build",
        ));
    }
    let source = bpf_text(&args.scheduler, args.others.as_deref(), &args.source)?;
    if args.output.extension().is_some_and(|ending| ending == "c") {
        output::write(&args.output, source)?;
    } else {
        let compiler = attune_kernel::Compiler::find().map_err(|error| Failure::usage(error.to_string()))?;
        attune_kernel::compile(&compiler, &source, &args.output, args.cpus, args.layout.into())
            .map_err(|error| Failure::usage(error.to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compile(source: &str, path: &Path, debug: bool) -> Result<(), Failure> {
    c::compile(source, path, debug).map_err(|error| match error {
        // The compiler has read the scheduler's own verbatim text, and did not like it.
        c::CompileError::Failed { .. } => Failure::wrong(error.to_string()),
        _ => Failure::usage(error.to_string()),
    })
}
