//! `attune schedulers`: the standard library, a line each; with a name, that scheduler's text.

use std::process::ExitCode;

use attune_lab::columns;
use attune_schedulers::{Entry, LIBRARY, find};
use serde_json::json;

use crate::args::SchedulersArgs;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &SchedulersArgs) -> Result<ExitCode, Failure> {
    let text = match &args.name {
        None if args.json => {
            format!("{}\n", LIBRARY.iter().map(described).collect::<serde_json::Value>())
        }
        None => {
            let row = |it: &Entry| vec![it.name.to_owned(), it.summary().to_owned()];
            let rows: Vec<_> = LIBRARY.iter().map(row).collect();
            columns::lines(&rows, &[false]).join("\n") + "\n"
        }
        Some(name) => {
            let entry = find(name).ok_or_else(|| {
                Failure::usage(format!(
                    "the library has no scheduler {name}; `attune schedulers` lists what it has"
                ))
            })?;
            if args.json { format!("{}\n", described(&entry)) } else { entry.text.to_string() }
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn described(entry: &Entry) -> serde_json::Value {
    json!({
        "name": entry.name,
        "summary": entry.summary(),
        "problem": entry.field("Problem"),
        "idea": entry.field("Idea"),
        "gain": entry.field("Gain"),
        "cost": entry.field("Cost"),
        "text": entry.text,
    })
}
