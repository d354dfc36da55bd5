//! Assignments to what a cluster supplies: the engine is told the operation, so that updates by
//! several nodes merge (`runtime/shared.h`).
//!
//! Invariant: an assignment is the operation that the interpreter takes it for. `x += e` and
//! `x = x + e` are additions of e; any other value is set.

use attune_language::ir::{BinaryOp, ExprId, ExprKind, GlobalId, LocalId, Place, Type};

use super::Writer;

/// `place OP operand`, and the temporary that holds the place's value meanwhile, if one does.
struct Merging {
    operation: BinaryOp,
    operand: ExprId,
    temporary: Option<LocalId>,
    /// The place is an int, and the operation one of floats: `x += 1.5`.
    mixed: bool,
}

impl Writer<'_> {
    /// Whether a cluster supplies the global.
    pub(crate) fn is_shared(&self, id: GlobalId) -> bool {
        self.program.membership.remotes.iter().any(|remote| remote.global == id)
    }

    pub(super) fn share(&mut self, id: GlobalId, value: ExprId) {
        let (global, number) = (self.global(id), id.into_raw().into_u32());
        let real = self.program.globals[id].ty == Type::Float;
        let mut update = if real { "attune_update_real" } else { "attune_update" };
        let (operation, by) = match self.merging(id, value) {
            Some(Merging { operation, operand, temporary, mixed }) => {
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

    fn merging(&self, id: GlobalId, value: ExprId) -> Option<Merging> {
        let exprs = &self.program.exprs;
        let of_global = |expr: ExprId| match exprs[expr].kind {
            ExprKind::Read(Place::Global(read, None)) => read == id,
            _ => false,
        };
        let (mixed, value) = match exprs[value].kind {
            ExprKind::Convert(inner) if exprs[inner].ty == Type::Float => (true, inner),
            _ => (false, value),
        };
        let of_global = |expr: ExprId| match exprs[expr].kind {
            ExprKind::Convert(held) if mixed => of_global(held),
            _ => of_global(expr),
        };
        let (temporary, body) = match exprs[value].kind {
            ExprKind::Let { temporary, value, body } if of_global(value) => (Some(temporary), body),
            _ => (None, value),
        };
        let ExprKind::Binary(operation, left, operand) = exprs[body].kind else { return None };
        let old = match (temporary, &exprs[left].kind) {
            (Some(temporary), ExprKind::Read(Place::Local(local, None))) => *local == temporary,
            _ => temporary.is_none() && of_global(left),
        };
        let merges = matches!(
            operation,
            BinaryOp::Add
                | BinaryOp::Subtract
                | BinaryOp::Multiply
                | BinaryOp::Divide
                | BinaryOp::Remainder
        );
        (old && merges).then_some(Merging { operation, operand, temporary, mixed })
    }
}
