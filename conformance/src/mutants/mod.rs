//! What the differential test is worth: mistakes put into the generated C and the runtime, each of which it must find.

mod list;

use crate::differential::{self, Effort};

pub use list::{MUTANTS, Mutant};

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// By the difference found in that case.
    Caught { schedulers: u64, cases: u64 },
    /// It took its process with it.
    Crashed { signal: i32 },
    /// The cases were used up.
    Survived { cases: u64 },
    /// No generated C holds the text that the mutant replaces.
    Inapplicable,
}

pub fn try_mutant(mutant: &Mutant, effort: &Effort) -> Fate {
    let edit = |text: &str| text.contains(mutant.find).then(|| text.replace(mutant.find, mutant.replace));
    let report = differential::run(&Effort { differences: 1, shrinking: 0, ..*effort }, &edit);
    if !report.differences.is_empty() {
        Fate::Caught { schedulers: report.schedulers, cases: report.cases }
    } else if report.schedulers == 0 {
        Fate::Inapplicable
    } else {
        Fate::Survived { cases: report.cases }
    }
}

/// A line of the table for people.
pub fn line(mutant: &Mutant, fate: Fate) -> String {
    let fate = match fate {
        Fate::Caught { schedulers, cases } => {
            format!("caught in case {cases:>5} of scheduler {schedulers:>4}")
        }
        Fate::Crashed { signal } => format!("caught: it crashed, signal {signal}"),
        Fate::Survived { cases } => format!("SURVIVED {cases} cases"),
        Fate::Inapplicable => "INAPPLICABLE".to_string(),
    };
    format!("{:<28} {fate:<38} {}", mutant.name, mutant.breaks)
}
