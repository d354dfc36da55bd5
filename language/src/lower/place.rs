//! Variables, containers, threads and their attributes: what an expression names rather than
//! computes.

use super::Lowering;
use super::operand::{Operand, Star, Variable};
use super::scope::Entity;
use crate::diagnostic::{Diagnostic, codes, suggest};
use crate::ir::*;
use crate::source::Span;
use crate::syntax::ast::{self, Expr as Syntax};

impl Lowering {
    /// Reports what is no variable; None after a report.
    pub(super) fn variable(&mut self, syntax: &Syntax) -> Option<Variable> {
        let span = self.span(syntax);
        match syntax {
            Syntax::Index(index) => {
                let base = index.base()?.without_parens()?;
                let (entity, name) = self.entity(&base)?;
                self.element(entity, &name, index.index(), span)
            }
            _ => {
                let (entity, name) = self.entity(syntax)?;
                self.whole(entity, &name, span)
            }
        }
    }

    pub(super) fn read_variable(&mut self, variable: Variable) -> Operand {
        match variable {
            Variable::Constant(ty, value, span) => {
                Operand::Number(self.expr(ExprKind::Constant(value), ty, span))
            }
            Variable::Place(place, ty, span) => {
                Operand::Number(self.expr(ExprKind::Read(place), ty, span))
            }
            Variable::Container(container) => Operand::Container(container),
            Variable::Thread(thread) => Operand::Thread(thread),
        }
    }

    /// What a name, `GLOBAL.x` or `node.x` was declared as.
    pub(super) fn entity(&mut self, syntax: &Syntax) -> Option<(Entity, String)> {
        let span = self.span(syntax);
        match syntax {
            Syntax::Name(name) => {
                let text = name.text();
                match self.scopes.find(&text) {
                    Some(declared) => Some((declared.entity, text)),
                    None => {
                        self.unknown_name(&text, span);
                        None
                    }
                }
            }
            Syntax::Field(field) if self.is_qualified(field) => self.qualified(field),
            _ => {
                self.report(
                    Diagnostic::new(codes::types::NOT_A_VARIABLE, span, "this is no variable")
                        .label("a value that has no name")
                        .hint("name a variable, a container or a thread here"),
                );
                None
            }
        }
    }

    /// The entity without an index.
    fn whole(&mut self, entity: Entity, name: &str, span: Span) -> Option<Variable> {
        let array = match entity {
            Entity::Local { id, .. } => self.program.locals[id].length,
            Entity::Global(id) => array_length(self.program.globals[id].extent),
            Entity::Container(id) => array_length(self.program.containers[id].extent),
            Entity::Constant(..) | Entity::Thread(_) | Entity::Broken => None,
        };
        if let Some(length) = array {
            self.report(
                Diagnostic::new(codes::types::INDEX_MISSING, span, format!("`{name}` is an array"))
                    .label("the whole array")
                    .hint(format!("name one element: `{name}[0]` to `{name}[{}]`", length - 1)),
            );
            return None;
        }
        self.with_index(entity, None, span)
    }

    /// The entity with an index.
    fn element(
        &mut self,
        entity: Entity,
        name: &str,
        index: Option<Syntax>,
        span: Span,
    ) -> Option<Variable> {
        let extent = match entity {
            Entity::Local { id, .. } => {
                self.program.locals[id].length.map_or(Extent::One, Extent::Array)
            }
            Entity::Global(id) => self.program.globals[id].extent,
            Entity::Container(id) => self.program.containers[id].extent,
            Entity::Constant(..) | Entity::Thread(_) => Extent::One,
            Entity::Broken => return None,
        };
        let at = self.number(index, Some(Type::Int));
        if extent == Extent::One {
            self.report(
                Diagnostic::new(codes::types::NOT_AN_ARRAY, span, format!("`{name}` is no array"))
                    .label("has no elements")
                    .hint(format!("write `{name}` alone, or declare it as an array: `{name}[8]`")),
            );
            return None;
        }
        let at = at?;
        let at = self.convert(at, Type::Int);
        if let (Extent::Array(length), Some(Value::Int(value))) = (extent, self.constant(at))
            && !(0..i64::from(length)).contains(&value)
        {
            let at = self.program.exprs[at].span;
            self.report(
                Diagnostic::new(
                    codes::types::INDEX_OUT_OF_RANGE,
                    at,
                    format!("`{name}` has no element {value}"),
                )
                .label("out of range")
                .hint(format!("its elements are `{name}[0]` to `{name}[{}]`", length - 1)),
            );
            return None;
        }
        let check = self.check(CheckKind::IndexInRange, span);
        self.with_index(entity, Some(Index { at, check }), span)
    }

    fn with_index(&mut self, entity: Entity, index: Option<Index>, span: Span) -> Option<Variable> {
        Some(match entity {
            Entity::Constant(ty, value) => Variable::Constant(ty, value, span),
            Entity::Local { id, .. } => {
                Variable::Place(Place::Local(id, index), self.program.locals[id].ty, span)
            }
            Entity::Global(id) => {
                Variable::Place(Place::Global(id, index), self.program.globals[id].ty, span)
            }
            Entity::Container(container) => {
                Variable::Container(ContainerRef { container, index, span })
            }
            Entity::Thread(name) => {
                Variable::Thread(ThreadExpr { kind: ThreadKind::Name(name), check: None, span })
            }
            Entity::Broken => return None,
        })
    }

    /// A container; reports anything else.
    pub(super) fn container(&mut self, syntax: &Syntax) -> Option<ContainerRef> {
        let span = self.span(syntax);
        let message = match self.operand(syntax, None) {
            Operand::Container(container) => return Some(container),
            Operand::Broken => return None,
            Operand::Thread(thread) => {
                format!("`{}` is a thread, no container", self.thread_name(&thread))
            }
            Operand::Number(_) => "this is a number, no container".to_string(),
        };
        self.report(
            Diagnostic::new(codes::types::NOT_A_CONTAINER, span, message)
                .label("a container is needed here")
                .hint("containers are declared in `data`: `queue RQ;`"),
        );
        None
    }

    /// A named thread or the first of a container, without its check; reports a number.
    pub(super) fn thread(&mut self, syntax: &Syntax) -> Option<ThreadExpr> {
        let span = self.span(syntax);
        match self.operand(syntax, None) {
            Operand::Thread(thread) => Some(ThreadExpr { span, ..thread }),
            Operand::Container(container) => {
                Some(ThreadExpr { kind: ThreadKind::First(container), check: None, span })
            }
            Operand::Number(_) => {
                self.report(
                    Diagnostic::new(
                        codes::types::NOT_A_THREAD,
                        span,
                        "this is a number, no thread",
                    )
                    .label("a thread is needed here")
                    .hint(
                        "a thread is a parameter, a `foreach` variable or the first of a container",
                    ),
                );
                None
            }
            Operand::Broken => None,
        }
    }

    /// The attribute of a thread, with the check that there is one.
    pub(super) fn attribute_place(
        &mut self,
        base: Option<Syntax>,
        field: Option<ast::Name>,
        star: Star,
        span: Span,
    ) -> Option<(Place, Type)> {
        let (base, field) = (base?, field?);
        let base_span = self.span(&base);
        let thread = match self.operand(&base, None) {
            Operand::Thread(thread) => thread,
            Operand::Container(container) => {
                if star == Star::Absent && !self.is_threadref(container) {
                    self.first_implied(container, &field, base_span);
                }
                ThreadExpr { kind: ThreadKind::First(container), check: None, span: base_span }
            }
            Operand::Number(_) => {
                let text = field.text();
                self.report(
                    Diagnostic::new(
                        codes::types::NOT_A_THREAD,
                        base_span,
                        "only a thread has variables",
                    )
                    .label("a number")
                    .hint(format!("name the thread whose `{text}` is meant: `t.{text}`")),
                );
                return None;
            }
            Operand::Broken => return None,
        };
        let attribute = match self.node_variable(Some(&base), &field) {
            Some(attribute) => attribute?,
            None => self.attribute(&field)?,
        };
        let kind = match thread.kind {
            ThreadKind::Name(_) => CheckKind::NamedUse,
            ThreadKind::First(_) => CheckKind::FirstFilled,
        };
        let check = self.check(kind, span);
        let place = Place::Attribute(ThreadExpr { check: Some(check), ..thread }, attribute);
        Some((place, self.program.attributes[attribute].ty))
    }

    fn first_implied(&mut self, container: ContainerRef, field: &ast::Name, span: Span) {
        let (name, field) = (self.container_name(container), field.text());
        self.report(
            Diagnostic::new(
                codes::types::FIRST_IMPLIED,
                span,
                format!("`{name}` holds many threads; its first one is taken"),
            )
            .label("a container")
            .hint(format!("write `*{name}.{field}`")),
        );
    }

    pub(super) fn attribute(&mut self, name: &ast::Name) -> Option<AttributeId> {
        if let Some(attribute) = self.node_variable(None, name) {
            return attribute;
        }
        let text = name.text();
        if let Some(&attribute) = self.attributes.get(&text) {
            return attribute;
        }
        if !self.sees_everything() {
            return None;
        }
        let span = self.span(name);
        let diagnostic = Diagnostic::new(
            codes::names::UNKNOWN_ATTRIBUTE,
            span,
            format!("{} have no variable `{text}`", self.vocabulary().threads),
        )
        .label("unknown variable");
        let hint = match suggest(&text, self.attributes.keys().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => self.vocabulary().declare_attribute.replace("NAME", &text),
        };
        self.report(diagnostic.hint(hint));
        None
    }

    pub(super) fn is_threadref(&self, container: ContainerRef) -> bool {
        self.program.containers[container.container].kind == ContainerKind::Threadref
    }

    /// A thread's name as the source has it.
    pub(super) fn thread_name(&self, thread: &ThreadExpr) -> String {
        match thread.kind {
            ThreadKind::Name(name) => self.program.names[name].name.clone(),
            ThreadKind::First(container) => format!("*{}", self.container_name(container)),
        }
    }

    /// A container as the source has it, its index left open.
    pub(super) fn container_name(&self, container: ContainerRef) -> String {
        let name = &self.program.containers[container.container].name;
        if container.index.is_some() { format!("{name}[..]") } else { name.clone() }
    }

    /// The same place for another use: its own expressions, its own checks. Its index has been made
    /// simple by [`Lowering::pin`].
    pub(super) fn copy_place(&mut self, place: Place) -> Place {
        match place {
            Place::Local(local, index) => Place::Local(local, self.copy_index(index)),
            Place::Global(global, index) => Place::Global(global, self.copy_index(index)),
            Place::Attribute(thread, attribute) => {
                let kind = match thread.kind {
                    ThreadKind::Name(name) => ThreadKind::Name(name),
                    ThreadKind::First(container) => {
                        ThreadKind::First(self.copy_container(container))
                    }
                };
                let check = thread.check.map(|check| self.copy_check(check));
                Place::Attribute(ThreadExpr { kind, check, ..thread }, attribute)
            }
        }
    }

    pub(super) fn copy_container(&mut self, container: ContainerRef) -> ContainerRef {
        ContainerRef { index: self.copy_index(container.index), ..container }
    }

    fn copy_index(&mut self, index: Option<Index>) -> Option<Index> {
        index.map(|index| Index {
            at: self.copy_expr(index.at),
            check: self.copy_check(index.check),
        })
    }

    fn copy_check(&mut self, check: CheckId) -> CheckId {
        let copy = self.program.checks[check].clone();
        self.program.checks.alloc(copy)
    }

    /// Indices are evaluated once, whatever becomes of their place: all but the simplest are kept
    /// in a temporary.
    pub(super) fn pin(&mut self, place: Place) -> Place {
        match place {
            Place::Local(local, index) => Place::Local(local, self.pin_index(index)),
            Place::Global(global, index) => Place::Global(global, self.pin_index(index)),
            Place::Attribute(thread, attribute) => {
                let kind = match thread.kind {
                    ThreadKind::Name(name) => ThreadKind::Name(name),
                    ThreadKind::First(container) => {
                        ThreadKind::First(self.pin_container(container))
                    }
                };
                Place::Attribute(ThreadExpr { kind, ..thread }, attribute)
            }
        }
    }

    pub(super) fn pin_container(&mut self, container: ContainerRef) -> ContainerRef {
        ContainerRef { index: self.pin_index(container.index), ..container }
    }

    fn pin_index(&mut self, index: Option<Index>) -> Option<Index> {
        let (index, kept) = self.simple_index(index?);
        if let Some((temporary, value)) = kept {
            let span = self.program.exprs[value].span;
            self.emit(StatementKind::Assign { place: Place::Local(temporary, None), value }, span);
        }
        Some(index)
    }

    /// The container with an index that may be copied; the caller keeps the value in the temporary,
    /// if there is one.
    pub(super) fn keep_index(
        &mut self,
        container: ContainerRef,
    ) -> (ContainerRef, Option<(LocalId, ExprId)>) {
        let Some(index) = container.index else { return (container, None) };
        let (index, kept) = self.simple_index(index);
        (ContainerRef { index: Some(index), ..container }, kept)
    }

    fn simple_index(&mut self, index: Index) -> (Index, Option<(LocalId, ExprId)>) {
        let Expr { ref kind, span, .. } = self.program.exprs[index.at];
        let simple = matches!(
            kind,
            ExprKind::Constant(_)
                | ExprKind::Cpu
                | ExprKind::Cpus
                | ExprKind::Read(Place::Local(_, None) | Place::Global(_, None))
        );
        if simple {
            return (index, None);
        }
        let temporary = self.temporary(Type::Int, span);
        let at = self.read_local(temporary, span);
        (Index { at, ..index }, Some((temporary, index.at)))
    }

    fn copy_expr(&mut self, expr: ExprId) -> ExprId {
        let copy = self.program.exprs[expr].clone();
        self.program.exprs.alloc(copy)
    }

    pub(super) fn constant(&self, expr: ExprId) -> Option<Value> {
        match self.program.exprs[expr].kind {
            ExprKind::Constant(value) => Some(value),
            _ => None,
        }
    }
}

fn array_length(extent: Extent) -> Option<u32> {
    match extent {
        Extent::Array(length) => Some(length),
        Extent::One | Extent::PerCpu => None,
    }
}
