//! Which variables can matter: those whose value the analysis could ever make use of.
//!
//! A variable matters if an index or a condition reads it, or if one that matters is computed from
//! it. Times and virtual times mostly feed arithmetic and comparisons with attributes of threads,
//! of which nothing is known. Following such a variable would only keep paths apart.
//!
//! Invariant: a variable that is not followed may have any value, so leaving one out is sound.

use std::collections::{HashMap, HashSet};

use crate::ir::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Variable {
    Global(GlobalId),
    Local(LocalId),
}

/// The variables that matter, of the program and of its routines.
pub struct Relevance(HashSet<Variable>);

impl Relevance {
    /// `is_followed`: whether something is known of an attribute.
    pub fn of(program: &Program, is_followed: impl Fn(AttributeId) -> bool) -> Relevance {
        let (roots, inputs) = (HashSet::new(), HashMap::new());
        let mut search = Search { is_followed: &is_followed, roots, inputs };
        for handler in &program.handlers {
            visit::handler(program, handler, &mut search);
        }
        let invariants = program.invariants.iter().map(|invariant| &invariant.routine);
        for routine in [&program.prologue, &program.thread_prologue].into_iter().chain(invariants) {
            visit::block(program, &routine.body, &mut search);
        }

        let mut waiting: Vec<Variable> = search.roots.iter().copied().collect();
        let mut matter = search.roots;
        while let Some(variable) = waiting.pop() {
            let inputs = search.inputs.remove(&variable).unwrap_or_default();
            waiting.extend(inputs.into_iter().filter(|input| matter.insert(*input)));
        }
        Relevance(matter)
    }

    pub fn has_global(&self, global: GlobalId) -> bool {
        self.0.contains(&Variable::Global(global))
    }

    pub fn has_local(&self, local: LocalId) -> bool {
        self.0.contains(&Variable::Local(local))
    }
}

struct Search<'a, F> {
    is_followed: &'a F,
    /// Variables that matter by themselves.
    roots: HashSet<Variable>,
    /// What each variable is computed from.
    inputs: HashMap<Variable, HashSet<Variable>>,
}

impl<F: Fn(AttributeId) -> bool> visit::Visitor for Search<'_, F> {
    fn statement(&mut self, program: &Program, statement: &Statement) {
        match &statement.kind {
            StatementKind::Assign { place, value } => {
                let target = match place {
                    Place::Local(local, _) => Some(Variable::Local(*local)),
                    Place::Global(global, _) => Some(Variable::Global(*global)),
                    Place::Attribute(..) => None,
                };
                match (target, place) {
                    (Some(target), _) => self.computed(program, target, *value),
                    (None, Place::Attribute(_, attribute)) if (self.is_followed)(*attribute) => {
                        self.needs(program, *value)
                    }
                    _ => {}
                }
            }
            StatementKind::If { condition, .. } => self.condition(program, *condition),
            StatementKind::Loop(each) => self.condition(program, each.condition),
            StatementKind::Random { bound, .. } => self.needs(program, *bound),
            StatementKind::Preempt { cpu, .. } => self.needs(program, *cpu),
            _ => {}
        }
    }

    fn expr(&mut self, program: &Program, expr: ExprId) {
        match program.exprs[expr].kind {
            ExprKind::Let { temporary, value, .. } => {
                self.computed(program, Variable::Local(temporary), value)
            }
            // The second half is evaluated only where the first one lets it.
            ExprKind::And(left, right) | ExprKind::Or(left, right) => {
                self.condition(program, left);
                self.condition(program, right);
            }
            _ => {}
        }
    }

    fn place_read(&mut self, program: &Program, place: &Place) {
        if let Place::Local(_, Some(index)) | Place::Global(_, Some(index)) = place {
            self.needs(program, index.at);
        }
    }

    fn place_written(&mut self, program: &Program, place: &Place) {
        self.place_read(program, place);
    }

    fn container(&mut self, program: &Program, container: &ContainerRef) {
        if let Some(index) = container.index {
            self.needs(program, index.at);
        }
    }
}

impl<F: Fn(AttributeId) -> bool> Search<'_, F> {
    /// A comparison with a value of which nothing is known says nothing of the other side. The
    /// halves of `and` and `or` are conditions that the visitor comes to by itself.
    fn condition(&mut self, program: &Program, condition: ExprId) {
        match program.exprs[condition].kind {
            ExprKind::And(..) | ExprKind::Or(..) => {}
            ExprKind::Unary(UnaryOp::Not, operand) => self.condition(program, operand),
            ExprKind::Binary(_, left, right)
                if self.is_opaque(program, left) || self.is_opaque(program, right) => {}
            _ => self.needs(program, condition),
        }
    }

    /// Whether any value at all must be expected.
    fn is_opaque(&self, program: &Program, expr: ExprId) -> bool {
        match &program.exprs[expr].kind {
            ExprKind::Now => true,
            ExprKind::Read(Place::Attribute(_, attribute)) => !(self.is_followed)(*attribute),
            ExprKind::Unary(UnaryOp::Negate, operand) => self.is_opaque(program, *operand),
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Subtract, left, right) => {
                self.is_opaque(program, *left) || self.is_opaque(program, *right)
            }
            _ => false,
        }
    }

    /// Everything that the expression reads matters.
    fn needs(&mut self, program: &Program, expr: ExprId) {
        visit::expr(program, expr, &mut Reads(&mut self.roots));
    }

    fn computed(&mut self, program: &Program, target: Variable, value: ExprId) {
        visit::expr(program, value, &mut Reads(self.inputs.entry(target).or_default()));
    }
}

struct Reads<'a>(&'a mut HashSet<Variable>);

impl visit::Visitor for Reads<'_> {
    fn place_read(&mut self, _program: &Program, place: &Place) {
        match place {
            Place::Local(local, _) => self.0.insert(Variable::Local(*local)),
            Place::Global(global, _) => self.0.insert(Variable::Global(*global)),
            Place::Attribute(..) => false,
        };
    }
}
