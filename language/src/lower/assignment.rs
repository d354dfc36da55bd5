//! Assignments, increments and what they yield as expressions.

use super::operand::{Star, Variable, Yields};
use super::scope::Entity;
use super::{Lowering, types};
use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;
use crate::source::Span;
use crate::syntax::ast::{self, AstNode, Expr as Syntax};

impl Lowering {
    /// None if something is wrong, or if nothing is to be yielded.
    pub(super) fn assignment(
        &mut self,
        assign: &ast::AssignExpr,
        yields: Yields,
    ) -> Option<ExprId> {
        let span = self.span(assign);
        let target = self.target(assign.target(), assign.value());
        let Some((place, ty)) = target else {
            // Errors in the value are worth reporting all the same.
            if let Some(value) = assign.value() {
                self.operand(&value, None);
            }
            return None;
        };
        match assign.op().and_then(types::operator) {
            None => {
                let mark = self.out.len();
                let value = self.number(assign.value(), Some(ty))?;
                let place = self.anchor_before(place, value, mark);
                let value = self.store(value, ty);
                self.write(place, ty, value, yields, span)
            }
            Some(op) => self
                .update(place, ty, op, span, yields, |this| this.number(assign.value(), Some(ty))),
        }
    }

    /// `x++` and its like.
    pub(super) fn step(
        &mut self,
        target: Option<Syntax>,
        op: BinaryOp,
        yields: Yields,
        span: Span,
    ) -> Option<ExprId> {
        let (place, ty) = self.target(target, None)?;
        self.update(place, ty, op, span, yields, |this| {
            let (value, ty) = match ty {
                Type::Float => (Value::Float(1.0), Type::Float),
                Type::Int | Type::Time => (Value::Int(1), Type::Int),
            };
            Some(this.expr(ExprKind::Constant(value), ty, span))
        })
    }

    /// Reads the place, then `operand`, then writes the place.
    fn update(
        &mut self,
        place: Place,
        ty: Type,
        op: BinaryOp,
        span: Span,
        yields: Yields,
        operand: impl FnOnce(&mut Self) -> Option<ExprId>,
    ) -> Option<ExprId> {
        let place = self.pin(place);
        let shared = self.is_shared(place);
        let mut old = self.read_place(place, ty, span);
        let before = (yields == Yields::Before).then(|| {
            let temporary = self.temporary(ty, span);
            self.emit(
                StatementKind::Assign { place: Place::Local(temporary, None), value: old },
                span,
            );
            old = if shared {
                self.read_place(place, ty, span)
            } else {
                self.read_local(temporary, span)
            };
            temporary
        });
        let mark = self.out.len();
        let right = operand(self)?;
        // An update of something shared stays one that merges: `place OP operand`.
        if !shared {
            old = self.anchor(old, mark);
        }
        let place = self.anchor_place(place, mark);
        let value = self.arithmetic(op, old, right, span)?;
        let value = self.store(value, ty);
        let written = self.write(
            place,
            ty,
            value,
            if before.is_some() { Yields::Nothing } else { yields },
            span,
        );
        match before {
            Some(temporary) => Some(self.read_local(temporary, span)),
            None => written,
        }
    }

    fn write(
        &mut self,
        place: Place,
        ty: Type,
        value: ExprId,
        yields: Yields,
        span: Span,
    ) -> Option<ExprId> {
        let constant = self.constant(value);
        let plain = match place {
            Place::Local(_, None) => true,
            // The value must not go through a temporary, or an update would become a set.
            _ if self.is_shared(place) => true,
            // An import may hold less than it was given.
            Place::Global(global, None) => self.program.globals[global].storage != Storage::Import,
            _ => false,
        };
        if yields == Yields::Nothing || plain || constant.is_some() {
            self.emit(StatementKind::Assign { place, value }, span);
            return match (yields, constant) {
                (Yields::Nothing, _) => None,
                (_, Some(value)) => Some(self.expr(ExprKind::Constant(value), ty, span)),
                (_, None) => Some(self.read_place(place, ty, span)),
            };
        }
        let temporary = self.temporary(ty, span);
        self.emit(StatementKind::Assign { place: Place::Local(temporary, None), value }, span);
        let kept = self.read_local(temporary, span);
        self.emit(StatementKind::Assign { place, value: kept }, span);
        Some(self.read_local(temporary, span))
    }

    fn read_place(&mut self, place: Place, ty: Type, span: Span) -> ExprId {
        let read = self.copy_place(place);
        self.expr(ExprKind::Read(read), ty, span)
    }

    /// Whether a cluster supplies it, so that updates by several nodes merge.
    fn is_shared(&self, place: Place) -> bool {
        let membership = &self.program.membership;
        match place {
            Place::Local(..) => false,
            Place::Global(id, _) => membership.remotes.iter().any(|remote| remote.global == id),
            Place::Attribute(_, id) => membership.properties.iter().any(|(known, _)| *known == id),
        }
    }

    /// The place's index is read before the value: it is kept where the value could change it, or
    /// where both can trap.
    fn anchor_before(&mut self, place: Place, value: ExprId, mark: usize) -> Place {
        let place = self.anchor_place(place, mark);
        let index = match place {
            Place::Local(_, index) | Place::Global(_, index) => index,
            Place::Attribute(ThreadExpr { kind: ThreadKind::First(container), .. }, _) => {
                container.index
            }
            Place::Attribute(..) => None,
        };
        if index.is_some_and(|index| self.may_trap(index.at)) && self.may_trap(value) {
            return self.pin(place);
        }
        place
    }

    /// What is assigned to; reports what cannot be.
    fn target(&mut self, target: Option<Syntax>, value: Option<Syntax>) -> Option<(Place, Type)> {
        let target = target?.without_parens()?;
        let span = self.span(&target);
        match &target {
            Syntax::Name(_) | Syntax::Index(_) => {
                let base = match &target {
                    Syntax::Index(index) => index.base()?.without_parens()?,
                    _ => target.clone(),
                };
                let (entity, name) = self.entity(&base)?;
                self.refuse_constant(entity, &name, span)?;
                let variable = self.variable(&target)?;
                self.variable_target(variable, value, span)
            }
            Syntax::Field(field) if self.is_qualified(field) => {
                let (entity, name) = self.entity(&target)?;
                self.refuse_constant(entity, &name, span)?;
                let variable = self.variable(&target)?;
                self.variable_target(variable, value, span)
            }
            Syntax::Field(field) => {
                self.attribute_place(field.base(), field.field(), Star::Absent, span)
            }
            Syntax::First(first) => match first.container().and_then(Syntax::without_parens)? {
                Syntax::Field(field) if !self.is_qualified(&field) => {
                    self.attribute_place(field.base(), field.field(), Star::Written, span)
                }
                _ => None,
            },
            // Refused with the syntax.
            _ => None,
        }
    }

    fn variable_target(
        &mut self,
        variable: Variable,
        value: Option<Syntax>,
        span: Span,
    ) -> Option<(Place, Type)> {
        let name = match variable {
            Variable::Place(place, ty, _) => return Some((place, ty)),
            // Refused before.
            Variable::Constant(..) => return None,
            Variable::Container(container) => self.container_name(container),
            Variable::Thread(thread) => self.thread_name(&thread),
        };
        self.report(
            Diagnostic::new(
                codes::types::NOT_ASSIGNABLE,
                span,
                format!("`{name}` cannot be assigned"),
            )
            .label("holds threads, no value")
            .hint(match value {
                Some(value @ (Syntax::Name(_) | Syntax::Index(_))) => {
                    format!("threads are moved: `{} => {name};`", value.syntax().text())
                }
                _ => "threads are moved: `source => destination;`".to_string(),
            }),
        );
        None
    }

    fn refuse_constant(&mut self, entity: Entity, name: &str, span: Span) -> Option<()> {
        let (what, hint) = match entity {
            Entity::Constant(..) | Entity::Local { constant: true, .. } => {
                ("a constant", "without `const`")
            }
            Entity::Global(global) => match self.program.globals[global].storage {
                Storage::Const => ("a constant", "without `const`"),
                Storage::Tunable => ("tunable: it is set from outside only", "without `tunable`"),
                Storage::Data | Storage::Import => return Some(()),
            },
            _ => return Some(()),
        };
        let declared = self.scopes.find(name).map(|declared| declared.span);
        let mut diagnostic =
            Diagnostic::new(codes::types::ASSIGNED_CONSTANT, span, format!("`{name}` is {what}"))
                .label("assigned here")
                .hint(format!("declare it {hint} if handlers shall change it"));
        if let Some(declared) = declared {
            diagnostic = diagnostic.also(declared, "declared here");
        }
        self.report(diagnostic);
        None
    }
}
