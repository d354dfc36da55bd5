//! Where the value of a local variable is read no more.
//!
//! Paths that differ only in such a value are one path. So the analysis forgets the value there:
//! after the last statement that may read it, and at the head of a branch that reads it no more.
//!
//! Invariant: to forget a value is sound wherever it happens; to keep one too long costs time.

use std::collections::{BTreeSet, HashMap};

use super::relevance::Relevance;
use crate::ir::*;

type Locals = BTreeSet<LocalId>;

/// For each statement and each block of a program, by its address: the variables whose values are
/// read no more after the statement, and inside the block and later.
#[derive(Debug, Default)]
pub struct Lifetimes {
    after: HashMap<*const Statement, Vec<LocalId>>,
    inside: HashMap<*const Block, Vec<LocalId>>,
}

impl Lifetimes {
    pub fn of(program: &Program, relevance: &Relevance) -> Lifetimes {
        let mut lifetimes = Lifetimes::default();
        let parts = program.handlers.iter().flat_map(|handler| &handler.parts);
        let prologues = [&program.prologue, &program.thread_prologue];
        for routine in parts.map(|part| &part.routine).chain(prologues) {
            let mut search = Search { program, relevance, lifetimes: &mut lifetimes };
            search.block(&routine.body, Locals::new(), &Jumps::default());
        }
        lifetimes
    }

    pub fn end_after(&self, statement: &Statement) -> &[LocalId] {
        self.after.get(&std::ptr::from_ref(statement)).map_or(&[], Vec::as_slice)
    }

    pub fn end_before(&self, block: &Block) -> &[LocalId] {
        self.inside.get(&std::ptr::from_ref(block)).map_or(&[], Vec::as_slice)
    }
}

/// What is read where `break` and `continue` lead.
#[derive(Clone, Default)]
struct Jumps {
    after_break: Locals,
    after_continue: Locals,
}

struct Search<'a> {
    program: &'a Program,
    relevance: &'a Relevance,
    lifetimes: &'a mut Lifetimes,
}

impl Search<'_> {
    /// What is read from the block's start on, given what is read after it.
    fn block(&mut self, block: &Block, later: Locals, jumps: &Jumps) -> Locals {
        let mut later = later;
        for statement in block.statements.iter().rev() {
            let now = self.statement(statement, &later, jumps);
            let mut touched = now.clone();
            touched.extend(Mentioned::by(self.program, statement));
            self.lifetimes.after.insert(statement, self.followed(touched.difference(&later)));
            later = now;
        }
        later
    }

    fn statement(&mut self, statement: &Statement, later: &Locals, jumps: &Jumps) -> Locals {
        match &statement.kind {
            StatementKind::If { condition, then, otherwise } => {
                let yes = self.block(then, later.clone(), jumps);
                let no = self.block(otherwise, later.clone(), jumps);
                let either: Locals = yes.union(&no).copied().collect();
                let now: Locals = either.union(&self.read_by(*condition)).copied().collect();
                for (block, inside) in [(then, yes), (otherwise, no)] {
                    self.lifetimes.inside.insert(block, self.followed(now.difference(&inside)));
                }
                now
            }
            StatementKind::Loop(_) | StatementKind::Foreach { .. } => self.repeat(statement, later),
            StatementKind::Break => jumps.after_break.clone(),
            StatementKind::Continue => jumps.after_continue.clone(),
            kind => {
                let mut now = match kind {
                    StatementKind::Return(_) | StatementKind::Dispatch { .. } => Locals::new(),
                    _ => later.clone(),
                };
                if let StatementKind::Assign { place: Place::Local(local, None), .. }
                | StatementKind::Random { into: local, .. }
                | StatementKind::VerbatimValue { into: local, .. } = kind
                {
                    now.remove(local);
                }
                let mut reads = Mentioned::default();
                visit::statement(self.program, statement, &mut reads);
                now.extend(reads.read);
                now
            }
        }
    }

    /// Whatever the loop reads anywhere may be read in its next round.
    fn repeat(&mut self, statement: &Statement, later: &Locals) -> Locals {
        let mut mentioned = Mentioned::default();
        visit::statement(self.program, statement, &mut mentioned);
        let head: Locals = mentioned.read.union(later).copied().collect();
        let jumps = Jumps { after_break: later.clone(), after_continue: head.clone() };
        match &statement.kind {
            StatementKind::Loop(each) => {
                for block in [&each.prelude, &each.body, &each.step] {
                    self.block(block, head.clone(), &jumps);
                }
            }
            StatementKind::Foreach { body, .. } => {
                self.block(body, head.clone(), &jumps);
            }
            _ => {}
        }
        head
    }

    fn read_by(&self, expr: ExprId) -> Locals {
        let mut reads = Mentioned::default();
        visit::expr(self.program, expr, &mut reads);
        reads.read
    }

    fn followed<'b>(&self, locals: impl Iterator<Item = &'b LocalId>) -> Vec<LocalId> {
        locals.copied().filter(|local| self.relevance.has_local(*local)).collect()
    }
}

/// The variables that a statement or an expression reads and writes.
#[derive(Default)]
struct Mentioned {
    read: Locals,
    written: Locals,
}

impl Mentioned {
    fn by(program: &Program, statement: &Statement) -> Locals {
        let mut mentioned = Mentioned::default();
        visit::statement(program, statement, &mut mentioned);
        mentioned.read.union(&mentioned.written).copied().collect()
    }
}

impl visit::Visitor for Mentioned {
    fn statement(&mut self, _program: &Program, statement: &Statement) {
        if let StatementKind::Random { into, .. } | StatementKind::VerbatimValue { into, .. } =
            statement.kind
        {
            self.written.insert(into);
        }
    }

    fn expr(&mut self, program: &Program, expr: ExprId) {
        if let ExprKind::Let { temporary, .. } = &program.exprs[expr].kind {
            self.written.insert(*temporary);
        }
    }

    fn place_read(&mut self, _program: &Program, place: &Place) {
        if let Place::Local(local, _) = place {
            self.read.insert(*local);
        }
    }

    fn place_written(&mut self, _program: &Program, place: &Place) {
        if let Place::Local(local, _) = place {
            self.written.insert(*local);
        }
    }
}
