//! The scheduler's own variables and containers: `data`.

use super::{append, scalar, zero};
use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;
use crate::lower::Lowering;
use crate::lower::routine::{Context, Purpose};
use crate::lower::scope::Entity;
use crate::resolve::Sited;
use crate::source::Span;
use crate::syntax::ast::{self, Expr as Syntax, SortOrder, Storage as Word, TypeKind};

/// The most elements that an array may have.
const LONGEST_ARRAY: i64 = 1 << 20;

const PERCPU_ARRAY: &str =
    "its elements are those of the CPUs: `x[c]` is CPU c's; declare several variables";

impl Lowering {
    pub(in crate::lower) fn data(&mut self, declaration: &Sited<ast::Declaration>) {
        self.source = declaration.source;
        let declaration = &declaration.node;
        let word = self.storage_word(declaration);
        let Some(kind) = declaration.ty().and_then(|ty| ty.kind()) else { return };
        for declarator in declaration.declarators() {
            let Some(name) = declarator.name() else { continue };
            let (text, span) = (name.text(), self.span(&name));
            let entity = match scalar(kind) {
                None => {
                    self.container_declaration(kind, &declarator, &text, word, Scope::Scheduler)
                }
                Some(ty) => self.global(ty, &declarator, &text, word),
            };
            self.pending.remove(&text);
            self.declare(&text, entity, span);
        }
    }

    fn global(
        &mut self,
        ty: Type,
        declarator: &ast::Declarator,
        name: &str,
        word: Option<Word>,
    ) -> Entity {
        let Some(span) = declarator.name().map(|name| self.span(&name)) else {
            return Entity::Broken;
        };
        if let Some(sort) = declarator.sort() {
            self.unexpected_sort(&sort);
        }
        let storage = match word {
            Some(Word::Const) => Storage::Const,
            Some(Word::Tunable) => Storage::Tunable,
            Some(Word::Percpu) | None => Storage::Data,
        };
        let extent = match declarator.array() {
            Some(array) => {
                if matches!(word, Some(Word::Const | Word::Tunable)) {
                    let at = self.span(&array);
                    self.misplaced(
                        at,
                        format!("`{name}` is an array, and its elements could never get values"),
                        "declare single constants, or an array without `const` or `tunable`",
                    );
                    return Entity::Broken;
                }
                if word == Some(Word::Percpu) {
                    let at = self.span(&array);
                    self.misplaced(
                        at,
                        "a per-CPU variable cannot be an array as well",
                        PERCPU_ARRAY,
                    );
                    return Entity::Broken;
                }
                match self.array_length(declarator, &array) {
                    Some(length) => Extent::Array(length),
                    None => return Entity::Broken,
                }
            }
            None if word == Some(Word::Percpu) => Extent::PerCpu,
            None => Extent::One,
        };
        // An array's initial value was refused with the syntax.
        let initial = declarator.initial();
        let mut global = Global {
            name: name.to_string(),
            ty,
            storage,
            extent,
            initial: zero(ty),
            terms: Terms::default(),
            span,
        };
        let Some(initial) = initial.filter(|_| !matches!(extent, Extent::Array(_))) else {
            if storage == Storage::Const {
                self.const_without_value(name, span);
                return Entity::Broken;
            }
            return Entity::Global(self.program.globals.alloc(global));
        };
        if storage == Storage::Tunable {
            if let Some(value) = self.constant_value(initial, ty, "the initial value of a tunable")
            {
                global.initial = value;
            }
            return Entity::Global(self.program.globals.alloc(global));
        }
        let at = self.span(&initial);
        let Some((value, routine)) = self.initial_value(initial, ty) else {
            return match storage {
                Storage::Const => Entity::Broken,
                _ => Entity::Global(self.program.globals.alloc(global)),
            };
        };
        if let (Some(value), true) = (self.constant(value), routine.body.statements.is_empty()) {
            global.initial = value;
            let id = self.program.globals.alloc(global);
            return if storage == Storage::Const {
                Entity::Constant(ty, value)
            } else {
                Entity::Global(id)
            };
        }
        let id = self.program.globals.alloc(global);
        self.initialise(id, value, routine, at);
        Entity::Global(id)
    }

    /// Evaluates an initial value in a routine of its own.
    pub(super) fn initial_value(&mut self, initial: Syntax, ty: Type) -> Option<(ExprId, Routine)> {
        let mut value = None;
        let context = Context { purpose: Purpose::Prologue, ..Context::default() };
        let routine = self.in_routine(context, |this| {
            value = this.number(Some(initial), Some(ty)).map(|value| this.store(value, ty));
        });
        value.map(|value| (value, routine))
    }

    /// Assigns a computed initial value in the prologue: to every CPU's instance of a per-CPU
    /// variable.
    fn initialise(&mut self, global: GlobalId, value: ExprId, routine: Routine, span: Span) {
        let per_cpu = self.program.globals[global].extent == Extent::PerCpu;
        let context = Context { purpose: Purpose::Prologue, ..Context::default() };
        let assign = self.in_routine(context, |this| {
            if per_cpu {
                this.initialise_each(global, value, span);
            } else {
                this.emit(
                    StatementKind::Assign { place: Place::Global(global, None), value },
                    span,
                );
            }
        });
        append(&mut self.program.prologue, routine);
        append(&mut self.program.prologue, assign);
    }

    /// `for (c = 0; c < cpus; c = c + 1) global[c] = value;` with the value evaluated once.
    fn initialise_each(&mut self, global: GlobalId, value: ExprId, span: Span) {
        let int = |this: &mut Self, value| {
            this.expr(ExprKind::Constant(Value::Int(value)), Type::Int, span)
        };
        let kept = self.temporary(self.program.globals[global].ty, span);
        self.emit(StatementKind::Assign { place: Place::Local(kept, None), value }, span);
        let cpu = self.temporary(Type::Int, span);
        let first = int(self, 0);
        self.emit(StatementKind::Assign { place: Place::Local(cpu, None), value: first }, span);
        let (body, ()) = self.in_block(|this| {
            let at = this.read_local(cpu, span);
            let check = this.check(CheckKind::IndexInRange, span);
            let value = this.read_local(kept, span);
            let place = Place::Global(global, Some(Index { at, check }));
            this.emit(StatementKind::Assign { place, value }, span);
        });
        let (step, ()) = self.in_block(|this| {
            let (read, one) = (this.read_local(cpu, span), int(this, 1));
            let value = this.expr(ExprKind::Binary(BinaryOp::Add, read, one), Type::Int, span);
            this.emit(StatementKind::Assign { place: Place::Local(cpu, None), value }, span);
        });
        let (read, cpus) = (self.read_local(cpu, span), self.expr(ExprKind::Cpus, Type::Int, span));
        let condition = self.expr(ExprKind::Binary(BinaryOp::Less, read, cpus), Type::Int, span);
        let bound = self.check(CheckKind::LoopBound, span);
        let prelude = Block::default();
        let each = Loop { test: Test::First, prelude, condition, body, step, bound };
        self.emit(StatementKind::Loop(Box::new(each)), span);
    }

    pub(in crate::lower) fn container_declaration(
        &mut self,
        kind: TypeKind,
        declarator: &ast::Declarator,
        name: &str,
        word: Option<Word>,
        scope: Scope,
    ) -> Entity {
        let Some(span) = declarator.name().map(|name| self.span(&name)) else {
            return Entity::Broken;
        };
        if let Some(word @ (Word::Const | Word::Tunable)) = word {
            let word = if word == Word::Const { "const" } else { "tunable" };
            self.misplaced(
                span,
                format!("a container cannot be `{word}`"),
                format!("leave out `{word}`: containers change whenever threads move"),
            );
        }
        if let Some(initial) = declarator.initial() {
            self.container_initial(name, &initial);
        }
        let extent = match declarator.array() {
            Some(array) if word == Some(Word::Percpu) => {
                let at = self.span(&array);
                self.misplaced(at, "a per-CPU container cannot be an array as well", PERCPU_ARRAY);
                return Entity::Broken;
            }
            Some(array) => match self.array_length(declarator, &array) {
                Some(length) => Extent::Array(length),
                None => return Entity::Broken,
            },
            None if word == Some(Word::Percpu)
                || (scope == Scope::Scheduler && name == "current") =>
            {
                Extent::PerCpu
            }
            None => Extent::One,
        };
        let Some(sort) = self.sort(kind, declarator, name, span) else { return Entity::Broken };
        let container = Container {
            name: name.to_string(),
            kind: container_kind(kind),
            sort,
            extent,
            scope,
            span,
        };
        Entity::Container(self.program.containers.alloc(container))
    }

    /// None after a report; the inner option is none for containers that are not sorted.
    fn sort(
        &mut self,
        kind: TypeKind,
        declarator: &ast::Declarator,
        name: &str,
        span: Span,
    ) -> Option<Option<Sort>> {
        let Some(clause) = declarator.sort() else {
            if !kind.is_sorted() {
                return Some(None);
            }
            let example = self
                .program
                .attributes
                .iter()
                .next()
                .map_or("priority", |(_, it)| it.name.as_str());
            let diagnostic = Diagnostic::new(
                codes::names::SORT_MISSING,
                span,
                format!("`{name}` is a `{}`, and nothing says by what it is sorted", kind.name()),
            )
            .label("the key is missing")
            .hint(format!("write `{} {name} sortable on {example};`", kind.name()));
            self.report(diagnostic);
            return None;
        };
        if !kind.is_sorted() {
            self.unexpected_sort(&clause);
            return None;
        }
        let by = self.attribute(&clause.key()?)?;
        let first = match clause.order() {
            SortOrder::Increasing => First::Lowest,
            SortOrder::Decreasing => First::Highest,
        };
        Some(Some(Sort { by, first }))
    }

    pub(super) fn array_length(
        &mut self,
        declarator: &ast::Declarator,
        array: &ast::ArraySize,
    ) -> Option<u32> {
        let span = self.span(array);
        let length =
            self.constant_value(declarator.size()?, Type::Int, "the length of an array")?;
        match length {
            Value::Int(length @ 1..=LONGEST_ARRAY) => u32::try_from(length).ok(),
            _ => {
                let found = match length {
                    Value::Int(length) => length.to_string(),
                    Value::Float(length) => length.to_string(),
                };
                self.report(
                    Diagnostic::new(
                        codes::names::ARRAY_LENGTH,
                        span,
                        format!("an array cannot have {found} elements"),
                    )
                    .label("no possible length")
                    .hint(format!("an array has from 1 to {LONGEST_ARRAY} elements")),
                );
                None
            }
        }
    }
}

/// Scalars are no containers; a `threadref` stands for them, and is never asked for.
fn container_kind(kind: TypeKind) -> ContainerKind {
    match kind {
        TypeKind::Queue => ContainerKind::Queue,
        TypeKind::Stack => ContainerKind::Stack,
        TypeKind::Pqueue => ContainerKind::PQueue,
        TypeKind::Pstack => ContainerKind::PStack,
        TypeKind::Threadref | TypeKind::Int | TypeKind::Float | TypeKind::Time => {
            ContainerKind::Threadref
        }
    }
}
