//! The static worst case: how many steps each handler takes at most on one CPU, with so many
//! threads.
//!
//! A step is an executed statement or a computed expression of the IR, operands and conditions
//! included. On top of that a list takes or gives a thread in 1 step, a sorted container in as many
//! as its tree is high at most; a `foreach` takes 1 step a thread that may be there, 2 where the
//! container is sorted. Text in the target's language counts as 1 and is named. Initial values are
//! computed before handlers run and are not counted.
//!
//! Established: no call of a handler takes more steps than [`worst_cases`] says, whatever happened
//! before, as long as no more threads live. Branches count with the larger side, loops with the
//! turns that [`super::turns`] finds; a way out of a loop or of a handler saves nothing.

use super::turns::{self, Known};
use crate::engine::event::Event;
use crate::ir::*;
use crate::source::Span;

/// What a handler takes at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCase {
    pub event: Event,
    /// None: a loop has no bound.
    pub steps: Option<u64>,
    /// Conditions of the loops without a bound: each ends a call after [`LOOP_BUDGET`] turns, by a
    /// failed check.
    pub unbounded: Vec<Span>,
    /// Text in the target's language, whose own cost is not counted.
    pub verbatim: Vec<Span>,
}

/// The handlers in the order of the program.
pub fn worst_cases(program: &Program, threads: u32) -> Vec<WorstCase> {
    let costs = Costs::new(program, threads);
    program.handlers.iter().map(|handler| Counter::count(&costs, handler)).collect()
}

/// Steps of single operations.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    program: &'a Program,
    threads: u64,
    /// Levels of the highest tree with so many threads.
    height: u64,
    sorted: bool,
}

impl<'a> Costs<'a> {
    pub fn new(program: &'a Program, threads: u32) -> Costs<'a> {
        Costs {
            program,
            threads: threads.into(),
            height: height(threads.into()),
            sorted: program.containers.values().any(|container| container.sort.is_some()),
        }
    }

    /// What a statement takes without those inside it and without its expressions.
    pub fn statement(&self, kind: &StatementKind) -> u64 {
        1 + match kind {
            StatementKind::Transfer { source, destination, .. } => {
                self.take(source) + self.container(destination)
            }
            StatementKind::Destroy { thread } => self.take(thread),
            // A thread whose key changes is taken out and put in again.
            StatementKind::Assign { place: Place::Attribute(_, attribute), .. } => {
                let mut sorts = self.program.containers.values().filter_map(|it| it.sort);
                if sorts.any(|sort| sort.by == *attribute) { 2 * self.height } else { 0 }
            }
            StatementKind::Foreach { container, .. } => {
                let sorted = self.program.containers[container.container].sort.is_some();
                self.visited(container) * if sorted { 2 } else { 1 }
            }
            _ => 0,
        }
    }

    /// Threads that a `foreach` visits: each once at most, however they move.
    fn visited(&self, container: &ContainerRef) -> u64 {
        match self.program.containers[container.container].kind {
            // Its thread may leave, and another come, but that one came too late.
            ContainerKind::Threadref => self.threads.min(1),
            _ => self.threads,
        }
    }

    fn container(&self, of: &ContainerRef) -> u64 {
        if self.program.containers[of.container].sort.is_some() { self.height } else { 1 }
    }

    fn take(&self, thread: &ThreadExpr) -> u64 {
        match &thread.kind {
            ThreadKind::First(of) => self.container(of),
            ThreadKind::Name(_) => {
                if self.sorted {
                    self.height
                } else {
                    1
                }
            }
        }
    }
}

/// Levels of the highest balanced tree (AVL: the sides of a node differ by one level) with so many
/// nodes.
fn height(nodes: u64) -> u64 {
    // The fewest nodes of a tree with one level less, and with so many.
    let (mut lower, mut this, mut levels) = (0u64, 1u64, 0);
    while this <= nodes {
        (lower, this) = (this, lower.saturating_add(this).saturating_add(1));
        levels += 1;
    }
    levels
}

/// Adds up one handler.
struct Counter<'a> {
    costs: &'a Costs<'a>,
    unbounded: Vec<Span>,
    verbatim: Vec<Span>,
}

impl Counter<'_> {
    fn count(costs: &Costs<'_>, handler: &Handler) -> WorstCase {
        let mut counter = Counter { costs, unbounded: Vec::new(), verbatim: Vec::new() };
        let mut steps = 0u64;
        for part in &handler.parts {
            let body = counter.block(&part.routine.body, &mut Known::default());
            steps = steps.saturating_add(body);
        }
        let Counter { unbounded, verbatim, .. } = counter;
        let steps = unbounded.is_empty().then_some(steps);
        WorstCase { event: handler.event, steps, unbounded, verbatim }
    }

    fn block(&mut self, block: &Block, known: &mut Known) -> u64 {
        let mut steps = 0u64;
        for statement in &block.statements {
            steps = steps.saturating_add(self.statement(statement, known));
            known.pass(self.costs.program, statement);
        }
        steps
    }

    fn statement(&mut self, statement: &Statement, known: &Known) -> u64 {
        let program = self.costs.program;
        let inside = match &statement.kind {
            StatementKind::If { condition, then, otherwise } => {
                let then = self.block(then, &mut known.clone());
                let otherwise = self.block(otherwise, &mut known.clone());
                exprs(|visitor| visit::expr(program, *condition, visitor))
                    .saturating_add(then.max(otherwise))
            }
            StatementKind::Loop(each) => self.iterate(statement, each, known),
            StatementKind::Foreach { container, body, .. } => {
                let mut within = known.clone();
                within.forget(program, statement);
                let turns = self.costs.visited(container);
                let index = container
                    .index
                    .map_or(0, |index| exprs(|visitor| visit::expr(program, index.at, visitor)));
                index.saturating_add(turns.saturating_mul(self.block(body, &mut within)))
            }
            kind => {
                if let StatementKind::Verbatim { .. } | StatementKind::VerbatimValue { .. } = kind {
                    self.verbatim.push(statement.span);
                }
                exprs(|visitor| visit::statement(program, statement, visitor))
            }
        };
        self.costs.statement(&statement.kind).saturating_add(inside)
    }

    fn iterate(&mut self, statement: &Statement, each: &Loop, known: &Known) -> u64 {
        let program = self.costs.program;
        let turns = turns::most(program, each, known, self.costs.threads);
        if turns.is_none() {
            self.unbounded.push(program.exprs[each.condition].span);
        }
        let turns = turns.unwrap_or(LOOP_BUDGET.into());
        let mut within = known.clone();
        within.forget(program, statement);
        let mut block = |block: &Block| self.block(block, &mut within.clone());
        let (prelude, body, step) = (block(&each.prelude), block(&each.body), block(&each.step));
        let condition = exprs(|visitor| visit::expr(program, each.condition, visitor));
        // The last test finds the end.
        let tests = turns.saturating_add(1).saturating_mul(prelude.saturating_add(condition));
        tests.saturating_add(turns.saturating_mul(body.saturating_add(step)))
    }
}

/// Expressions on a walk.
struct Exprs(u64);

impl visit::Visitor for Exprs {
    fn expr(&mut self, _: &Program, _: ExprId) {
        self.0 += 1;
    }
}

fn exprs(walk: impl FnOnce(&mut Exprs)) -> u64 {
    let mut found = Exprs(0);
    walk(&mut found);
    found.0
}
