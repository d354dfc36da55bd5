//! What an engine says of a checked scheduler: whether it runs it, and what is proved of it there.

use std::collections::HashMap;

use super::{Engine, requirements};
use crate::ir::{CheckId, CheckKind, ContainerId, Program, Verdict, Verdicts};
use crate::source::{SourceMap, Span};

/// Whether an engine can run the scheduler, and what of it is proved there.
#[derive(Clone, Debug)]
pub struct EngineReport {
    pub engine: Engine,
    pub accepted: bool,
    /// The handlers that the engine requires and the scheduler lacks; alternatives are joined by
    /// `or`.
    pub missing: Vec<String>,
    /// Why it is not accepted, in one sentence; none if it is.
    pub reason: Option<String>,
    pub verdicts: Verdicts,
    pub transfers: Transfers,
    /// Checks of other things (indices, attributes of a first thread, new threads stored, local
    /// containers empty at the end) that are left to run time. Loop bounds and invariants are not
    /// among them.
    pub other_checks: usize,
    /// Why each of both kinds that is merely checked could not be proved.
    pub doubts: Vec<(CheckId, Explanation)>,
    /// By the check of a transfer, destroy or dispatch of a named thread: where that thread may sit
    /// before it. Empty where too much may be.
    pub origins: HashMap<CheckId, Vec<Origin>>,
    /// How long a ready thread may wait.
    pub waiting: Waiting,
}

/// Whether a ready thread can wait for ever, in a sentence's second half.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It waits at most: `for one slice of each ..`.
    Bounded(String),
    /// It can, because.
    Starves(String),
    /// Neither is known, because.
    NotProved(String),
}

/// Where a thread may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is new, and in no container.
    New,
    Container(ContainerId),
}

/// How many transfer checks there are, and what is known of them. `total` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    pub total: usize,
    pub proved: usize,
    pub checked: usize,
    pub refuted: usize,
    /// Proved because a parameter or a `foreach` variable names a thread that is there.
    pub trivial: usize,
}

/// Why something could not be proved: one sentence without a full stop, with the place that it
/// speaks of as "here" if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub text: String,
    pub place: Option<Span>,
}

/// What the analyses found for one engine.
pub struct EngineFindings {
    pub engine: Engine,
    pub verdicts: Verdicts,
    /// For each check that is merely checked, whether of a transfer or not: why it could not be
    /// proved, in the order of their places.
    pub doubts: Vec<(CheckId, Explanation)>,
    pub origins: HashMap<CheckId, Vec<Origin>>,
    pub waiting: Waiting,
}

impl EngineReport {
    /// The report on a scheduler that no engine can run, for that reason.
    pub(crate) fn refused(engine: Engine, reason: String) -> EngineReport {
        EngineReport {
            engine,
            accepted: false,
            missing: Vec::new(),
            reason: Some(reason),
            transfers: Transfers::default(),
            verdicts: Verdicts::default(),
            other_checks: 0,
            doubts: Vec::new(),
            origins: HashMap::new(),
            waiting: Waiting::NotProved("no engine runs it".to_string()),
        }
    }

    /// The report on a scheduler that was analysed.
    pub(crate) fn new(found: EngineFindings, program: &Program, sources: &SourceMap) -> Self {
        let EngineFindings { engine, verdicts, doubts, origins, waiting } = found;
        let refusal = requirements::refusal(engine, program);
        EngineReport {
            engine,
            accepted: refusal.is_none(),
            missing: requirements::missing(engine, program),
            reason: refusal.map(|refusal| refusal.in_words(engine, sources)),
            transfers: Transfers::of(program, &verdicts),
            other_checks: other_checks(program, &verdicts),
            verdicts,
            doubts,
            origins,
            waiting,
        }
    }
}

impl Transfers {
    fn of(program: &Program, verdicts: &Verdicts) -> Transfers {
        let mut transfers = Transfers::default();
        for (id, check) in program.checks.iter().filter(|(_, check)| check.kind.is_transfer()) {
            let counter = match (verdicts.of(id), check.kind) {
                (Verdict::Uncalled, _) => continue,
                (Verdict::Proved, CheckKind::NamedTransfer) => &mut transfers.trivial,
                (Verdict::Proved, _) => &mut transfers.proved,
                (Verdict::Checked, _) => &mut transfers.checked,
                (Verdict::Refuted, _) => &mut transfers.refuted,
            };
            *counter += 1;
            transfers.total += 1;
        }
        transfers
    }
}

fn other_checks(program: &Program, verdicts: &Verdicts) -> usize {
    let counts = |kind: CheckKind| {
        !kind.is_transfer() && !matches!(kind, CheckKind::LoopBound | CheckKind::InvariantHolds)
    };
    let left = |id: CheckId| matches!(verdicts.of(id), Verdict::Checked | Verdict::Refuted);
    // In an invariant, which is the debug build's, a check belongs to no event.
    program
        .checks
        .iter()
        .filter(|(id, check)| check.event.is_some() && counts(check.kind) && left(*id))
        .count()
}
