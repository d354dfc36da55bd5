//! How often a loop turns at most.
//!
//! A loop that moves threads turns once for each thread. A loop that counts turns as often as its
//! counter fits between the value that it has when the loop starts and the limit: both must be
//! known, as constants, sizes of containers or sums of those. Anything else has no bound here, even
//! where [`super::loops`] sees that it ends.
//!
//! A counter's steps are at least 1, so a bound holds whatever the steps are.

use std::collections::HashMap;

use super::loops::{Counter, End, Turn, visit_assignments};
use crate::ir::*;

/// Locals whose values are known where a loop starts.
#[derive(Clone, Default)]
pub(super) struct Known(HashMap<LocalId, i64>);

impl Known {
    /// Behind a statement.
    pub fn pass(&mut self, program: &Program, statement: &Statement) {
        match &statement.kind {
            StatementKind::Assign { place: Place::Local(local, None), value } => {
                match range(program, *value, self, 0) {
                    Some((low, high)) if low == high => self.0.insert(*local, low),
                    _ => self.0.remove(local),
                };
            }
            _ => self.forget(program, statement),
        }
    }

    /// Whatever the statement may assign is known no longer.
    pub fn forget(&mut self, program: &Program, statement: &Statement) {
        struct Assigned<'a>(&'a mut Known);
        impl visit::Visitor for Assigned<'_> {
            fn statement(&mut self, _: &Program, statement: &Statement) {
                match &statement.kind {
                    StatementKind::Assign { place: Place::Local(local, _), .. }
                    | StatementKind::Clear(local)
                    | StatementKind::Random { into: local, .. }
                    | StatementKind::VerbatimValue { into: local, .. } => {
                        self.0.0.remove(local);
                    }
                    // The text may assign what it likes.
                    StatementKind::Verbatim { .. } => self.0.0.clear(),
                    _ => {}
                }
            }
        }
        visit::statement(program, statement, &mut Assigned(self));
    }
}

/// How often the loop's body is begun at most; None: for no reason that shows.
pub(super) fn most(program: &Program, each: &Loop, known: &Known, threads: u64) -> Option<u64> {
    let turn = Turn { program, each };
    let bounds = turn.reasons().into_iter().filter_map(|(end, own)| {
        let turns = match end {
            End::AtOnce => return Some(1),
            End::Threads => threads,
            End::Counted { counter, op, limit } => {
                counted(&turn, counter, op, limit, known, threads)?
            }
            End::Truth => return None,
        };
        // A turn that finds the end in its middle, or behind its body, has begun.
        let tested_first = own && each.test == Test::First;
        Some(if tested_first { turns } else { turns.saturating_add(1) })
    });
    bounds.min()
}

/// Turns of a loop that goes on while `counter op limit`.
fn counted(
    turn: &Turn<'_>,
    counter: ExprId,
    op: BinaryOp,
    limit: ExprId,
    known: &Known,
    threads: u64,
) -> Option<u64> {
    // The condition may ask about the counter itself, or about what it was.
    let Counter::Local(local) = turn.counter(counter)? else { return None };
    let direct = match turn.program.exprs[counter].kind {
        ExprKind::Read(Place::Local(read, None)) => read == local,
        ExprKind::Read(_) => false,
        _ => return None,
    };
    if turn.program.locals[local].ty == Type::Float || !adds(turn, Counter::Local(local)) {
        return None;
    }
    let from = *known.0.get(&local)?;
    let (low, high) = range(turn.program, limit, known, i64::try_from(threads).ok()?)?;
    let distance = match op {
        BinaryOp::Less => high.checked_sub(from)?,
        BinaryOp::LessEqual => high.checked_sub(from)?.checked_add(1)?,
        BinaryOp::Greater => from.checked_sub(low)?,
        BinaryOp::GreaterEqual => from.checked_sub(low)?.checked_add(1)?,
        _ => return None,
    };
    u64::try_from(distance.max(0)).ok()?.checked_add(u64::from(!direct))
}

/// Whether every assignment adds to the counter, or subtracts from it.
fn adds(turn: &Turn<'_>, counter: Counter) -> bool {
    let mut only = true;
    visit_assignments(turn.program, &turn.parts(), &mut |place, value| {
        let op = &turn.program.exprs[value].kind;
        let sum = matches!(op, ExprKind::Binary(BinaryOp::Add | BinaryOp::Subtract, ..));
        only &= turn.place(place) != Some(counter) || sum;
    });
    only
}

/// The least and the largest value that an expression may have.
fn range(program: &Program, expr: ExprId, known: &Known, threads: i64) -> Option<(i64, i64)> {
    match &program.exprs[expr].kind {
        ExprKind::Constant(Value::Int(value)) => Some((*value, *value)),
        ExprKind::Read(Place::Local(local, None)) => {
            known.0.get(local).map(|&value| (value, value))
        }
        ExprKind::Size(of) => match program.containers[of.container].kind {
            ContainerKind::Threadref => Some((0, 1)),
            _ => Some((0, threads)),
        },
        // Firmware runs on one CPU.
        ExprKind::Cpus => Some((1, 1)),
        ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Subtract), left, right) => {
            let (left, right) =
                (range(program, *left, known, threads)?, range(program, *right, known, threads)?);
            let (low, high) = match op {
                BinaryOp::Add => (left.0.checked_add(right.0)?, left.1.checked_add(right.1)?),
                _ => (left.0.checked_sub(right.1)?, left.1.checked_sub(right.0)?),
            };
            Some((low, high))
        }
        _ => None,
    }
}
