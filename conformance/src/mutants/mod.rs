//! What the differential test is worth: mistakes put into the generated code and the runtime, each
//! of which it must find.

mod embedded;
mod kernel;
mod list;
mod nodes;

use crate::differential::{self, Against, Budget};

pub struct Mutant {
    pub name: &'static str,
    /// What a user would see go wrong.
    pub breaks: &'static str,
    pub find: &'static str,
    pub replace: &'static str,
    /// Whose code holds `find`.
    pub against: Against,
    /// Only the code of a cluster's node holds it.
    pub nodes: bool,
}

/// First the mutants of compiled C, then the embedded engine's, those of BPF, and of nodes.
pub fn all() -> impl Iterator<Item = &'static Mutant> {
    list::MUTANTS.iter().chain(embedded::MUTANTS).chain(kernel::MUTANTS).chain(nodes::MUTANTS)
}

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

pub fn try_mutant(mutant: &Mutant, budget: &Budget) -> Fate {
    let edit =
        |text: &str| text.contains(mutant.find).then(|| text.replace(mutant.find, mutant.replace));
    let Mutant { against, nodes, .. } = *mutant;
    let budget = Budget { against, nodes, differences: 1, shrinking: 0, ..*budget };
    let report = differential::run(&budget, &edit);
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
