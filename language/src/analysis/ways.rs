//! Which ways lead through a loop's body: out of it, back to its start, past a statement. By its
//! shape alone, not by its conditions.

use crate::ir::*;

/// Whether some statement leaves the loop whose body this is.
pub fn leaves(body: &Block) -> bool {
    body.statements.iter().any(|statement| match &statement.kind {
        StatementKind::Break | StatementKind::Return(_) | StatementKind::Dispatch { .. } => true,
        StatementKind::If { then, otherwise, .. } => leaves(then) || leaves(otherwise),
        StatementKind::Loop(inner) => returns(&inner.body),
        StatementKind::Foreach { body, .. } => returns(body),
        _ => false,
    })
}

/// Whether some statement leaves the handler.
fn returns(body: &Block) -> bool {
    body.statements.iter().any(|statement| match &statement.kind {
        StatementKind::Return(_) | StatementKind::Dispatch { .. } => true,
        StatementKind::If { then, otherwise, .. } => returns(then) || returns(otherwise),
        StatementKind::Loop(inner) => returns(&inner.body),
        StatementKind::Foreach { body, .. } => returns(body),
        _ => false,
    })
}

/// Whether every way through the block to its end does it.
pub fn always(block: &Block, does: &dyn Fn(&Statement) -> bool) -> bool {
    block.statements.iter().any(|statement| {
        does(statement)
            || match &statement.kind {
                StatementKind::If { then, otherwise, .. } => {
                    let side = |block: &Block| always_leaves(block) || always(block, does);
                    // Both sides leaving is no doing; it is found by `always_leaves` outside.
                    side(then) && side(otherwise) && (always(then, does) || always(otherwise, does))
                }
                StatementKind::Break
                | StatementKind::Return(_)
                | StatementKind::Dispatch { .. } => true,
                _ => false,
            }
    })
}

/// Whether a `continue` may come before it is done.
pub fn continues_before(block: &Block, does: &dyn Fn(&Statement) -> bool) -> bool {
    for statement in &block.statements {
        match &statement.kind {
            _ if does(statement) => return false,
            StatementKind::Continue => return true,
            StatementKind::If { then, otherwise, .. } => {
                if continues_before(then, does) || continues_before(otherwise, does) {
                    return true;
                }
                if always(then, does) && always(otherwise, does) {
                    return false;
                }
            }
            _ => {}
        }
    }
    false
}

/// Whether the block always ends by leaving the loop around it.
pub fn always_leaves(block: &Block) -> bool {
    block.statements.iter().any(|statement| match &statement.kind {
        StatementKind::Break | StatementKind::Return(_) | StatementKind::Dispatch { .. } => true,
        StatementKind::If { then, otherwise, .. } => {
            always_leaves(then) && always_leaves(otherwise)
        }
        _ => false,
    })
}

/// Whether a second turn can follow.
pub fn can_turn(body: &Block) -> bool {
    fn continues(block: &Block) -> bool {
        block.statements.iter().any(|statement| match &statement.kind {
            StatementKind::Continue => true,
            StatementKind::If { then, otherwise, .. } => continues(then) || continues(otherwise),
            _ => false,
        })
    }
    !always_leaves(body) || continues(body)
}
