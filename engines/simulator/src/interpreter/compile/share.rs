//! Assigning what a cluster shares: as the operation that it is, so that it merges with others'.

use attune_language::ir::{ExprId, Place, Type};

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

    /// `place OP operand` in its parts.
    pub(super) fn operation(&self, place: &Place, value: ExprId) -> Option<ShareValue> {
        let update = self.program.update(place, value)?;
        Some(ShareValue::Operation {
            old: self.expr(update.old),
            temporary: update.temporary.map(|local| self.layout.local(local)),
            operator: operator(update.operation, self.program.exprs[update.left].ty == Type::Float),
            operand: self.expr(update.operand),
            mixed: update.mixed,
        })
    }
}
