//! An assignment as the operation that it is, so that updates of one variable by several nodes of a
//! cluster merge (`distributed.rs`). Interpreter, back ends and limits ask here, so that all mean
//! the same operation.

use super::{BinaryOp, ExprId, ExprKind, LocalId, Place, Program, ThreadKind, Type};

/// `place OP operand`, also where the place's value is kept in a temporary first.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    pub operation: BinaryOp,
    pub left: ExprId,
    pub operand: ExprId,
    /// Reads the place.
    pub old: ExprId,
    pub temporary: Option<LocalId>,
    /// The place is an int, and the operation one of floats: `x += 1.5`. It counts as a float, and
    /// is cut off.
    pub mixed: bool,
}

impl Program {
    /// What the assignment of that value does to the place; None: it sets it.
    pub fn update(&self, place: &Place, value: ExprId) -> Option<Update> {
        let exprs = &self.exprs;
        let (mixed, value) = match exprs[value].kind {
            ExprKind::Convert(inner) if exprs[inner].ty == Type::Float => (true, inner),
            _ => (false, value),
        };
        let (temporary, held, body) = match exprs[value].kind {
            ExprKind::Let { temporary, value, body } => (Some(temporary), Some(value), body),
            _ => (None, None, value),
        };
        let ExprKind::Binary(operation, left, operand) = exprs[body].kind else { return None };
        if !operation.is_arithmetic() {
            return None;
        }
        let old = match (temporary, &exprs[left].kind) {
            (Some(temporary), ExprKind::Read(Place::Local(local, None))) if *local == temporary => {
                held?
            }
            (None, _) => left,
            _ => return None,
        };
        let read = match exprs[old].kind {
            ExprKind::Convert(held) if mixed => held,
            _ => old,
        };
        let ExprKind::Read(read) = &exprs[read].kind else { return None };
        let update = Update { operation, left, operand, old, temporary, mixed };
        same_place(place, read).then_some(update)
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
