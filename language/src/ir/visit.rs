//! Walks over the IR in the order of execution, so that a pass names only what it looks for.
//!
//! A visitor's methods are called for a node before its children; the defaults do nothing.

use super::*;

/// What a pass looks at. Every method is called once for each occurrence.
pub trait Visitor {
    fn statement(&mut self, _program: &Program, _statement: &Statement) {}
    fn expr(&mut self, _program: &Program, _expr: ExprId) {}
    fn place_read(&mut self, _program: &Program, _place: &Place) {}
    fn place_written(&mut self, _program: &Program, _place: &Place) {}
    fn thread(&mut self, _program: &Program, _thread: &ThreadExpr) {}
    fn container(&mut self, _program: &Program, _container: &ContainerRef) {}
    fn check(&mut self, _program: &Program, _check: CheckId) {}
}

/// Walks all parts of a handler.
pub fn handler(program: &Program, handler: &Handler, visitor: &mut impl Visitor) {
    for part in &handler.parts {
        block(program, &part.routine.body, visitor);
    }
    for check in handler.stored.into_iter().chain(handler.emptied.iter().map(|(_, check)| *check)) {
        visitor.check(program, check);
    }
}

pub fn block(program: &Program, block: &Block, visitor: &mut impl Visitor) {
    for each in &block.statements {
        statement(program, each, visitor);
    }
}

pub fn statement(program: &Program, each: &Statement, visitor: &mut impl Visitor) {
    visitor.statement(program, each);
    match &each.kind {
        StatementKind::Assign { place, value } => {
            expr(program, *value, visitor);
            visitor.place_written(program, place);
            place_parts(program, place, visitor);
        }
        StatementKind::Random { bound, .. } => expr(program, *bound, visitor),
        StatementKind::Transfer { source, destination, destination_check } => {
            thread(program, source, visitor);
            container(program, destination, visitor);
            if let Some(check) = destination_check {
                visitor.check(program, *check);
            }
        }
        StatementKind::Dispatch { thread: dispatched, slice } => {
            thread(program, dispatched, visitor);
            if let Some(slice) = slice {
                expr(program, *slice, visitor);
            }
        }
        StatementKind::Destroy { thread: dead } => thread(program, dead, visitor),
        StatementKind::Alarm { thread: woken, at } => {
            thread(program, woken, visitor);
            expr(program, *at, visitor);
        }
        StatementKind::Preempt { cpu, at } => {
            expr(program, *cpu, visitor);
            if let Some(at) = at {
                expr(program, *at, visitor);
            }
        }
        StatementKind::If { condition, then, otherwise } => {
            expr(program, *condition, visitor);
            block(program, then, visitor);
            block(program, otherwise, visitor);
        }
        StatementKind::Loop(each) => {
            visitor.check(program, each.bound);
            if each.test == Test::First {
                block(program, &each.prelude, visitor);
                expr(program, each.condition, visitor);
            }
            block(program, &each.body, visitor);
            block(program, &each.step, visitor);
            if each.test == Test::Last {
                block(program, &each.prelude, visitor);
                expr(program, each.condition, visitor);
            }
        }
        StatementKind::Foreach { container: visited, body, .. } => {
            container(program, visited, visitor);
            block(program, body, visitor);
        }
        StatementKind::Return(Some(Returned::Number(value))) => expr(program, *value, visitor),
        StatementKind::Return(Some(Returned::Thread(value))) => thread(program, value, visitor),
        StatementKind::Return(None)
        | StatementKind::Break
        | StatementKind::Continue
        | StatementKind::Clear(_)
        | StatementKind::Verbatim { .. }
        | StatementKind::VerbatimValue { .. } => {}
    }
}

pub fn expr(program: &Program, id: ExprId, visitor: &mut impl Visitor) {
    visitor.expr(program, id);
    match &program.exprs[id].kind {
        ExprKind::Constant(_) | ExprKind::Now | ExprKind::Cpu | ExprKind::Cpus => {}
        ExprKind::Read(place) => {
            visitor.place_read(program, place);
            place_parts(program, place, visitor);
        }
        ExprKind::Size(of) => container(program, of, visitor),
        ExprKind::Same(left, right) => {
            thread(program, left, visitor);
            thread(program, right, visitor);
        }
        ExprKind::Unary(_, operand) | ExprKind::Convert(operand) => {
            expr(program, *operand, visitor)
        }
        ExprKind::Let { value, body, .. } => {
            expr(program, *value, visitor);
            expr(program, *body, visitor);
        }
        ExprKind::Binary(_, left, right)
        | ExprKind::And(left, right)
        | ExprKind::Or(left, right) => {
            expr(program, *left, visitor);
            expr(program, *right, visitor);
        }
    }
}

fn place_parts(program: &Program, place: &Place, visitor: &mut impl Visitor) {
    match place {
        Place::Local(_, index) | Place::Global(_, index) => index_parts(program, index, visitor),
        Place::Attribute(of, _) => thread(program, of, visitor),
    }
}

fn thread(program: &Program, each: &ThreadExpr, visitor: &mut impl Visitor) {
    visitor.thread(program, each);
    if let ThreadKind::First(of) = &each.kind {
        container(program, of, visitor);
    }
    if let Some(check) = each.check {
        visitor.check(program, check);
    }
}

fn container(program: &Program, each: &ContainerRef, visitor: &mut impl Visitor) {
    visitor.container(program, each);
    index_parts(program, &each.index, visitor);
}

fn index_parts(program: &Program, index: &Option<Index>, visitor: &mut impl Visitor) {
    if let Some(index) = index {
        expr(program, index.at, visitor);
        visitor.check(program, index.check);
    }
}
