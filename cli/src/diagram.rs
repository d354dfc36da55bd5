//! `attune diagram`: a picture of the containers and the transfers between them.

use std::process::ExitCode;

use attune_backend_diagram as diagram;
use attune_language::diagnostic::{has_errors, render};

use crate::args::DiagramArgs;
use crate::failure::Failure;
use crate::output;
use crate::source::checked;

pub fn run(args: &DiagramArgs) -> Result<ExitCode, Failure> {
    let Some(format) = diagram::Format::of(&args.output) else {
        let message = format!("{}: the picture's name must end in .dot, .svg or .png", args.output.display());
        return Err(Failure::usage(message));
    };
    let checked = checked(&args.scheduler, &args.source)?;
    for diagnostic in &checked.diagnostics {
        eprint!("{}", render(diagnostic, &checked.sources));
    }
    // A base may be drawn too, so it is not asked whether an engine accepts it.
    let Some(program) = checked.program.as_ref().filter(|_| !has_errors(&checked.diagnostics)) else {
        return Err(Failure::wrong(""));
    };
    let picture =
        diagram::draw(&diagram::dot(program), format).map_err(|error| Failure::usage(error.to_string()))?;
    output::write(&args.output, picture)?;
    Ok(ExitCode::SUCCESS)
}
