//! What is found about a scheduler that has no error of names, types or shapes: small passes, each
//! saying what it establishes.
//!
//! - [`flow`]: a query returns a value on every path; no code stands where none can reach it
//! - [`purity`]: queries change nothing, events change something
//! - [`loops`]: loops end for a reason that shows ([`ways`]: which ways lead through their bodies)
//! - [`usage`]: containers and variables serve a purpose
//! - [`occupancy`]: engine by engine, which run-time checks cannot fail, and which always do
//! - [`starvation`]: engine by engine, whether a ready thread can wait for ever
//! - [`steps`]: how many steps each handler takes at most with so many threads ([`turns`]: how
//!   often a loop turns)

pub mod flow;
pub mod loops;
pub mod occupancy;
pub mod purity;
pub mod starvation;
pub mod steps;
mod turns;
pub mod usage;
mod ways;

use crate::diagnostic::{Code, Diagnostic, codes};
use crate::engine::Engine;
use crate::engine::event::Event;
use crate::engine::protocol::Protocol;
use crate::engine::report::{EngineFindings, Explanation};
use crate::engine::requirements;
use crate::ir::*;
use occupancy::{Occupancy, Witness};

/// All that the analyses found.
pub struct Findings {
    pub diagnostics: Vec<Diagnostic>,
    /// One for each of [`Engine::ALL`], in that order; of a master one.
    pub engines: Vec<EngineFindings>,
}

impl Findings {
    /// What was found for one engine; none when it was taken before.
    pub fn take(&mut self, engine: Engine) -> Option<EngineFindings> {
        let index = self.engines.iter().position(|found| found.engine == engine)?;
        Some(self.engines.swap_remove(index))
    }
}

pub fn analyse(program: &Program) -> Findings {
    let mut diagnostics = Vec::new();
    flow::check(program, &mut diagnostics);
    purity::check(program, &mut diagnostics);
    loops::check(program, &mut diagnostics);

    let prepared = occupancy::Prepared::new(program);
    // A cluster runs a master by itself, in the words of the simulator's interpreter.
    let engines = if program.is_master() { &[Engine::Simulator][..] } else { &Engine::ALL };
    let mut analysed: Vec<(Engine, Protocol, Occupancy)> = Vec::new();
    for &engine in engines {
        let protocol = match program.is_master() {
            true => Protocol::of_master(program),
            false => Protocol::of(engine, program),
        };
        let same = analysed.iter().find(|(_, known, _)| known.covers(&protocol));
        let occupancy = match same {
            Some((.., known)) => known.with_queries(program, &protocol.queries),
            None => occupancy::analyse(program, &prepared, &protocol),
        };
        analysed.push((engine, protocol, occupancy));
    }
    let runs = |engine| program.is_master() || requirements::refusal(engine, program).is_none();
    let runnable = || analysed.iter().filter(|(engine, ..)| runs(*engine));
    let occupancies: Vec<&Occupancy> = runnable().map(|(.., occupancy)| occupancy).collect();
    if !program.is_master() {
        usage::check(program, &occupancies, &mut diagnostics);
    }

    // CPU 1 is out of range only where there is one CPU: no mistake as long as another engine has
    // more.
    let everywhere = |check: CheckId| {
        occupancies.iter().all(|occupancy| {
            matches!(occupancy.verdicts.of(check), Verdict::Refuted | Verdict::Uncalled)
        })
    };
    let mut refuted: Vec<CheckId> = Vec::new();
    for (_, protocol, occupancy) in runnable() {
        for (check, witness) in &occupancy.witnesses {
            let excused =
                program.checks[*check].kind == CheckKind::IndexInRange && !everywhere(*check);
            // A node that has come must be stored on every path: nobody would find it again.
            let lost = program.is_master() && program.checks[*check].kind == CheckKind::Stored;
            if (occupancy.verdicts.of(*check) == Verdict::Refuted || lost)
                && !excused
                && !refuted.contains(check)
            {
                refuted.push(*check);
                let certain = occupancy.verdicts.of(*check) == Verdict::Refuted;
                diagnostics.push(match lost {
                    true => node_not_stored(program, *check, certain),
                    false => refutation(program, protocol, *check, witness),
                });
            }
        }
    }

    let mut kept: Vec<CheckId> = Vec::new();
    for (.., occupancy) in runnable() {
        for &check in &occupancy.kept {
            if occupancy.verdicts.of(check) == Verdict::Checked && !kept.contains(&check) {
                kept.push(check);
                diagnostics.push(kept_on_a_path(program, check));
            }
        }
    }

    let engines = analysed.into_iter().map(|(engine, protocol, occupancy)| {
        let doubts = occupancy
            .witnesses
            .iter()
            .filter(|(check, _)| occupancy.verdicts.of(*check) == Verdict::Checked);
        let mut doubts: Vec<(CheckId, Explanation)> = doubts
            .map(|(check, witness)| (*check, witness.explain(program, &protocol, *check)))
            .collect();
        doubts.sort_by_key(|(check, _)| {
            (program.checks[*check].span.source, program.checks[*check].span.start)
        });
        let waiting = starvation::judge(program, &occupancy);
        let Occupancy { verdicts, origins, .. } = occupancy;
        EngineFindings { engine, verdicts, doubts, origins, waiting }
    });
    Findings { diagnostics, engines: engines.collect() }
}

/// The warning that a container of a handler certainly holds a thread at the end of one path.
fn kept_on_a_path(program: &Program, check: CheckId) -> Diagnostic {
    let span = program.checks[check].span;
    let container = program.containers.values().find(|container| container.span == span);
    let name = container.map_or("the container", |container| container.name.as_str());
    let message = format!("on some path `{name}` still holds a thread when the handler ends");
    Diagnostic::new(codes::transfers::LOCAL_KEPT, span, message)
        .label("would be lost with its thread: the scheduler is stopped there")
        .hint("move the thread on, on every path, before the handler ends")
}

/// The error that a node which has come may sit in no container.
fn node_not_stored(program: &Program, check: CheckId, certain: bool) -> Diagnostic {
    let arrival = program.handler(Event::NewThread);
    let parameter = arrival.and_then(|handler| handler.parts.first()?.routine.parameter);
    let name = parameter.map_or("n", |name| program.names[name].name.as_str());
    let message = match certain {
        true => format!("the node `{name}` is stored nowhere"),
        false => format!("the node `{name}` is not stored on every path"),
    };
    Diagnostic::new(codes::distributed::NODE_NOT_STORED, program.checks[check].span, message)
        .label("a node that has come")
        .hint(format!("move it into a container of `nodes`: `{name} => ..;`"))
}

/// The error that a check always fails.
fn refutation(
    program: &Program,
    protocol: &Protocol,
    check: CheckId,
    witness: &Witness,
) -> Diagnostic {
    let kind = program.checks[check].kind;
    let span = program.checks[check].span;
    let name = witness.name(program);
    let (code, message, hint): (Code, String, String) = match kind {
        CheckKind::SourceFilled => (
            codes::transfers::SOURCE_EMPTY,
            format!("{name} is always empty here"),
            "take a thread from where there is one, or ask first: `if (|C| > 0) ..`".into(),
        ),
        CheckKind::DestinationEmpty => (
            codes::transfers::DESTINATION_FULL,
            format!("{name} is always full here"),
            "a `threadref` holds one thread: move that one away first".into(),
        ),
        CheckKind::DispatchFilled => (
            codes::transfers::DISPATCH_EMPTY,
            format!("{name} is always empty here, and nothing can be dispatched from it"),
            "put a thread there first, or end `schedule` without a dispatch".into(),
        ),
        CheckKind::DestroyFilled => (
            codes::transfers::DESTROY_EMPTY,
            format!("{name} is always empty here, and there is nothing to destroy"),
            "destroy the thread where it sits, or ask first: `if (|C| > 0) ..`".into(),
        ),
        CheckKind::FirstFilled => (
            codes::transfers::FIRST_MISSING,
            format!("{name} is always empty here, and has no first thread"),
            "ask first: `if (|C| > 0) ..`".into(),
        ),
        CheckKind::NamedTransfer | CheckKind::NamedUse => (
            codes::transfers::DESTROYED,
            "this thread was destroyed before".into(),
            "speak of a thread only before its `destroy`".into(),
        ),
        CheckKind::Stored => (
            codes::transfers::NOT_STORED,
            match program.checks[check].event {
                Some(Event::Arrives) => "the thread that arrives is put into no container".into(),
                _ => "the new thread is put into no container".into(),
            },
            "every thread sits in a container: move the parameter to one, `t => RQ;`".into(),
        ),
        CheckKind::LocalEmptied => (
            codes::transfers::LOCAL_FULL,
            format!("{name} still holds a thread when the handler ends"),
            "move the thread on before the handler ends".into(),
        ),
        CheckKind::IndexInRange | CheckKind::LoopBound | CheckKind::InvariantHolds => (
            codes::transfers::INDEX,
            "this index is always out of range".into(),
            "an array of n elements has indices 0 to n - 1".into(),
        ),
    };
    let label = match kind {
        CheckKind::DestinationEmpty => "has no room for another thread",
        CheckKind::Stored => "fails whenever it is reached: the thread would be lost",
        CheckKind::LocalEmptied => "would be lost with its thread",
        _ => "fails whenever it is reached",
    };
    let diagnostic = Diagnostic::new(code, span, message).hint(hint);
    if !witness.is_about_a_container() {
        return diagnostic.label(label);
    }
    let reason = witness.contradiction(program, protocol, kind);
    match reason.place {
        Some(place) if place != span => diagnostic.label(label).also(place, reason.text),
        _ => diagnostic.label(format!("{label}: {}", reason.text)),
    }
}
