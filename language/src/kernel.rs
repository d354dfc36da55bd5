//! What the kernel engine cannot have, found before anything is generated: floats, verbatim text, and more than its verifier
//! or its memory would take. A scheduler that passes loads (docs/lab.md has what is known of that: `random-schedulers`).

use crate::ir::{Extent, Program, Type};
use crate::source::{SourceMap, Span};

/// Bytes that a scheduler's variables and containers may take; threads need room beside them.
const LARGEST: u64 = 16 << 20;

/// Bytes of one element of a container, and of a scalar.
const CONTAINER: u64 = 64;
const SCALAR: u64 = 8;

/// The first reason why the kernel engine refuses the scheduler, with its place.
pub fn refuses(program: &Program, sources: &SourceMap) -> Option<String> {
    let place = |span: Span| {
        let at = sources.location(span);
        format!("{}:{}:{}", sources.name(span.source), at.line, at.column)
    };
    if let Some(&span) = program.verbatim.first() {
        return Some(format!(
            "verbatim text at {} is for programs in C, and cannot run in the kernel",
            place(span)
        ));
    }
    if let Some(span) = first_float(program) {
        return Some(format!("the kernel has no floats: see `{}` at {}", sources.slice(span), place(span)));
    }
    let size = size(program);
    if size > LARGEST {
        let (size, largest) = (size >> 20, LARGEST >> 20);
        return Some(format!("its arrays take {size} MB; the kernel engine has room for {largest} MB"));
    }
    None
}

fn first_float(program: &Program) -> Option<Span> {
    let globals = program.globals.values().map(|it| (it.ty, it.span));
    let attributes = program.attributes.values().map(|it| (it.ty, it.span));
    let locals = program.locals.values().map(|it| (it.ty, it.span));
    let exprs = program.exprs.values().map(|it| (it.ty, it.span));
    let floats = globals.chain(attributes).chain(locals).chain(exprs).filter(|(ty, _)| *ty == Type::Float);
    floats.map(|(_, span)| span).min_by_key(|span| (span.source, span.start))
}

fn size(program: &Program) -> u64 {
    let elements = |extent: Extent| match extent {
        Extent::Array(length) => u64::from(length),
        Extent::One | Extent::PerCpu => 1,
    };
    let globals: u64 = program.globals.values().map(|it| elements(it.extent) * SCALAR).sum();
    let containers: u64 = program.containers.values().map(|it| elements(it.extent) * CONTAINER).sum();
    let locals: u64 = program.locals.values().map(|it| u64::from(it.length.unwrap_or(1)) * SCALAR).sum();
    globals + containers + locals
}
