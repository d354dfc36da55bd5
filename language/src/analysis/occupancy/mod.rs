//! Occupancy: how many threads each container can hold at each point, and so which checks cannot
//! fail.
//!
//! # What it establishes
//!
//! For one engine, a [`Verdict`] for each check of the program: *proved* if it holds whenever the
//! handler reaches it, after any sequence of handlers that the engine's [`Protocol`] allows;
//! *refuted* if it fails whenever it is reached. Everything below describes supersets of what can
//! happen, so that a proof is one; that something is merely *checked* says nothing.
//!
//! # How
//!
//! - [`lattice`]: sizes of containers, ranges of integers, sets of places: what is computed with.
//! - [`state`]: what is known on one path: a size for each container, a set of places for each
//!   thread that has a name, a range for each variable, and relations between them, each of the
//!   [`facts`] by itself.
//! - [`prepared`]: what the program's text alone says, once for all engines: [`relevance`], which
//!   variables are followed at all; [`lifetimes`]: where their values are
//!   needed no more, so that paths which differ only in them are one.
//! - [`merge`]: how two states relate, and their join; [`paths`]: several states side by side,
//!   joined where nothing is lost or where there are too many.
//! - [`values`]: expressions; [`refine`]: conditions; [`checks`]: places that can fail; [`moves`]:
//!   transfers; [`handler`]: statements, whole handlers; [`repeat`]: loops. All are methods of a
//!   [`walker`].
//! - [`across`]: the fixed point over the handlers of a protocol; [`effects`]: what handlers do to
//!   threads without a name.
//! - [`verdict`]: what paths found at the checks; [`explain`]: the same in words.
//!
//! # What it relies on
//!
//! After a check that may fail it goes on as if it held: a trap ends the program. Verbatim text
//! leaves containers and control flow alone, but may change any variable. The engine stops a policy
//! that dispatches a thread that is not ready.

mod across;
mod checks;
mod effects;
mod explain;
mod facts;
mod handler;
mod lattice;
mod layout;
mod lifetimes;
mod merge;
mod moves;
mod paths;
mod prepared;
mod refine;
mod relevance;
mod repeat;
mod state;
mod values;
mod verdict;
mod walker;

pub use prepared::Prepared;
pub use verdict::Witness;

use std::collections::HashMap;

use crate::engine::event::Event;
use crate::engine::protocol::{Class, Protocol};
use crate::engine::report::Origin;
use crate::ir::*;

/// The result for one engine.
#[derive(Clone)]
pub struct Occupancy {
    pub verdicts: Verdicts,
    /// For each check that is not proved and was reached, a path on which it may fail.
    pub witnesses: Vec<(CheckId, Witness)>,
    /// Containers that some thread may enter, and leave, by the number of their id.
    pub entered: Vec<bool>,
    pub left: Vec<bool>,
    /// Local containers' checks that fail on some path for certain.
    pub kept: Vec<CheckId>,
    pub origins: HashMap<CheckId, Vec<Origin>>,
    /// Where ready threads sit between handlers; None where too much is not known.
    pub ready: Option<Vec<ContainerId>>,
    /// Those of them where an event leaves a thread that is ready from then on.
    pub becomes_ready: Vec<ContainerId>,
}

impl Occupancy {
    /// The result for an engine that asks only these of the queries. Queries change nothing, so
    /// what is found elsewhere stays.
    pub fn with_queries(&self, program: &Program, queries: &[Event]) -> Occupancy {
        let is_asked = |check: CheckId| {
            program.checks[check]
                .event
                .is_none_or(|event| !event.is_query() || queries.contains(&event))
        };
        let mut fewer = self.clone();
        for (check, _) in program.checks.iter().filter(|(check, _)| !is_asked(*check)) {
            fewer.verdicts.set(check, Verdict::Uncalled);
        }
        fewer.witnesses.retain(|(check, _)| is_asked(*check));
        fewer.kept.retain(|check| is_asked(*check));
        fewer.origins.retain(|check, _| is_asked(*check));
        fewer
    }
}

/// Analyses the program as the protocol's engine calls it.
pub fn analyse(program: &Program, prepared: &Prepared, protocol: &Protocol) -> Occupancy {
    if program.containers.len() > layout::MOST_CONTAINERS {
        return nothing_claimed(program, protocol);
    }
    let layout = layout::Layout::new(program, prepared, protocol.cpus);
    let mut across = across::Across::new(program, protocol, &layout, prepared);
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
    let local = |(_, check): &(CheckId, &Check)| check.kind == CheckKind::LocalEmptied;
    let kept = program
        .checks
        .iter()
        .filter(local)
        .map(|(id, _)| id)
        .filter(|id| across.record.outcome(*id).is_some_and(|outcome| outcome.fails_certainly));
    let kept = kept.collect();
    let origins = across.record.origins();
    let origins = origins.map(|(check, places)| (check, origins_of(program, &layout, places)));
    let origins = origins.collect();
    let occupied = |places: lattice::Places| {
        layout.homes.iter().map(|home| places.overlaps(home.here.with(home.there))).collect()
    };
    let ready = containers_of(program, &layout, across.places_of_class(Class::Ready));
    let becomes_ready = containers_of(program, &layout, across.joins_class(Class::Ready));
    Occupancy {
        verdicts,
        witnesses,
        entered: occupied(across.moves.entered),
        left: occupied(across.moves.left),
        kept,
        origins,
        ready,
        becomes_ready: becomes_ready.unwrap_or_default(),
    }
}

/// The containers among places; None where containers share a bit.
fn containers_of(
    program: &Program,
    layout: &layout::Layout,
    places: lattice::Places,
) -> Option<Vec<ContainerId>> {
    if places.overlaps(lattice::Places::CROWD) {
        return None;
    }
    let containers = program.containers.iter().zip(&layout.homes);
    let containers = containers.filter(|(_, home)| places.overlaps(home.here.with(home.there)));
    Some(containers.map(|((id, _), _)| id).collect())
}

/// The places in the program's own terms; none where containers share a bit.
fn origins_of(program: &Program, layout: &layout::Layout, places: lattice::Places) -> Vec<Origin> {
    if places.overlaps(lattice::Places::CROWD) {
        return Vec::new();
    }
    let new = places.overlaps(lattice::Places::NOWHERE).then_some(Origin::New);
    let containers = program.containers.iter().zip(&layout.homes);
    let containers = containers.filter(|(_, home)| places.overlaps(home.here.with(home.there)));
    new.into_iter().chain(containers.map(|((id, _), _)| Origin::Container(id))).collect()
}

/// For a program that is too large: every check is performed.
fn nothing_claimed(program: &Program, protocol: &Protocol) -> Occupancy {
    let mut verdicts = Verdicts::default();
    let called = |event: Event| {
        event == Event::Init
            || protocol.queries.contains(&event)
            || protocol
                .occasions
                .iter()
                .any(|occasion| occasion.calls.iter().any(|call| call.event == event))
    };
    for (id, check) in program.checks.iter() {
        if check.event.is_some_and(|event| !called(event)) {
            verdicts.set(id, Verdict::Uncalled);
        }
    }
    let all = vec![true; program.containers.len()];
    Occupancy {
        verdicts,
        witnesses: Vec::new(),
        entered: all.clone(),
        left: all,
        kept: Vec::new(),
        origins: HashMap::new(),
        ready: None,
        becomes_ready: Vec::new(),
    }
}
