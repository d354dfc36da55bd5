//! Declarations: attributes, imports, variables, containers, of the scheduler and of a routine.
//!
//! Initial values are constants where they can be; others are assigned by the prologues, where a local variable's
//! declaration stands. Invariant: a name is declared even if its declaration is wrong, so that its uses are no errors.

use std::collections::HashMap;

use super::routine::{Context, Purpose};
use super::scope::Entity;
use super::{Lowering, constant};
use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;
use crate::resolve::{Flat, Sited};
use crate::source::Span;
use crate::syntax::ast::Storage as Word;
use crate::syntax::ast::{self, AstNode, Expr as Syntax, SortOrder, TypeKind};

/// The most elements that an array may have.
pub(super) const LONGEST_ARRAY: i64 = 1 << 20;

impl Lowering {
    /// All sections. Attributes come first, for containers are sorted by them; then the names of imports, the data in the
    /// order of its declaration, and last what attributes and imports start with.
    pub(super) fn declarations(&mut self, flat: &Flat) {
        self.pending = names_of(&flat.data);
        flat.thread.iter().for_each(|it| self.attributes_of(it));
        flat.thread_imports.iter().for_each(|it| self.thread_import(it));
        flat.imports.iter().for_each(|it| self.import(it));
        flat.data.iter().for_each(|it| self.data(it));
        self.import_defaults();
        self.attribute_initials();
    }

    // ---- attributes ----------------------------------------------------------------------------------------------

    /// Their initial values come later, when all names are known.
    fn attributes_of(&mut self, declaration: &Sited<ast::Declaration>) {
        self.source = declaration.source;
        let declaration = &declaration.node;
        // A container was refused with the syntax.
        let ty = declaration.ty().and_then(|ty| ty.kind()).and_then(scalar);
        for declarator in declaration.declarators() {
            let Some(name) = declarator.name() else { continue };
            if let Some(array) = declarator.array() {
                let span = self.span(&array);
                self.misplaced(span, "a thread's variable is no array".to_string());
            }
            if let Some(sort) = declarator.sort() {
                self.unexpected_sort(&sort);
            }
            if let Some(attribute) = self.declare_attribute(&name, ty, false) {
                self.initials.push((self.source, attribute, declarator.initial()));
            }
        }
    }

    fn thread_import(&mut self, import: &Sited<ast::Import>) {
        self.source = import.source;
        let Some(name) = import.node.name() else { return };
        let ty = self.scalar_type(import.node.ty());
        if let Some(attribute) = self.declare_attribute(&name, ty, true) {
            self.initials.push((import.source, attribute, import.node.default()));
        }
    }

    fn declare_attribute(&mut self, name: &ast::Name, ty: Option<Type>, import: bool) -> Option<AttributeId> {
        let (text, span) = (name.text(), self.span(name));
        if let Some(earlier) = self.attributes.get(&text) {
            let earlier = earlier.map(|attribute| self.program.attributes[attribute].span);
            self.duplicate(&text, span, earlier);
            return None;
        }
        let attribute = ty.map(|ty| {
            let initial = zero(ty);
            self.program.attributes.alloc(Attribute { name: text.clone(), ty, initial, import, span })
        });
        self.attributes.insert(text, attribute);
        attribute
    }

    /// The initial values of attributes, once all names are known.
    fn attribute_initials(&mut self) {
        for (source, attribute, initial) in std::mem::take(&mut self.initials) {
            self.source = source;
            let Some(initial) = initial else { continue };
            let span = self.span(&initial);
            let Attribute { ty, import, .. } = self.program.attributes[attribute];
            let parameter = self.program.thread_prologue.parameter;
            let context = Context { purpose: Purpose::Prologue, parameter, ..Context::default() };
            let mut value = None;
            let mut routine = self.in_routine(context, |this| {
                value = this.number(Some(initial), Some(ty)).map(|value| this.store(value, ty));
            });
            let Some(value) = value else { continue };
            if let (Some(constant), true) = (self.constant(value), routine.body.statements.is_empty()) {
                self.program.attributes[attribute].initial = constant;
                continue;
            }
            if import {
                self.not_constant(span, "the default of an import");
                continue;
            }
            let name = self.new_thread(span);
            let check = Some(self.check(CheckKind::NamedUse, span));
            let thread = ThreadExpr { kind: ThreadKind::Name(name), check, span };
            let place = Place::Attribute(thread, attribute);
            routine.body.statements.push(Statement { kind: StatementKind::Assign { place, value }, span });
            append(&mut self.program.thread_prologue, routine);
        }
    }

    /// The thread that the thread prologue is about.
    fn new_thread(&mut self, span: Span) -> NameId {
        if let Some(name) = self.program.thread_prologue.parameter {
            return name;
        }
        let name = self.program.names.alloc(Name { name: "thread".to_string(), fixed: true, span });
        self.program.thread_prologue.parameter = Some(name);
        name
    }

    // ---- imports -------------------------------------------------------------------------------------------------

    fn import(&mut self, import: &Sited<ast::Import>) {
        self.source = import.source;
        let Some(name) = import.node.name() else { return };
        let (text, span) = (name.text(), self.span(&name));
        let entity = match self.scalar_type(import.node.ty()) {
            Some(ty) => {
                let global = Global {
                    name: text.clone(),
                    ty,
                    storage: Storage::Import,
                    extent: Extent::One,
                    initial: zero(ty),
                    span,
                };
                let global = self.program.globals.alloc(global);
                self.defaults.push((import.source, global, import.node.default()));
                Entity::Global(global)
            }
            None => Entity::Broken,
        };
        self.declare(&text, entity, span);
    }

    /// The defaults of imports, once the constants are known.
    fn import_defaults(&mut self) {
        for (source, global, default) in std::mem::take(&mut self.defaults) {
            self.source = source;
            let Some(default) = default else { continue };
            let ty = self.program.globals[global].ty;
            if let Some(value) = self.constant_value(default, ty, "the default of an import") {
                self.program.globals[global].initial = value;
            }
        }
    }

    // ---- data ----------------------------------------------------------------------------------------------------

    pub(super) fn data(&mut self, declaration: &Sited<ast::Declaration>) {
        self.source = declaration.source;
        let declaration = &declaration.node;
        let word = self.storage_word(declaration);
        let Some(kind) = declaration.ty().and_then(|ty| ty.kind()) else { return };
        for declarator in declaration.declarators() {
            let Some(name) = declarator.name() else { continue };
            let (text, span) = (name.text(), self.span(&name));
            let entity = match scalar(kind) {
                None => self.container_declaration(kind, &declarator, &text, word, Scope::Scheduler),
                Some(ty) => self.global(ty, &declarator, &text, word),
            };
            self.pending.remove(&text);
            self.declare(&text, entity, span);
        }
    }

    fn global(&mut self, ty: Type, declarator: &ast::Declarator, name: &str, word: Option<Word>) -> Entity {
        let Some(span) = declarator.name().map(|name| self.span(&name)) else { return Entity::Broken };
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
                    );
                    return Entity::Broken;
                }
                if word == Some(Word::Percpu) {
                    let at = self.span(&array);
                    self.misplaced(at, "a per-CPU variable cannot be an array as well".to_string());
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
        let mut global = Global { name: name.to_string(), ty, storage, extent, initial: zero(ty), span };
        let Some(initial) = initial.filter(|_| !matches!(extent, Extent::Array(_))) else {
            if storage == Storage::Const {
                self.const_without_value(name, span);
                return Entity::Broken;
            }
            return Entity::Global(self.program.globals.alloc(global));
        };
        if storage == Storage::Tunable {
            if let Some(value) = self.constant_value(initial, ty, "the initial value of a tunable") {
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
            return if storage == Storage::Const { Entity::Constant(ty, value) } else { Entity::Global(id) };
        }
        let id = self.program.globals.alloc(global);
        self.initialise(id, value, routine, at);
        Entity::Global(id)
    }

    /// Evaluates an initial value in a routine of its own.
    fn initial_value(&mut self, initial: Syntax, ty: Type) -> Option<(ExprId, Routine)> {
        let mut value = None;
        let context = Context { purpose: Purpose::Prologue, ..Context::default() };
        let routine = self.in_routine(context, |this| {
            value = this.number(Some(initial), Some(ty)).map(|value| this.store(value, ty));
        });
        value.map(|value| (value, routine))
    }

    /// Assigns a computed initial value in the prologue: to every CPU's instance of a per-CPU variable.
    fn initialise(&mut self, global: GlobalId, value: ExprId, routine: Routine, span: Span) {
        let per_cpu = self.program.globals[global].extent == Extent::PerCpu;
        let context = Context { purpose: Purpose::Prologue, ..Context::default() };
        let assign = self.in_routine(context, |this| {
            if per_cpu {
                this.initialise_each(global, value, span);
            } else {
                this.emit(StatementKind::Assign { place: Place::Global(global, None), value }, span);
            }
        });
        append(&mut self.program.prologue, routine);
        append(&mut self.program.prologue, assign);
    }

    /// `for (c = 0; c < cpus; c = c + 1) global[c] = value;` with the value evaluated once.
    fn initialise_each(&mut self, global: GlobalId, value: ExprId, span: Span) {
        let int = |this: &mut Self, value| this.expr(ExprKind::Constant(Value::Int(value)), Type::Int, span);
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

    // ---- containers ----------------------------------------------------------------------------------------------

    pub(super) fn container_declaration(
        &mut self,
        kind: TypeKind,
        declarator: &ast::Declarator,
        name: &str,
        word: Option<Word>,
        scope: Scope,
    ) -> Entity {
        let Some(span) = declarator.name().map(|name| self.span(&name)) else { return Entity::Broken };
        if let Some(word @ (Word::Const | Word::Tunable)) = word {
            let word = if word == Word::Const { "const" } else { "tunable" };
            self.misplaced(span, format!("a container cannot be `{word}`"));
        }
        if let Some(initial) = declarator.initial() {
            self.container_initial(name, &initial);
        }
        let extent = match declarator.array() {
            Some(array) if word == Some(Word::Percpu) => {
                let at = self.span(&array);
                self.misplaced(at, "a per-CPU container cannot be an array as well".to_string());
                return Entity::Broken;
            }
            Some(array) => match self.array_length(declarator, &array) {
                Some(length) => Extent::Array(length),
                None => return Entity::Broken,
            },
            None if word == Some(Word::Percpu) || (scope == Scope::Scheduler && name == "current") => {
                Extent::PerCpu
            }
            None => Extent::One,
        };
        let Some(sort) = self.sort(kind, declarator, name, span) else { return Entity::Broken };
        let container =
            Container { name: name.to_string(), kind: container_kind(kind), sort, extent, scope, span };
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
            let example =
                self.program.attributes.iter().next().map_or("priority", |(_, it)| it.name.as_str());
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

    fn array_length(&mut self, declarator: &ast::Declarator, array: &ast::ArraySize) -> Option<u32> {
        let span = self.span(array);
        let length = self.constant_value(declarator.size()?, Type::Int, "the length of an array")?;
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
                    .label(format!("from 1 to {LONGEST_ARRAY}")),
                );
                None
            }
        }
    }

    // ---- locals --------------------------------------------------------------------------------------------------

    pub(super) fn local_declaration(&mut self, declaration: &ast::Declaration) {
        let mut word = self.storage_word(declaration);
        if let Some((Word::Tunable | Word::Percpu, token)) = declaration.storage().next() {
            let span = Span::new(self.source, token.text_range());
            self.misplaced(span, format!("`{}` belongs into `data`, not into a handler", token.text()));
            word = None;
        }
        let Some(kind) = declaration.ty().and_then(|ty| ty.kind()) else { return };
        for declarator in declaration.declarators() {
            let Some(name) = declarator.name() else { continue };
            let (text, span) = (name.text(), self.span(&name));
            let entity = match (scalar(kind), self.routine.event()) {
                (Some(ty), _) => self.local(ty, &declarator, &text, word, span),
                (None, Some(event)) => {
                    self.container_declaration(kind, &declarator, &text, word, Scope::Handler(event))
                }
                (None, None) => {
                    self.misplaced(span, "a container cannot be declared here".to_string());
                    Entity::Broken
                }
            };
            if let Entity::Container(container) = entity {
                self.routine.containers.push(container);
            }
            self.declare(&text, entity, span);
        }
    }

    /// A local variable, with the statement that gives it its value: zero if nothing else is said.
    fn local(
        &mut self,
        ty: Type,
        declarator: &ast::Declarator,
        name: &str,
        word: Option<Word>,
        span: Span,
    ) -> Entity {
        if let Some(sort) = declarator.sort() {
            self.unexpected_sort(&sort);
        }
        let is_const = word == Some(Word::Const);
        let length = match declarator.array() {
            Some(array) if is_const => {
                let at = self.span(&array);
                self.misplaced(at, format!("`{name}` is an array, and its elements could never get values"));
                return Entity::Broken;
            }
            Some(array) => match self.array_length(declarator, &array) {
                Some(length) => Some(length),
                None => return Entity::Broken,
            },
            None => None,
        };
        let value = match (declarator.initial(), length) {
            (Some(initial), None) => match self.number(Some(initial), Some(ty)) {
                Some(value) => Some(self.store(value, ty)),
                None => return Entity::Broken,
            },
            (_, Some(_)) => None,
            (None, None) if is_const => {
                self.const_without_value(name, span);
                return Entity::Broken;
            }
            (None, None) => Some(self.expr(ExprKind::Constant(zero(ty)), ty, span)),
        };
        let known = value.and_then(|value| self.constant(value)).filter(|_| is_const);
        if let (Some(value), false) = (known, self.routine.verbatim) {
            return Entity::Constant(ty, value);
        }
        let local = Local { name: name.to_string(), ty, length, temporary: false, span };
        let id = self.program.locals.alloc(local);
        self.routine.locals.push(id);
        match value {
            Some(value) => self.emit(StatementKind::Assign { place: Place::Local(id, None), value }, span),
            None => self.emit(StatementKind::Clear(id), span),
        };
        match known {
            Some(value) => Entity::Constant(ty, value),
            None => Entity::Local { id, constant: is_const },
        }
    }

    // ---- what declarations share ---------------------------------------------------------------------------------

    /// Puts the name into the innermost scope, or reports that it is taken.
    pub(super) fn declare(&mut self, name: &str, entity: Entity, span: Span) {
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
            self.misplaced(span, format!("`{}` cannot be joined with another word", token.text()));
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
    pub(super) fn constant_value(&mut self, syntax: Syntax, ty: Type, what: &str) -> Option<Value> {
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

    fn not_constant(&mut self, span: Span, what: &str) {
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
            .hint(format!("move a thread into it: `{} => {name};`", source.trim_start_matches('*'))),
        );
    }

    fn unexpected_sort(&mut self, clause: &ast::SortClause) {
        let span = self.span(clause);
        self.report(
            Diagnostic::new(codes::names::SORT_UNEXPECTED, span, "only a `pqueue` or a `pstack` is sorted")
                .label("sorts nothing")
                .hint("declare it as a `pqueue`, which is a sorted queue, or a `pstack`, a sorted stack"),
        );
    }

    fn misplaced(&mut self, span: Span, message: String) {
        self.report(Diagnostic::new(codes::names::MISPLACED_DECLARATION, span, message));
    }

    pub(super) fn duplicate(&mut self, name: &str, span: Span, earlier: Option<Span>) {
        let mut diagnostic =
            Diagnostic::new(codes::names::DUPLICATE_NAME, span, format!("`{name}` is declared twice"))
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

/// Scalars are no containers; a `threadref` stands for them, and is never asked for.
fn container_kind(kind: TypeKind) -> ContainerKind {
    match kind {
        TypeKind::Queue => ContainerKind::Queue,
        TypeKind::Stack => ContainerKind::Stack,
        TypeKind::Pqueue => ContainerKind::PQueue,
        TypeKind::Pstack => ContainerKind::PStack,
        TypeKind::Threadref | TypeKind::Int | TypeKind::Float | TypeKind::Time => ContainerKind::Threadref,
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
