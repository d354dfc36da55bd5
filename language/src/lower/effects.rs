//! What an operand depends on and what statements change: whether an operand that was read earlier
//! has to be kept in a temporary.
//!
//! An operand is *anchored* behind effects by [`Lowering::anchor`]: if the statements that were
//! emitted since could change its value, or if it could trap and they come later, it is evaluated
//! into a temporary before them.

use super::Lowering;
use crate::ir::*;
use crate::source::Span;

/// What a statement of an expression's effects may change.
#[derive(Clone, Copy, PartialEq)]
enum Write {
    Local(LocalId),
    Global(GlobalId),
    Attribute(AttributeId),
    /// Verbatim text: any variable that has a name.
    Anything,
}

impl Lowering {
    /// The operand, read before the statements that were emitted from `mark` on.
    pub(super) fn anchor(&mut self, operand: ExprId, mark: usize) -> ExprId {
        if self.disturbed(operand, mark) { self.keep(operand, mark) } else { operand }
    }

    /// As [`Self::anchor`], and the operand's trap comes before `later`'s.
    pub(super) fn anchor_before_trap(
        &mut self,
        operand: ExprId,
        mark: usize,
        later: Option<ExprId>,
    ) -> ExprId {
        if self.may_trap(operand) && later.is_some_and(|later| self.may_trap(later)) {
            return self.keep(operand, mark);
        }
        self.anchor(operand, mark)
    }

    /// Reads the operand at `mark`, into a temporary.
    fn keep(&mut self, operand: ExprId, mark: usize) -> ExprId {
        let ty = self.program.exprs[operand].ty;
        let span = self.program.exprs[operand].span;
        let temporary = self.temporary(ty, span);
        let assign = StatementKind::Assign { place: Place::Local(temporary, None), value: operand };
        self.out.insert(mark, Statement { kind: assign, span });
        self.read_local(temporary, span)
    }

    pub(super) fn anchor_index(&mut self, index: Option<Index>, mark: usize) -> Option<Index> {
        index.map(|index| Index { at: self.anchor(index.at, mark), ..index })
    }

    pub(super) fn anchor_container(
        &mut self,
        container: ContainerRef,
        mark: usize,
    ) -> ContainerRef {
        ContainerRef { index: self.anchor_index(container.index, mark), ..container }
    }

    /// Which thread it is may still depend on what comes later; which container is asked does not.
    pub(super) fn anchor_thread(&mut self, thread: ThreadExpr, mark: usize) -> ThreadExpr {
        match thread.kind {
            ThreadKind::Name(_) => thread,
            ThreadKind::First(container) => ThreadExpr {
                kind: ThreadKind::First(self.anchor_container(container, mark)),
                ..thread
            },
        }
    }

    pub(super) fn anchor_place(&mut self, place: Place, mark: usize) -> Place {
        match place {
            Place::Local(local, index) => Place::Local(local, self.anchor_index(index, mark)),
            Place::Global(global, index) => Place::Global(global, self.anchor_index(index, mark)),
            Place::Attribute(thread, attribute) => {
                Place::Attribute(self.anchor_thread(thread, mark), attribute)
            }
        }
    }

    /// Builds an expression of two operands so that the left one's trap comes first.
    pub(super) fn in_order(
        &mut self,
        left: ExprId,
        right: ExprId,
        span: Span,
        build: impl FnOnce(&mut Self, ExprId, ExprId) -> ExprId,
    ) -> ExprId {
        if !(self.may_trap(left) && self.may_trap(right)) {
            return build(self, left, right);
        }
        let temporary = self.temporary(self.program.exprs[left].ty, self.program.exprs[left].span);
        let kept = self.read_local(temporary, self.program.exprs[left].span);
        let body = build(self, kept, right);
        let ty = self.program.exprs[body].ty;
        self.expr(ExprKind::Let { temporary, value: left, body }, ty, span)
    }

    pub(super) fn temporary(&mut self, ty: Type, span: Span) -> LocalId {
        let local = Local { name: String::new(), ty, length: None, temporary: true, span };
        let id = self.program.locals.alloc(local);
        self.routine.locals.push(id);
        id
    }

    pub(super) fn read_local(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.program.locals[local].ty;
        self.expr(ExprKind::Read(Place::Local(local, None)), ty, span)
    }

    fn disturbed(&self, operand: ExprId, mark: usize) -> bool {
        let Some(later) = self.out.get(mark..).filter(|later| !later.is_empty()) else {
            return false;
        };
        if self.may_trap(operand) {
            return true;
        }
        let mut writes = Vec::new();
        later.iter().for_each(|statement| collect_writes(statement, &mut writes));
        self.depends(operand, &writes)
    }

    /// Whether evaluating can trap or count a division by zero.
    pub(super) fn may_trap(&self, expr: ExprId) -> bool {
        match &self.program.exprs[expr].kind {
            ExprKind::Constant(_) | ExprKind::Now | ExprKind::Cpu | ExprKind::Cpus => false,
            ExprKind::Read(Place::Local(_, index) | Place::Global(_, index)) => index.is_some(),
            ExprKind::Read(Place::Attribute(thread, _)) => self.thread_may_trap(thread),
            ExprKind::Size(container) => container.index.is_some(),
            ExprKind::Same(left, right) => {
                self.thread_may_trap(left) || self.thread_may_trap(right)
            }
            ExprKind::Unary(_, operand) | ExprKind::Convert(operand) => self.may_trap(*operand),
            ExprKind::Binary(op, left, right) => {
                let divides = matches!(op, BinaryOp::Divide | BinaryOp::Remainder);
                let by_zero = divides && self.constant(*right).is_none_or(super::constant::is_zero);
                by_zero || self.may_trap(*left) || self.may_trap(*right)
            }
            ExprKind::And(left, right) | ExprKind::Or(left, right) => {
                self.may_trap(*left) || self.may_trap(*right)
            }
            ExprKind::Let { value, body, .. } => self.may_trap(*value) || self.may_trap(*body),
        }
    }

    /// A named thread is there unless the handler destroys threads.
    pub(super) fn thread_may_trap(&self, thread: &ThreadExpr) -> bool {
        match thread.kind {
            ThreadKind::Name(_) => thread.check.is_some() && self.routine.destroys,
            ThreadKind::First(container) => thread.check.is_some() || container.index.is_some(),
        }
    }

    fn depends(&self, expr: ExprId, writes: &[Write]) -> bool {
        match &self.program.exprs[expr].kind {
            ExprKind::Constant(_) | ExprKind::Now | ExprKind::Cpu | ExprKind::Cpus => false,
            ExprKind::Read(place) => self.place_depends(place, writes),
            ExprKind::Size(container) => self.index_depends(&container.index, writes),
            ExprKind::Same(left, right) => {
                self.thread_depends(left, writes) || self.thread_depends(right, writes)
            }
            ExprKind::Unary(_, operand) | ExprKind::Convert(operand) => {
                self.depends(*operand, writes)
            }
            ExprKind::Binary(_, left, right)
            | ExprKind::And(left, right)
            | ExprKind::Or(left, right) => {
                self.depends(*left, writes) || self.depends(*right, writes)
            }
            ExprKind::Let { value, body, .. } => {
                self.depends(*value, writes) || self.depends(*body, writes)
            }
        }
    }

    fn place_depends(&self, place: &Place, writes: &[Write]) -> bool {
        match place {
            Place::Local(local, index) => {
                let named = !self.program.locals[*local].temporary;
                writes.contains(&Write::Local(*local))
                    || named && writes.contains(&Write::Anything)
                    || self.index_depends(index, writes)
            }
            Place::Global(global, index) => {
                writes.contains(&Write::Global(*global))
                    || writes.contains(&Write::Anything)
                    || self.index_depends(index, writes)
            }
            Place::Attribute(thread, attribute) => {
                writes.contains(&Write::Attribute(*attribute))
                    || writes.contains(&Write::Anything)
                    || self.thread_depends(thread, writes)
            }
        }
    }

    /// Assigning a sort key may put another thread first.
    fn thread_depends(&self, thread: &ThreadExpr, writes: &[Write]) -> bool {
        let ThreadKind::First(container) = &thread.kind else { return false };
        writes.iter().any(|write| matches!(write, Write::Attribute(_)))
            || self.index_depends(&container.index, writes)
    }

    fn index_depends(&self, index: &Option<Index>, writes: &[Write]) -> bool {
        index.is_some_and(|index| self.depends(index.at, writes))
    }
}

/// Only the statements that an expression's effects become: no transfers, no loops.
fn collect_writes(statement: &Statement, writes: &mut Vec<Write>) {
    match &statement.kind {
        StatementKind::Assign { place: Place::Local(local, _), .. } => {
            writes.push(Write::Local(*local))
        }
        StatementKind::Assign { place: Place::Global(global, _), .. } => {
            writes.push(Write::Global(*global))
        }
        StatementKind::Assign { place: Place::Attribute(_, attribute), .. } => {
            writes.push(Write::Attribute(*attribute));
        }
        StatementKind::Random { into, .. } => writes.push(Write::Local(*into)),
        StatementKind::VerbatimValue { into, .. } => {
            writes.extend([Write::Local(*into), Write::Anything])
        }
        StatementKind::If { then, otherwise, .. } => {
            let nested = then.statements.iter().chain(&otherwise.statements);
            nested.for_each(|statement| collect_writes(statement, writes));
        }
        _ => writes.push(Write::Anything),
    }
}
