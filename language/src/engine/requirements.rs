//! What an engine requires of a scheduler: handlers, completeness, a language that it reads.
//!
//! A requirement is met by a handler of the scheduler's own. Aspects around an event that nothing
//! handles run when the engine reports the event, but they store no thread and choose none, so they
//! meet no requirement.

use super::Engine;
use super::event::Event;
use super::limits;
use crate::ir::{Extent, Global, Program, Role, Storage};
use crate::source::{SourceMap, Span};

/// Why an engine refuses a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The scheduler is a base for others.
    Partial,
    /// Handlers that the engine requires; alternatives are joined by `or`.
    Missing(Vec<String>),
    /// The simulator does not read the target's language.
    Verbatim(Span),
    /// Imports, and so the variables that nodes share, are no arrays.
    ImportedArray(Span),
    /// What the kernel engine cannot have.
    Limit(limits::Limit),
}

/// Handlers without which the engine cannot run a scheduler. Each entry is a list of alternatives,
/// of which the engine calls the first that the scheduler has: a blocked thread comes back by
/// `event_raised` or by `resume_thread`.
pub fn required(_: Engine) -> &'static [&'static [Event]] {
    &[
        &[Event::NewThread],
        &[Event::Schedule],
        &[Event::SwitchOut],
        &[Event::EventRaised, Event::ResumeThread],
    ]
}

/// The required handlers that the scheduler lacks, each with its alternatives.
pub fn missing(engine: Engine, program: &Program) -> Vec<String> {
    let is_met = |alternatives: &[Event]| {
        let called = alternatives.iter().find_map(|&event| program.handler(event));
        called.is_some_and(|handler| handler.parts.iter().any(|part| part.role == Role::Own))
    };
    let names = |alternatives: &&[Event]| {
        alternatives.iter().map(|event| event.name()).collect::<Vec<_>>().join(" or ")
    };
    required(engine).iter().filter(|alternatives| !is_met(alternatives)).map(names).collect()
}

/// The first reason why the engine refuses the scheduler; none if it runs it.
pub fn refusal(engine: Engine, program: &Program) -> Option<Refusal> {
    if program.partial {
        return Some(Refusal::Partial);
    }
    let missing = missing(engine, program);
    if !missing.is_empty() {
        return Some(Refusal::Missing(missing));
    }
    let array = |global: &&Global| {
        global.storage == Storage::Import && matches!(global.extent, Extent::Array(_))
    };
    if let Some(global) = program.globals.values().find(array) {
        return Some(Refusal::ImportedArray(global.span));
    }
    match engine {
        Engine::Simulator => program.verbatim.first().copied().map(Refusal::Verbatim),
        Engine::Kernel => limits::kernel(program).map(Refusal::Limit),
        Engine::Embedded => limits::embedded(program).map(Refusal::Limit),
        Engine::Threads => None,
    }
}

impl Refusal {
    /// One sentence without a full stop.
    pub fn in_words(&self, engine: Engine, sources: &SourceMap) -> String {
        match self {
            Refusal::Partial => "the scheduler is partial: a base for others".to_string(),
            Refusal::Missing(missing) => {
                format!("the {engine} engine needs a handler for {}", missing.join(", "))
            }
            Refusal::Verbatim(span) => format!(
                "verbatim text at {} ties the scheduler to engines that compile C",
                sources.place(*span)
            ),
            Refusal::ImportedArray(span) => format!(
                "`{}` at {} is an array that nodes share, and no engine supplies those yet",
                sources.slice(*span),
                sources.place(*span)
            ),
            Refusal::Limit(limit) => limit.in_words(sources),
        }
    }
}
