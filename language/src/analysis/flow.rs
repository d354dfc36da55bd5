//! Where control goes: queries return a value on every path, and no statement stands where none can
//! reach it.
//!
//! Conditions are taken as undecided unless they are constants. Establishes: a query that passes
//! ends in `return` with a value, or traps.

use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;

pub fn check(program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    for handler in &program.handlers {
        for part in &handler.parts {
            let falls = through(program, &part.routine.body, diagnostics).falls;
            if falls && part.role == Role::Own && handler.event.is_query() {
                let message = format!("`{}` does not return a value on every path", handler.event);
                diagnostics.push(
                    Diagnostic::new(codes::flow::QUERY_WITHOUT_VALUE, part.span, message)
                        .label("the end can be reached without a `return`")
                        .hint("end the query with a `return` that holds for all other cases"),
                );
            }
        }
    }
    for invariant in &program.invariants {
        through(program, &invariant.routine.body, diagnostics);
    }
}

/// How control leaves a piece of code.
#[derive(Clone, Copy, Default)]
struct Ways {
    /// At its end.
    falls: bool,
    /// By a `break` of the loop around it.
    breaks: bool,
}

fn through(program: &Program, block: &Block, diagnostics: &mut Vec<Diagnostic>) -> Ways {
    let mut breaks = false;
    for (index, statement) in block.statements.iter().enumerate() {
        let ways = leave(program, statement, diagnostics);
        breaks |= ways.breaks;
        if !ways.falls {
            if let Some(next) = block.statements.get(index + 1) {
                diagnostics.push(
                    Diagnostic::new(codes::flow::UNREACHABLE, next.span, "this is never reached")
                        .label("no way leads here")
                        .hint("remove it, or put it before")
                        .also(statement.span, format!("{} before", word(&statement.kind))),
                );
                // What follows is looked at for its own sake, in silence.
            }
            return Ways { falls: false, breaks };
        }
    }
    Ways { falls: true, breaks }
}

fn leave(program: &Program, statement: &Statement, diagnostics: &mut Vec<Diagnostic>) -> Ways {
    let falls = Ways { falls: true, breaks: false };
    match &statement.kind {
        StatementKind::Return(_) | StatementKind::Dispatch { .. } | StatementKind::Continue => {
            Ways::default()
        }
        StatementKind::Break => Ways { falls: false, breaks: true },
        StatementKind::If { condition, then, otherwise } => {
            let then = through(program, then, diagnostics);
            let otherwise = through(program, otherwise, diagnostics);
            match constant(program, *condition) {
                Some(true) => then,
                Some(false) => otherwise,
                None => Ways {
                    falls: then.falls || otherwise.falls,
                    breaks: then.breaks || otherwise.breaks,
                },
            }
        }
        StatementKind::Loop(each) => {
            through(program, &each.prelude, diagnostics);
            let body = through(program, &each.body, diagnostics);
            Ways {
                falls: body.breaks || constant(program, each.condition) != Some(true),
                breaks: false,
            }
        }
        StatementKind::Foreach { body, .. } => {
            through(program, body, diagnostics);
            falls
        }
        _ => falls,
    }
}

/// Whether a condition always holds, or never, by what is written.
pub fn constant(program: &Program, condition: ExprId) -> Option<bool> {
    match program.exprs[condition].kind {
        ExprKind::Constant(Value::Int(value)) => Some(value != 0),
        _ => None,
    }
}

fn word(statement: &StatementKind) -> &'static str {
    match statement {
        StatementKind::Return(_) => "`return` leaves",
        StatementKind::Dispatch { .. } => "`dispatch` ends the handler",
        StatementKind::Break => "`break` leaves the loop",
        StatementKind::Continue => "`continue` begins the next turn",
        StatementKind::Loop(_) => "the loop never ends",
        _ => "every way leaves",
    }
}
