//! What the kernel engine cannot have, found before anything is generated: floats, verbatim text,
//! and more than its verifier or its memory would take. A scheduler within these limits loads
//! (docs/lab.md reports what is known of that: `random-schedulers`).

use crate::ir::{Extent, Program, Type};
use crate::source::{SourceMap, Span};

/// Bytes that a scheduler's variables and containers may take; threads need room beside them.
const LARGEST: u64 = 16 << 20;

/// Bytes of one element of a container, and of a scalar.
const CONTAINER: u64 = 64;
const SCALAR: u64 = 8;

/// Which limit a scheduler exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    Verbatim(Span),
    Float(Span),
    /// Bytes of its variables and containers.
    Size(u64),
}

/// The first limit of the kernel engine that the scheduler exceeds.
pub fn kernel(program: &Program) -> Option<Limit> {
    if let Some(&span) = program.verbatim.first() {
        return Some(Limit::Verbatim(span));
    }
    if let Some(span) = first_float(program) {
        return Some(Limit::Float(span));
    }
    let size = size(program);
    (size > LARGEST).then_some(Limit::Size(size))
}

impl Limit {
    /// One sentence without a full stop, with the place.
    pub fn in_words(&self, sources: &SourceMap) -> String {
        match self {
            Limit::Verbatim(span) => format!(
                "verbatim text at {} is for programs in C, and cannot run in the kernel",
                sources.place(*span)
            ),
            Limit::Float(span) => format!(
                "the kernel has no floats: see `{}` at {}",
                sources.slice(*span),
                sources.place(*span)
            ),
            Limit::Size(size) => format!(
                "its arrays take {} MB; the kernel engine has room for {} MB",
                size >> 20,
                LARGEST >> 20
            ),
        }
    }
}

fn first_float(program: &Program) -> Option<Span> {
    let globals = program.globals.values().map(|it| (it.ty, it.span));
    let attributes = program.attributes.values().map(|it| (it.ty, it.span));
    let locals = program.locals.values().map(|it| (it.ty, it.span));
    let exprs = program.exprs.values().map(|it| (it.ty, it.span));
    let floats =
        globals.chain(attributes).chain(locals).chain(exprs).filter(|(ty, _)| *ty == Type::Float);
    floats.map(|(_, span)| span).min_by_key(|span| (span.source, span.start))
}

fn size(program: &Program) -> u64 {
    let elements = |extent: Extent| match extent {
        Extent::Array(length) => u64::from(length),
        Extent::One | Extent::PerCpu => 1,
    };
    let globals: u64 = program.globals.values().map(|it| elements(it.extent) * SCALAR).sum();
    let containers: u64 =
        program.containers.values().map(|it| elements(it.extent) * CONTAINER).sum();
    let locals: u64 =
        program.locals.values().map(|it| u64::from(it.length.unwrap_or(1)) * SCALAR).sum();
    globals + containers + locals
}
