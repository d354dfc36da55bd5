//! `attune diagram`: a picture of the containers and the transfers between them.

use std::process::ExitCode;

use attune_backend_diagram::{self as diagram, Drawn};
use attune_language::diagnostic::{has_errors, render};

use crate::args::DiagramArgs;
use crate::failure::Failure;
use crate::output;
use crate::source::checked;

pub fn run(args: &DiagramArgs) -> Result<ExitCode, Failure> {
    let Some(format) = diagram::Format::of(&args.output) else {
        let message =
            format!("{}: the picture's name must end in .dot, .svg or .png", args.output.display());
        return Err(Failure::usage(message));
    };
    let checked = checked(&args.scheduler, &args.source)?;
    for diagnostic in &checked.diagnostics {
        eprint!("{}", render(diagnostic, &checked.sources));
    }
    if has_errors(&checked.diagnostics) {
        return Err(Failure::wrong(""));
    }
    let conditions = args.conditions.then_some(&checked.sources);
    let dot = match (&checked.program, &checked.cluster) {
        // A base may be drawn too, so no engine needs to accept it.
        (Some(program), _) => {
            let report = checked.engines.iter().find(|report| report.accepted);
            diagram::dot(Drawn { program, report, conditions })
        }
        (None, Some(cluster)) => {
            let report = Some(&cluster.report);
            let master = Drawn { program: &cluster.master, report, conditions };
            let mut members = vec![("master".to_string(), master)];
            for family in &cluster.families {
                let report = family.engines.iter().find(|report| report.accepted);
                let drawn = Drawn { program: &family.program, report, conditions };
                members.push((format!("nodes of family {}", family.name), drawn));
            }
            diagram::dot_cluster(&cluster.master.name, &members)
        }
        (None, None) => return Err(Failure::wrong("there is no scheduler to draw")),
    };
    let picture = diagram::draw(&dot, format).map_err(|error| Failure::usage(error.to_string()))?;
    output::write(&args.output, picture)?;
    Ok(ExitCode::SUCCESS)
}
