//! Assignments to what a cluster supplies: the engine is told the operation, so that updates by
//! several nodes merge (`runtime/shared.h`).
//!
//! Invariant: an assignment is the operation that the interpreter takes it for. `x += e` and
//! `x = x + e` are additions of e; any other value is set.

use attune_language::ir::{BinaryOp, ExprId, GlobalId, NodeProperty, Place, Type, Update};

use super::Writer;

impl Writer<'_> {
    /// Whether a cluster supplies the global.
    pub(crate) fn is_shared(&self, id: GlobalId) -> bool {
        self.program.membership.remotes.iter().any(|remote| remote.global == id)
    }

    /// Whether it says how old the node's copy is.
    pub(crate) fn is_age(&self, id: GlobalId) -> bool {
        let mut remotes = self.program.membership.remotes.iter();
        remotes.any(|it| it.global == id && matches!(it.property, NodeProperty::Age(_)))
    }

    pub(super) fn share(&mut self, id: GlobalId, value: ExprId) {
        let (global, number) = (self.global(id), id.into_raw().into_u32());
        let real = self.program.globals[id].ty == Type::Float;
        let mut update = if real { "attune_update_real" } else { "attune_update" };
        let (operation, by) = match self.program.update(&Place::Global(id, None), value) {
            Some(Update { operation, operand, temporary, mixed, .. }) => {
                if mixed {
                    update = "attune_update_mixed";
                }
                if let Some(temporary) = temporary {
                    let temporary = self.names.local(temporary).to_string();
                    self.out.line(format!("{temporary} = {global};"));
                }
                let by = self.expr(operand);
                match operation {
                    BinaryOp::Subtract if real || mixed => ("ATTUNE_ADD", format!("-({by})")),
                    BinaryOp::Subtract => ("ATTUNE_ADD", format!("attune_neg({by})")),
                    BinaryOp::Multiply => ("ATTUNE_MULTIPLY", by),
                    BinaryOp::Divide => ("ATTUNE_DIVIDE", by),
                    BinaryOp::Remainder => ("ATTUNE_REMAINDER", by),
                    _ => ("ATTUNE_ADD", by),
                }
            }
            None => ("ATTUNE_SET", self.expr(value)),
        };
        self.out
            .line(format!("{global} = {update}(attune, {number}, {operation}, {global}, {by});"));
        self.write_through(id);
    }
}
