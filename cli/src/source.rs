//! From the words of the command line to a checked scheduler.

use std::path::Path;

use attune_language::diagnostic::{has_errors, render};
use attune_language::engine::Engine;
use attune_language::ir::Program;
use attune_language::resolve::SourceText;
use attune_language::{Checked, EngineReport, Options, check};

use crate::args::SourceArgs;
use crate::failure::Failure;

/// Reads a scheduler with all its files and checks it.
pub fn checked(scheduler: &Path, args: &SourceArgs) -> Result<Checked, Failure> {
    let mut opened = attune_schedulers::open(scheduler, &args.include)
        .map_err(|error| Failure::file("read", scheduler, error))?;
    let aspects = args.aspects.iter().map(|path| aspect(path)).collect::<Result<_, _>>()?;
    Ok(check(&opened.source, &mut opened.loader, &Options { aspects }))
}

fn aspect(path: &Path) -> Result<SourceText, Failure> {
    let text =
        attune_schedulers::read_text(path).map_err(|error| Failure::file("read", path, error))?;
    Ok(SourceText { name: path.display().to_string(), text })
}

/// A scheduler without errors that the engine accepts; what the front end has to say goes to
/// standard error.
pub fn accepted(checked: &Checked, engine: Engine) -> Result<(&Program, &EngineReport), Failure> {
    for diagnostic in &checked.diagnostics {
        eprint!("{}", render(diagnostic, &checked.sources));
    }
    match &checked.program {
        Some(program) if !has_errors(&checked.diagnostics) => {
            let report = checked.engine(engine);
            if report.accepted {
                Ok((program, report))
            } else {
                Err(Failure::wrong(refusal(report)))
            }
        }
        _ if has_errors(&checked.diagnostics) => Err(Failure::wrong("")),
        _ => Err(Failure::wrong(refusal(checked.engine(engine)))),
    }
}

/// Why an engine does not take a scheduler, in one line.
pub fn refusal(report: &EngineReport) -> String {
    let mut why = Vec::new();
    if !report.missing.is_empty() {
        why.push(format!("it lacks {}", report.missing.join(", ")));
    }
    why.extend(report.reason.clone());
    format!("the {} engine does not accept this scheduler: {}", report.engine, why.join("; "))
}
