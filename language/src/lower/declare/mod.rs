//! Declarations: attributes, imports, variables, containers, of the scheduler and of a routine.
//!
//! Initial values are constants where they can be; others are assigned by the prologues, or where a
//! local variable's declaration stands. Invariant: a name is declared even if its declaration is
//! wrong, so that its uses are no errors.
//!
//! - `inputs` what each thread has and what the application tells, `terms` within which range and
//!   from whom; `data` variables and containers; `local` those of a handler

mod data;
mod inputs;
mod local;
mod terms;

use std::collections::HashMap;

use super::scope::Entity;
use super::{Lowering, constant};
use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;
use crate::resolve::{Flat, Sited};
use crate::source::Span;
use crate::syntax::ast::{self, AstNode, Expr as Syntax, Storage as Word, TypeKind};
pub(super) use terms::Imported;

impl Lowering {
    /// All sections. Attributes come first, for containers are sorted by them; then the names of
    /// imports, the data in the order of its declaration, and last what attributes and imports
    /// start with.
    pub(in crate::lower) fn declarations(&mut self, flat: &Flat) {
        self.pending = names_of(&flat.data);
        flat.thread.iter().for_each(|it| self.attributes_of(it));
        flat.thread_imports.iter().for_each(|it| self.thread_import(it));
        flat.imports.iter().for_each(|it| self.import(it));
        flat.data.iter().for_each(|it| self.data(it));
        self.import_defaults();
        self.attribute_initials();
        self.import_terms();
    }

    /// Puts the name into the innermost scope, or reports that it is taken.
    pub(in crate::lower) fn declare(&mut self, name: &str, entity: Entity, span: Span) {
        if let Some(earlier) = self.scopes.declare(name, entity, span) {
            self.duplicate(name, span, Some(earlier.span));
        } else if self.scopes.outer_first > 0 {
            self.warn_hidden(name, span);
        }
    }

    /// The one word before the type.
    fn storage_word(&mut self, declaration: &ast::Declaration) -> Option<Word> {
        let mut words = declaration.storage();
        let first = words.next();
        for (_, token) in words {
            let span = Span::new(self.source, token.text_range());
            self.misplaced(
                span,
                format!("`{}` cannot be joined with another word", token.text()),
                "keep one of `const`, `tunable` and `percpu`",
            );
        }
        first.map(|(word, _)| word)
    }

    /// `int`, `float` or `time`; reports a container's type.
    fn scalar_type(&mut self, ty: Option<ast::Type>) -> Option<Type> {
        let ty = ty?;
        let kind = ty.kind()?;
        let scalar = scalar(kind);
        if scalar.is_none() {
            let span = self.span(&ty);
            self.report(
                Diagnostic::new(
                    codes::names::MISPLACED_DECLARATION,
                    span,
                    format!("a `{}` cannot be declared here", kind.name()),
                )
                .label("a container")
                .hint("containers are declared in `data`; here only `int`, `float` and `time`"),
            );
        }
        scalar
    }

    /// The value of an expression that must be a constant.
    pub(in crate::lower) fn constant_value(
        &mut self,
        syntax: Syntax,
        ty: Type,
        what: &str,
    ) -> Option<Value> {
        let span = self.span(&syntax);
        let (value, routine) = self.initial_value(syntax, ty)?;
        match self.constant(value) {
            Some(value) if routine.body.statements.is_empty() => Some(constant::convert(value, ty)),
            _ => {
                self.not_constant(span, what);
                None
            }
        }
    }

    pub(in crate::lower) fn not_constant(&mut self, span: Span, what: &str) {
        self.report(
            Diagnostic::new(codes::names::NOT_CONSTANT, span, format!("{what} must be a constant"))
                .label("known only when the scheduler runs")
                .hint("use numbers, and constants declared before: `const int N = 8;`"),
        );
    }

    fn const_without_value(&mut self, name: &str, span: Span) {
        self.report(
            Diagnostic::new(
                codes::names::CONST_WITHOUT_VALUE,
                span,
                format!("the constant `{name}` has no value"),
            )
            .label("the value is missing")
            .hint(format!("write `{name} = ..`")),
        );
    }

    fn container_initial(&mut self, name: &str, initial: &Syntax) {
        let span = self.span(initial);
        let source = initial.syntax().text().to_string();
        self.report(
            Diagnostic::new(
                codes::names::CONTAINER_INITIAL,
                span,
                format!("the container `{name}` starts empty"),
            )
            .label("a container has no initial value")
            .hint(format!(
                "move a thread into it: `{} => {name};`",
                source.trim_start_matches('*')
            )),
        );
    }

    fn unexpected_sort(&mut self, clause: &ast::SortClause) {
        let span = self.span(clause);
        self.report(
            Diagnostic::new(
                codes::names::SORT_UNEXPECTED,
                span,
                "only a `pqueue` or a `pstack` is sorted",
            )
            .label("sorts nothing")
            .hint(
                "declare it as a `pqueue`, which is a sorted queue, or a `pstack`, a sorted stack",
            ),
        );
    }

    fn misplaced(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.report(
            Diagnostic::new(codes::names::MISPLACED_DECLARATION, span, message)
                .label("has no meaning here")
                .hint(hint),
        );
    }

    pub(in crate::lower) fn duplicate(&mut self, name: &str, span: Span, earlier: Option<Span>) {
        let mut diagnostic = Diagnostic::new(
            codes::names::DUPLICATE_NAME,
            span,
            format!("`{name}` is declared twice"),
        )
        .label("the second time")
        .hint("give one of them another name");
        if let Some(earlier) = earlier {
            diagnostic = diagnostic.also(earlier, "the first time");
        }
        self.report(diagnostic);
    }
}

pub(super) fn scalar(kind: TypeKind) -> Option<Type> {
    match kind {
        TypeKind::Int => Some(Type::Int),
        TypeKind::Float => Some(Type::Float),
        TypeKind::Time => Some(Type::Time),
        _ => None,
    }
}

pub(super) fn zero(ty: Type) -> Value {
    match ty {
        Type::Float => Value::Float(0.0),
        Type::Int | Type::Time => Value::Int(0),
    }
}

/// Every name that the declarations declare, and where.
fn names_of(declarations: &[Sited<ast::Declaration>]) -> HashMap<String, Span> {
    let names = |it: &Sited<ast::Declaration>| {
        let source = it.source;
        let names = it.node.declarators().filter_map(|declarator| declarator.name());
        names.map(move |name| (name.text(), name.span(source))).collect::<Vec<_>>()
    };
    declarations.iter().flat_map(names).collect()
}

/// Puts a routine's statements behind another's.
fn append(to: &mut Routine, mut routine: Routine) {
    to.locals.append(&mut routine.locals);
    to.body.statements.append(&mut routine.body.statements);
}
