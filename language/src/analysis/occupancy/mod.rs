//! Occupancy: how many threads each container can hold at each point, and so which checks cannot fail.
//!
//! # What it establishes
//!
//! For one engine, a [`Verdict`] for each check of the program: *proved* if it holds whenever the handler reaches it, after any
//! sequence of handlers that the engine's [`Protocol`] allows; *refuted* if it fails whenever it is reached. Everything below
//! describes supersets of what can happen, so that a proof is one; that something is merely *checked* says nothing.
//!
//! # How
//!
//! - [`domain`]: sizes of containers, ranges of integers, sets of places: what is computed with.
//! - [`state`]: what is known on one path: a size for each container, a set of places for each thread that has a name, a range
//!   for each variable, and relations between them, each of the [`facts`] by itself.
//! - [`merge`]: how two states relate, and their join; [`paths`]: several states side by side, joined where nothing is lost or where there are too many.
//! - [`values`]: expressions; [`refine`]: conditions; [`checks`]: places that can fail; [`moves`]: transfers;
//!   [`handler`]: statements, whole handlers; [`repeat`]: loops.
//! - [`across`]: the fixed point over the handlers of a protocol.
//! - [`verdict`]: what paths found at the checks; [`explain`]: the same in words.
//!
//! # What it relies on
//!
//! After a check that may fail it goes on as if it held: a trap ends the program. Verbatim text leaves containers and control
//! flow alone, but may change any variable. The engine stops a policy that dispatches a thread that is not ready.

mod across;
mod checks;
mod domain;
mod explain;
mod facts;
mod handler;
mod layout;
mod merge;
mod moves;
mod paths;
mod refine;
mod repeat;
mod state;
mod values;
mod verdict;

pub use explain::Explanation;
pub use verdict::Witness;

use crate::event::Event;
use crate::ir::*;
use crate::protocol::Protocol;

/// The result for one engine.
pub struct Occupancy {
    pub verdicts: Verdicts,
    /// For each check that is not proved and was reached, a path on which it may fail.
    pub witnesses: Vec<(CheckId, Witness)>,
    /// Containers that some thread may enter, and leave, by the number of their id.
    pub entered: Vec<bool>,
    pub left: Vec<bool>,
}

/// What is the same for all engines.
pub struct Prepared {
    has_check: Vec<bool>,
}

impl Prepared {
    pub fn new(program: &Program) -> Prepared {
        Prepared { has_check: checks::expressions_with_checks(program) }
    }
}

/// Analyses the program as the protocol's engine calls it.
pub fn analyse(program: &Program, prepared: &Prepared, protocol: &Protocol) -> Occupancy {
    if program.containers.len() > layout::MOST_CONTAINERS {
        return nothing_claimed(program, protocol);
    }
    let layout = layout::Layout::new(program, protocol.cpus);
    let mut across = across::Across::new(program, protocol, &layout, &prepared.has_check);
    across.run();
    if across.record.gave_up() {
        return nothing_claimed(program, protocol);
    }

    let mut verdicts = Verdicts::default();
    let mut witnesses = Vec::new();
    let refuted = |check: CheckId| {
        across.record.outcome(check).is_some_and(|found| found.verdict() == Verdict::Refuted)
    };
    let any_refuted = program.checks.iter().any(|(check, _)| refuted(check));
    for (id, check) in program.checks.iter() {
        // The loop bound and invariants are other passes'.
        if matches!(check.kind, CheckKind::LoopBound | CheckKind::InvariantHolds) {
            if check.event.is_some_and(|event| !across.called[event as usize]) {
                verdicts.set(id, Verdict::Uncalled);
            }
            continue;
        }
        let verdict = match (across.record.outcome(id), check.event) {
            (Some(outcome), _) => outcome.verdict(),
            (None, Some(event)) if !across.called[event as usize] => Verdict::Uncalled,
            // In an invariant, which may run anywhere.
            (None, None) => Verdict::Checked,
            // No path leads there, unless it is cut off by a failure that has to be mended first.
            (None, Some(_)) => {
                if any_refuted {
                    Verdict::Checked
                } else {
                    Verdict::Proved
                }
            }
        };
        verdicts.set(id, verdict);
        if let Some(witness) = across.record.outcome(id).and_then(|outcome| outcome.witness) {
            witnesses.push((id, witness));
        }
    }
    let occupied = |places: domain::Places| {
        layout.homes.iter().map(|home| places.overlaps(home.here.with(home.there))).collect()
    };
    Occupancy {
        verdicts,
        witnesses,
        entered: occupied(across.moves.entered),
        left: occupied(across.moves.left),
    }
}

/// For a program that is too large: every check is performed.
fn nothing_claimed(program: &Program, protocol: &Protocol) -> Occupancy {
    let mut verdicts = Verdicts::default();
    let called = |event: Event| {
        event == Event::Init
            || protocol.queries.contains(&event)
            || protocol.occasions.iter().any(|occasion| occasion.calls.iter().any(|call| call.event == event))
    };
    for (id, check) in program.checks.iter() {
        if check.event.is_some_and(|event| !called(event)) {
            verdicts.set(id, Verdict::Uncalled);
        }
    }
    let all = vec![true; program.containers.len()];
    Occupancy { verdicts, witnesses: Vec::new(), entered: all.clone(), left: all }
}
