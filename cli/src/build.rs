//! `attune build`: a scheduler compiled for an engine.

use std::path::Path;
use std::process::ExitCode;

use attune_backend_c as c;
use attune_language::event::Engine;

use crate::args::BuildArgs;
use crate::failure::Failure;
use crate::output;
use crate::source::{accepted, checked};

pub fn run(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let engine = Engine::from(args.engine);
    let ending = args.output.extension().and_then(|ending| ending.to_str());
    if !matches!(ending, Some("c" | "so")) {
        let message = format!("{}: the output's name must end in .c or .so", args.output.display());
        return Err(Failure::usage(message));
    }
    let checked = checked(&args.scheduler, &args.source)?;
    let (program, report) = accepted(&checked, engine)?;
    if engine == Engine::Simulator {
        return Err(Failure::usage("the simulator runs a scheduler as it is: `attune sim`"));
    }
    let options = c::Options { debug: args.debug };
    let source = c::generate(program, &report.verdicts, &checked.sources, &options)
        .map_err(|refusal| Failure::wrong(refusal.to_string()))?;
    match ending {
        Some("c") => output::write(&args.output, source)?,
        _ => compile(&source, &args.output, args.debug)?,
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
