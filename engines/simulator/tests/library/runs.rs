//! Runs the library's schedulers on workloads: those of the lab, by their files' names, and others
//! by their text.

use std::path::Path;
use std::sync::Arc;

use attune_language::Checked;
use attune_simulator::interpreter::{Interpreter, Options as Checks};
use attune_simulator::metrics::Tally;
use attune_simulator::{Diagnostic, Options, Outcome, Workload, simulate};

pub const US: i64 = 1_000;
pub const MS: i64 = 1_000 * US;

pub fn checked(policy: &str) -> Checked {
    let mut opened = attune_schedulers::open(Path::new(policy), &[]).unwrap();
    let checked = attune_language::check(&opened.source, &mut opened.loader, &Default::default());
    assert!(checked.program.is_some(), "{policy}: {:?}", checked.diagnostics);
    checked
}

pub fn scheduler(policy: &str) -> Interpreter {
    let checked = checked(policy);
    Interpreter::new(Arc::new(checked.program.unwrap()), &checked.sources, Checks::default())
        .unwrap()
}

pub fn text_of(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/workloads");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

pub fn run(policy: &str, file: &str, options: &Options) -> Result<Outcome, Diagnostic> {
    simulate(&mut scheduler(policy), &workload(&text_of(file), file), options)
}

/// For as long as the text says.
pub fn run_text(policy: &str, text: &str) -> Outcome {
    simulate(&mut scheduler(policy), &workload(text, "workload.toml"), &Options::default()).unwrap()
}

/// `file`: its name says what the text is, and messages show it.
pub fn workload(text: &str, file: &str) -> Workload {
    Workload::from_file_text(text, file).unwrap_or_else(|error| panic!("{error}"))
}

pub fn seconds(duration: i64) -> Options {
    Options { duration: Some(duration * 1000 * MS), ..Options::default() }
}

pub fn group<'o>(outcome: &'o Outcome, name: &str) -> &'o Tally {
    outcome.groups().iter().find(|group| group.name == name).unwrap()
}
