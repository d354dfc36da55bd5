//! Lowering, from source to IR or to diagnostics. Snapshots show the source and what came of it.

mod codes;
mod diagnostics;
mod distributed;
mod engines;
mod ir;
mod nonsense;
mod order;

use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check, diagnostic};

type Files<'a> = &'a [(&'a str, &'a str)];

/// Checks the first file; the others are those it names.
fn check_files(files: Files<'_>) -> Checked {
    let (name, text) = files[0];
    let main = SourceText { name: name.to_string(), text: text.to_string() };
    let mut loader = files;
    check(&main, &mut loader, &Options::default())
}

fn check_text(text: &str) -> Checked {
    check_files(&[("example.sched", text)])
}

/// Every diagnostic, drawn.
fn drawn(checked: &Checked) -> String {
    checked.diagnostics.iter().map(|it| diagnostic::render(it, &checked.sources)).collect()
}

fn codes_of(checked: &Checked) -> Vec<&'static str> {
    checked.diagnostics.iter().map(|diagnostic| diagnostic.code.name()).collect()
}
