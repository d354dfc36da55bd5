//! `attune explain CODE`: what a diagnostic means, with a wrong and a right example.

use std::fmt::Write;
use std::process::ExitCode;

use attune_language::diagnostic::{Code, Example, codes};

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let text = match &args.code {
        Some(name) => match Code::from_name(name) {
            Some(code) => explanation(code),
            None => {
                return Err(Failure::usage(format!(
                    "there is no code {name}; `attune explain` without a code lists them all"
                )));
            }
        },
        None => codes::all().map(|code| format!("{}  {}\n", code.name(), code.title())).collect(),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn explanation(code: Code) -> String {
    format!(
        "{}: {}\n\n{}\n\nWrong:\n\n{}\nRight:\n\n{}",
        code.name(),
        code.title(),
        code.explanation().trim(),
        indented(code.wrong()),
        indented(code.right()),
    )
}

fn indented(example: Example) -> String {
    let mut text = String::new();
    let files = match example {
        Example::File(file) => &[("", file)],
        Example::Files(files) => files,
    };
    for (name, file) in files {
        if !name.is_empty() {
            let _ = writeln!(text, "    {name}:"); // writing to a String cannot fail
        }
        for line in file.trim_matches('\n').lines() {
            let _ = writeln!(text, "{}", format!("    {line}").trim_end());
        }
    }
    text
}
