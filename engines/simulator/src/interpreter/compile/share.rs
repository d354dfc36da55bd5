//! Assigning what a cluster shares: as the operation that it is, so that it merges with others'.

use attune_language::ir::{BinaryOp, ExprId, ExprKind, Place, ThreadKind, Type};

use super::{Compiler, operator};
use crate::interpreter::code::*;

impl Compiler<'_> {
    /// The assignment of something that a cluster shares.
    pub(super) fn share(&self, place: &Place, value: ExprId) -> Option<Statement> {
        let membership = &self.program.membership;
        let (shared, ty) = match place {
            Place::Global(id, None)
                if membership.remotes.iter().any(|remote| remote.global == *id) =>
            {
                let slot = self.layout.global(*id);
                (SharePlace::Global { slot, id: *id }, self.program.globals[*id].ty)
            }
            Place::Attribute(thread, id)
                if membership.properties.iter().any(|(attribute, _)| attribute == id) =>
            {
                let thread = self.thread(thread);
                (SharePlace::Attribute { thread, id: *id }, self.program.attributes[*id].ty)
            }
            _ => return None,
        };
        let value =
            self.operation(place, value).unwrap_or_else(|| ShareValue::Any(self.expr(value)));
        let share = Share { place: shared, value, float: ty == Type::Float };
        Some(Statement::Share(Box::new(share)))
    }

    /// `place OP operand` in its parts, also where the place's value is kept in a temporary first.
    pub(super) fn operation(&self, place: &Place, value: ExprId) -> Option<ShareValue> {
        // An int that a float updates, as in `x += 1.5`, counts as a float, and is cut off.
        let (mixed, value) = match self.program.exprs[value].kind {
            ExprKind::Convert(inner) if self.program.exprs[inner].ty == Type::Float => {
                (true, inner)
            }
            _ => (false, value),
        };
        let (temporary, held, body) = match &self.program.exprs[value].kind {
            ExprKind::Let { temporary, value, body } => (Some(*temporary), Some(*value), *body),
            _ => (None, None, value),
        };
        let ExprKind::Binary(op, left, operand) = &self.program.exprs[body].kind else {
            return None;
        };
        let arithmetic = [
            BinaryOp::Add,
            BinaryOp::Subtract,
            BinaryOp::Multiply,
            BinaryOp::Divide,
            BinaryOp::Remainder,
        ];
        if !arithmetic.contains(op) {
            return None;
        }
        let old = match (temporary, &self.program.exprs[*left].kind) {
            (Some(temporary), ExprKind::Read(Place::Local(local, None))) if *local == temporary => {
                held?
            }
            (None, _) => *left,
            _ => return None,
        };
        let held = match &self.program.exprs[old].kind {
            ExprKind::Convert(held) if mixed => *held,
            _ => old,
        };
        let ExprKind::Read(read) = &self.program.exprs[held].kind else { return None };
        same_place(place, read).then(|| ShareValue::Operation {
            old: self.expr(old),
            temporary: temporary.map(|local| self.layout.local(local)),
            operator: operator(*op, self.program.exprs[*left].ty == Type::Float),
            operand: self.expr(*operand),
            mixed,
        })
    }
}

/// Whether both are the same variable of the scheduler, or of the same thread.
fn same_place(left: &Place, right: &Place) -> bool {
    match (left, right) {
        (Place::Global(left, None), Place::Global(right, None)) => left == right,
        (Place::Attribute(of, left), Place::Attribute(other, right)) => {
            left == right
                && match (&of.kind, &other.kind) {
                    (ThreadKind::Name(of), ThreadKind::Name(other)) => of == other,
                    (ThreadKind::First(of), ThreadKind::First(other)) => {
                        of.container == other.container
                            && of.index.is_none()
                            && other.index.is_none()
                    }
                    _ => false,
                }
        }
        _ => false,
    }
}
