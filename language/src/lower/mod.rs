//! The flat scheduler to the typed IR: names, types, and effects in their order.
//!
//! Invariant: a program comes out exactly when no error was reported, and it keeps every promise of
//! [`crate::ir`]. An error does not end the work: what it concerns is left out, and the rest is
//! looked at all the same.
//!
//! - `scope` names in sight; `declare` sections and declarations; `routine` handlers, aspects,
//!   invariants
//! - `statement`, `assignment`, `expression`, `place` the language's constructs; `operand` what
//!   they stand for
//! - `types` operators and conversions; `constant` arithmetic on constants; `effects` the order of
//!   evaluation

mod assignment;
mod constant;
mod declare;
mod distributed;
mod effects;
mod expression;
mod operand;
mod place;
mod routine;
mod scope;
mod statement;
mod types;

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;
use crate::resolve::Flat;
use crate::source::{SourceId, Span};
use crate::syntax::MAX_DIAGNOSTICS;
use crate::syntax::ast::{self, AstNode, Declarator, Expr as Syntax};
use declare::Imported;
use distributed::Distribution;
use routine::Context;
use scope::Scopes;

/// The program, or none if one of the diagnostics is an error.
pub fn scheduler(flat: &Flat) -> (Option<Program>, Vec<Diagnostic>) {
    let mut lowering = Lowering::new(flat.name_span.source);
    lowering.program.name = flat.name.clone();
    lowering.program.partial = flat.partial;
    lowering.complete = flat.complete;
    lowering.program.may_be_split = flat.may_be_split;
    lowering.scopes.enter();
    lowering.declarations(flat);
    lowering.handlers(&flat.handlers);
    lowering.invariants(&flat.invariants);
    lowering.finish()
}

pub(crate) use distributed::{Programs, distributed as distributed_scheduler};

/// The work on one scheduler.
struct Lowering {
    program: Program,
    diagnostics: Vec<Diagnostic>,
    /// The file that the syntax at hand stands in.
    source: SourceId,
    scopes: Scopes,
    /// Whether every base could be read: otherwise an unknown name may be declared in one.
    complete: bool,
    /// There in a master and in its node schedulers.
    distribution: Option<Distribution>,
    /// None where the declaration is wrong.
    attributes: HashMap<String, Option<AttributeId>>,
    /// The scheduler's variables whose declarations have not been reached.
    pending: HashMap<String, Span>,
    /// Initial values that wait until all names are known.
    initials: Vec<(SourceId, AttributeId, Option<Syntax>)>,
    defaults: Vec<(SourceId, GlobalId, Option<Syntax>)>,
    terms: Vec<(SourceId, Imported, ast::Import)>,
    routine: Context,
    /// The block that is being written.
    out: Vec<Statement>,
    /// Whether an error was reported.
    failed: bool,
    /// The first finding that was not reported because there are so many.
    left_out: Option<Span>,
}

impl Lowering {
    fn new(source: SourceId) -> Lowering {
        Lowering {
            program: Program { source, ..Program::default() },
            diagnostics: Vec::new(),
            source,
            scopes: Scopes::default(),
            complete: true,
            distribution: None,
            attributes: HashMap::new(),
            pending: HashMap::new(),
            initials: Vec::new(),
            defaults: Vec::new(),
            terms: Vec::new(),
            routine: Context::default(),
            out: Vec::new(),
            failed: false,
            left_out: None,
        }
    }

    fn finish(mut self) -> (Option<Program>, Vec<Diagnostic>) {
        if let Some(span) = self.left_out {
            self.diagnostics.push(
                Diagnostic::new(
                    codes::syntax::TOO_MANY_ERRORS,
                    span,
                    format!(
                        "more than {MAX_DIAGNOSTICS} problems in this scheduler; the rest \
                         is not shown"
                    ),
                )
                .label("one of them")
                .hint("mend the first ones and look again: the others often follow from them"),
            );
        }
        ((!self.failed).then_some(self.program), self.diagnostics)
    }

    /// Adds a finding. The first error is always kept.
    fn report(&mut self, diagnostic: Diagnostic) {
        if !self.leaves_out(diagnostic.primary.span) {
            self.failed |= diagnostic.is_error();
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether so much is wrong that nothing more is said: a message may cost a search through the
    /// whole text.
    fn leaves_out(&mut self, span: Span) -> bool {
        let full = self.failed && self.diagnostics.len() >= MAX_DIAGNOSTICS;
        if full {
            self.left_out.get_or_insert(span);
        }
        full
    }

    fn span(&self, syntax: &impl AstNode) -> Span {
        syntax.span(self.source)
    }

    fn emit(&mut self, kind: StatementKind, span: Span) -> Option<()> {
        self.out.push(Statement { kind, span });
        Some(())
    }

    fn expr(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        self.program.exprs.alloc(Expr { kind, ty, span })
    }

    fn ty(&self, expr: ExprId) -> Type {
        self.program.exprs[expr].ty
    }

    fn check(&mut self, kind: CheckKind, span: Span) -> CheckId {
        let event = self.routine.event();
        self.program.checks.alloc(Check { kind, event, span })
    }

    /// Collects the statements that `build` emits.
    fn in_block<T>(&mut self, build: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        let around = std::mem::take(&mut self.out);
        let built = build(self);
        let statements = std::mem::replace(&mut self.out, around);
        (Block { statements }, built)
    }

    /// Lowers a routine, in a scope of its own.
    fn in_routine(&mut self, context: Context, build: impl FnOnce(&mut Self)) -> Routine {
        let around = std::mem::replace(&mut self.routine, context);
        self.scopes.enter();
        let (body, ()) = self.in_block(build);
        self.scopes.leave();
        let Context { parameter, locals, containers, .. } =
            std::mem::replace(&mut self.routine, around);
        Routine { parameter, locals, containers, body }
    }

    /// Where a name is declared, if that is after its use.
    fn declared_later(&mut self, name: &str, used: Span) -> Option<Span> {
        if let Some(&later) = self.pending.get(name) {
            return Some(later);
        }
        let last = *self.last_declarations().get(name)?;
        (last.start > used.start).then_some(last)
    }

    /// Where the routine declares each of its names for the last time.
    fn last_declarations(&mut self) -> &HashMap<String, Span> {
        let source = self.source;
        let syntax = self.routine.syntax.clone();
        self.routine.declarations.get_or_insert_with(|| {
            let declarators =
                syntax.iter().flat_map(|syntax| syntax.descendants()).filter_map(Declarator::cast);
            let names = declarators.filter_map(|declarator| declarator.name());
            names.map(|name| (name.text(), name.span(source))).collect()
        })
    }

    /// What the routine's parameter is called, for hints.
    fn parameter_name(&self) -> Option<String> {
        self.routine.parameter.map(|name| self.program.names[name].name.clone())
    }
}
