//! Loops that may not end.
//!
//! A loop ends if each turn brings it nearer to leaving by one of its conditions. Recognised are
//! the usual ones: a number that every turn moves towards a bound that stands still, and containers
//! out of which (or into which) every turn moves a thread and nothing moves one back. Any other
//! loop gets a warning: it may well end, but not for a reason that shows. [`Turn::reasons`] names
//! the reasons; [`super::turns`] counts by them.
//!
//! Conditions are the loop's own and those of an `if` in its body's top level that leaves the loop.

use super::flow;
use super::ways::{always, always_leaves, can_turn, continues_before, leaves};
use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;

pub fn check(program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    let handlers =
        program.handlers.iter().flat_map(|handler| &handler.parts).map(|part| &part.routine);
    let invariants = program.invariants.iter().map(|invariant| &invariant.routine);
    let mut finder = Finder { diagnostics };
    for routine in handlers.chain(invariants) {
        visit::block(program, &routine.body, &mut finder);
    }
}

struct Finder<'a> {
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl visit::Visitor for Finder<'_> {
    fn statement(&mut self, program: &Program, statement: &Statement) {
        let StatementKind::Loop(each) = &statement.kind else { return };
        let turn = Turn { program, each };
        if turn.ends() {
            return;
        }
        let endless = flow::constant(program, each.condition) == Some(true) && !leaves(&each.body);
        let message = if endless { "this loop never ends" } else { "this loop may not end" };
        let label =
            if endless { "nothing leaves it" } else { "no turn is seen to bring its end nearer" };
        let place = if endless { statement.span } else { program.exprs[each.condition].span };
        self.diagnostics.push(
            Diagnostic::new(codes::flow::ENDLESS, place, message).label(label).hint(
                "count towards a bound, or move a thread out of the container that the \
             condition asks about",
            ),
        );
    }
}

/// One turn of a loop.
pub(super) struct Turn<'a> {
    pub program: &'a Program,
    pub each: &'a Loop,
}

/// Why a loop ends, as far as it shows.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// The condition is a constant, or nothing leads back to the loop's start.
    AtOnce,
    /// Every turn moves a thread into, or out of, what the condition asks about, and none back.
    Threads,
    /// Every turn moves the counter towards the limit: the loop goes on while `counter op limit`.
    Counted { counter: ExprId, op: BinaryOp, limit: ExprId },
    /// Every turn moves a number towards zero.
    Truth,
}

/// A number that a loop can count with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    Local(LocalId),
    Global(GlobalId),
    Attribute(NameId, AttributeId),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Turn<'_> {
    fn ends(&self) -> bool {
        !self.reasons().is_empty()
    }

    /// Every reason for which it ends; whether the loop's own condition gives it.
    pub fn reasons(&self) -> Vec<(End, bool)> {
        // Leaves in its first turn.
        if !can_turn(&self.each.body) {
            return vec![(End::AtOnce, false)];
        }
        let mut conditions = vec![(self.each.condition, true)];
        for statement in &self.each.body.statements {
            if let StatementKind::If { condition, then, otherwise } = &statement.kind {
                if always_leaves(then) {
                    conditions.push((*condition, false));
                } else if always_leaves(otherwise) {
                    conditions.push((*condition, true));
                }
            }
        }
        let mut found = Vec::new();
        for (number, (condition, holds)) in conditions.into_iter().enumerate() {
            let mut ends = Vec::new();
            self.approaches(condition, holds, &mut ends);
            found.extend(ends.into_iter().map(|end| (end, number == 0)));
        }
        found
    }

    /// Why every turn brings the condition nearer to failing (to holding, if the loop goes on while
    /// it fails); nothing where that does not show.
    fn approaches(&self, condition: ExprId, holds: bool, found: &mut Vec<End>) {
        let moves = |are: bool| are.then_some(End::Threads);
        match (&self.program.exprs[condition].kind, holds) {
            (ExprKind::Constant(Value::Int(value)), _) => {
                found.extend(((*value != 0) != holds).then_some(End::AtOnce));
            }
            (ExprKind::Unary(UnaryOp::Not, operand), _) => self.approaches(*operand, !holds, found),
            // One side that comes to its end is enough.
            (ExprKind::And(left, right), true) | (ExprKind::Or(left, right), false) => {
                self.approaches(*left, holds, found);
                self.approaches(*right, holds, found);
            }
            (ExprKind::Or(..), true) | (ExprKind::And(..), false) => {
                let mut containers = Vec::new();
                let asks = self.asked_filled(condition, holds, &mut containers);
                found.extend(moves(asks && self.drains(&containers)));
            }
            (ExprKind::Let { body, .. }, _) => self.approaches(*body, holds, found),
            (ExprKind::Binary(op, left, right), _) => {
                let op = if holds { *op } else { op.negated() };
                self.comparison(op, *left, *right, found);
                self.comparison(op.mirrored(), *right, *left, found);
            }
            (ExprKind::Read(_) | ExprKind::Size(_), true) => {
                let counts = self.counts(condition, &[Direction::Up, Direction::Down]);
                found.extend(counts.then_some(End::Truth));
                let sizes = self.sizes(condition);
                found.extend(moves(sizes.is_some_and(|containers| self.drains(&containers))));
            }
            (ExprKind::Read(_) | ExprKind::Size(_), false) => {
                let sizes = self.sizes(condition);
                found.extend(moves(sizes.is_some_and(|containers| self.fills(&containers))));
            }
            _ => {}
        }
    }

    /// `left op right`, with the counter or the sizes on the left.
    fn comparison(&self, op: BinaryOp, left: ExprId, right: ExprId, found: &mut Vec<End>) {
        if !self.stands_still(right) {
            return;
        }
        let (directions, less, more): (&[Direction], bool, bool) = match op {
            BinaryOp::Less | BinaryOp::LessEqual => (&[Direction::Up], false, true),
            BinaryOp::Greater | BinaryOp::GreaterEqual => (&[Direction::Down], true, false),
            BinaryOp::NotEqual | BinaryOp::Equal => (&[Direction::Up, Direction::Down], true, true),
            _ => return,
        };
        if self.counts(left, directions) {
            found.push(End::Counted { counter: left, op, limit: right });
        }
        let moves = self.sizes(left).is_some_and(|containers| {
            less && self.drains(&containers) || more && self.fills(&containers)
        });
        found.extend(moves.then_some(End::Threads));
    }

    // Counting

    /// Whether the expression is a counter that every turn moves, always in one of these
    /// directions.
    fn counts(&self, expr: ExprId, directions: &[Direction]) -> bool {
        let Some(counter) = self.counter(expr) else { return false };
        directions.iter().any(|&direction| {
            let mut every_way = true;
            visit_assignments(self.program, &self.parts(), &mut |place, value| {
                every_way &= self.place(place) != Some(counter)
                    || self.step(counter, value) == Some(direction);
            });
            every_way
                && self.every_turn(&|statement| match &statement.kind {
                    StatementKind::Assign { place, value } => {
                        self.place(place) == Some(counter)
                            && self.step(counter, *value) == Some(direction)
                    }
                    _ => false,
                })
        })
    }

    pub fn counter(&self, expr: ExprId) -> Option<Counter> {
        match &self.program.exprs[expr].kind {
            ExprKind::Read(place) => self.original(self.place(place)?),
            ExprKind::Convert(operand) => self.counter(*operand),
            // The bound may stand on either side: `i + 1 < n`, `n - i > 0`.
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Subtract, left, right)
                if self.stands_still(*right) =>
            {
                self.counter(*left)
            }
            _ => None,
        }
    }

    /// `while (n--)`: the condition asks about a temporary that holds what the counter was.
    fn original(&self, counter: Counter) -> Option<Counter> {
        let Counter::Local(local) = counter else { return Some(counter) };
        if !self.program.locals[local].temporary {
            return Some(counter);
        }
        self.each.prelude.statements.iter().find_map(|statement| match &statement.kind {
            StatementKind::Assign { place: Place::Local(assigned, None), value }
                if *assigned == local =>
            {
                match &self.program.exprs[*value].kind {
                    ExprKind::Read(place) => self.place(place),
                    ExprKind::Binary(BinaryOp::Add | BinaryOp::Subtract, left, _) => {
                        match &self.program.exprs[*left].kind {
                            ExprKind::Read(place) => self.place(place),
                            _ => None,
                        }
                    }
                    _ => None,
                }
            }
            _ => None,
        })
    }

    pub fn place(&self, place: &Place) -> Option<Counter> {
        match place {
            Place::Local(local, None) => Some(Counter::Local(*local)),
            Place::Global(global, None) => Some(Counter::Global(*global)),
            Place::Attribute(ThreadExpr { kind: ThreadKind::Name(name), .. }, attribute) => {
                Some(Counter::Attribute(*name, *attribute))
            }
            _ => None,
        }
    }

    /// The way in which an assigned value moves the counter.
    fn step(&self, counter: Counter, value: ExprId) -> Option<Direction> {
        let ExprKind::Binary(op, left, right) = self.program.exprs[value].kind else {
            return self.kept_step(counter, value);
        };
        let is_counter = |expr: ExprId| match &self.program.exprs[expr].kind {
            ExprKind::Read(place) => {
                let read = self.place(place);
                read == Some(counter)
                    || read.is_some_and(|read| self.original(read) == Some(counter))
            }
            _ => false,
        };
        let amount = |expr: ExprId| match self.program.exprs[expr].kind {
            ExprKind::Constant(Value::Int(value)) => value,
            ExprKind::Constant(Value::Float(value)) if value > 0.0 => 1,
            ExprKind::Constant(Value::Float(value)) if value < 0.0 => -1,
            _ => 0,
        };
        let by = if is_counter(left) {
            amount(right)
        } else if is_counter(right) && matches!(op, BinaryOp::Add | BinaryOp::Multiply) {
            amount(left)
        } else {
            return None;
        };
        match (op, by) {
            (BinaryOp::Add, 1..) | (BinaryOp::Subtract, ..=-1) | (BinaryOp::Multiply, 2..) => {
                Some(Direction::Up)
            }
            (BinaryOp::Add, ..=-1) | (BinaryOp::Subtract, 1..) | (BinaryOp::Divide, 2..) => {
                Some(Direction::Down)
            }
            _ => None,
        }
    }

    /// `tmp = i + 1; i = tmp`.
    fn kept_step(&self, counter: Counter, value: ExprId) -> Option<Direction> {
        let ExprKind::Read(Place::Local(local, None)) = self.program.exprs[value].kind else {
            return None;
        };
        if !self.program.locals[local].temporary || Counter::Local(local) == counter {
            return None;
        }
        let mut found = None;
        visit_assignments(self.program, &self.parts(), &mut |place, value| {
            if *place == SamePlace(local)
                && matches!(self.program.exprs[value].kind, ExprKind::Binary(..))
            {
                found = self.step(counter, value);
            }
        });
        found
    }

    // Containers

    /// The containers whose sizes an expression adds up.
    fn sizes(&self, expr: ExprId) -> Option<Vec<ContainerId>> {
        match &self.program.exprs[expr].kind {
            ExprKind::Size(of) => Some(vec![of.container]),
            ExprKind::Binary(BinaryOp::Add, left, right) => {
                let mut containers = self.sizes(*left)?;
                containers.extend(self.sizes(*right)?);
                Some(containers)
            }
            ExprKind::Let { value, body, .. } => {
                // `|A[i]| + |B[j]|` keeps the first in a temporary.
                let mut containers = self.sizes(*value)?;
                if let ExprKind::Binary(BinaryOp::Add, _, right) = &self.program.exprs[*body].kind {
                    containers.extend(self.sizes(*right)?);
                }
                Some(containers)
            }
            _ => None,
        }
    }

    /// Whether the condition holds only while one of some containers is filled, and which.
    fn asked_filled(
        &self,
        condition: ExprId,
        holds: bool,
        containers: &mut Vec<ContainerId>,
    ) -> bool {
        match (&self.program.exprs[condition].kind, holds) {
            (ExprKind::Or(left, right), true) | (ExprKind::And(left, right), false) => {
                self.asked_filled(*left, holds, containers)
                    && self.asked_filled(*right, holds, containers)
            }
            (ExprKind::Unary(UnaryOp::Not, operand), _) => {
                self.asked_filled(*operand, !holds, containers)
            }
            (ExprKind::Size(of), true) => {
                containers.push(of.container);
                true
            }
            (ExprKind::Binary(op, left, right), _) => {
                let op = if holds { *op } else { op.negated() };
                let asks =
                    matches!(op, BinaryOp::Greater | BinaryOp::GreaterEqual | BinaryOp::NotEqual);
                match self.sizes(*left) {
                    Some(more) if asks && self.stands_still(*right) => {
                        containers.extend(more);
                        true
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Every turn takes a thread out of these containers, and none puts one in.
    fn drains(&self, containers: &[ContainerId]) -> bool {
        let within = |of: &ContainerRef| containers.contains(&of.container);
        let goes_out = |statement: &Statement| match &statement.kind {
            StatementKind::Transfer { source, destination, .. } => {
                matches!(&source.kind, ThreadKind::First(of) if within(of)) && !within(destination)
            }
            StatementKind::Destroy { thread } => {
                matches!(&thread.kind, ThreadKind::First(of) if within(of))
            }
            _ => false,
        };
        let mut none_comes = true;
        visit_transfers(self.program, &self.parts(), &mut |source, destination| {
            none_comes &=
                !within(destination) || matches!(&source.kind, ThreadKind::First(of) if within(of));
        });
        none_comes && self.every_turn(&goes_out)
    }

    /// Every turn puts a thread into these containers, and none takes one out.
    fn fills(&self, containers: &[ContainerId]) -> bool {
        let within = |of: &ContainerRef| containers.contains(&of.container);
        let comes_in = |statement: &Statement| match &statement.kind {
            StatementKind::Transfer { source, destination, .. } => {
                matches!(&source.kind, ThreadKind::First(of) if !within(of)) && within(destination)
            }
            _ => false,
        };
        let mut none_leaves = true;
        visit_transfers(self.program, &self.parts(), &mut |source, destination| {
            none_leaves &=
                within(destination) || matches!(&source.kind, ThreadKind::First(of) if !within(of));
        });
        none_leaves && self.every_turn(&comes_in)
    }

    // What turns do

    pub fn parts(&self) -> [&Block; 3] {
        [&self.each.prelude, &self.each.body, &self.each.step]
    }

    /// Whether nothing that the loop does changes the value.
    fn stands_still(&self, expr: ExprId) -> bool {
        struct Reads<'a>(&'a Turn<'a>, bool);
        impl visit::Visitor for Reads<'_> {
            fn expr(&mut self, program: &Program, expr: ExprId) {
                match &program.exprs[expr].kind {
                    ExprKind::Read(place) => {
                        let read = self.0.place(place);
                        let mut assigned = read.is_none()
                            && !matches!(place, Place::Local(..) | Place::Global(..));
                        visit_assignments(program, &self.0.parts(), &mut |place, _| {
                            assigned |= read.is_some() && self.0.place(place) == read;
                        });
                        self.1 &= !assigned;
                    }
                    ExprKind::Size(of) => {
                        let still = |other: &ContainerRef| other.container != of.container;
                        visit_transfers(program, &self.0.parts(), &mut |source, destination| {
                            self.1 &= still(destination);
                            self.1 &=
                                matches!(&source.kind, ThreadKind::First(from) if still(from));
                        });
                    }
                    _ => {}
                }
            }
        }
        let mut reads = Reads(self, true);
        visit::expr(self.program, expr, &mut reads);
        reads.1
    }

    /// Whether every turn that does not leave the loop does it.
    fn every_turn(&self, does: &dyn Fn(&Statement) -> bool) -> bool {
        always(&self.each.prelude, does)
            || always(&self.each.step, does)
            || always(&self.each.body, does) && !continues_before(&self.each.body, does)
    }
}

/// A local without index, to compare a place with.
struct SamePlace(LocalId);

impl PartialEq<SamePlace> for Place {
    fn eq(&self, other: &SamePlace) -> bool {
        matches!(self, Place::Local(local, None) if *local == other.0)
    }
}

/// Every assignment in the blocks; `random` and verbatim values are assignments of nothing known.
pub(super) fn visit_assignments(
    program: &Program,
    blocks: &[&Block],
    each: &mut dyn FnMut(&Place, ExprId),
) {
    struct Assignments<'a>(&'a mut dyn FnMut(&Place, ExprId));
    impl visit::Visitor for Assignments<'_> {
        fn statement(&mut self, _program: &Program, statement: &Statement) {
            if let StatementKind::Assign { place, value } = &statement.kind {
                (self.0)(place, *value);
            }
        }
    }
    let mut assignments = Assignments(each);
    blocks.iter().for_each(|block| visit::block(program, block, &mut assignments));
}

fn visit_transfers(
    program: &Program,
    blocks: &[&Block],
    each: &mut dyn FnMut(&ThreadExpr, &ContainerRef),
) {
    struct Transfers<'a>(&'a mut dyn FnMut(&ThreadExpr, &ContainerRef));
    impl visit::Visitor for Transfers<'_> {
        fn statement(&mut self, _program: &Program, statement: &Statement) {
            if let StatementKind::Transfer { source, destination, .. } = &statement.kind {
                (self.0)(source, destination);
            }
        }
    }
    let mut transfers = Transfers(each);
    blocks.iter().for_each(|block| visit::block(program, block, &mut transfers));
}
