//! Checks: each place that can fail is looked at on every path, and holds from there on.

use super::lattice::{Places, Range, Size, Truth};
use super::state::State;
use super::values::{MOST_CPUS, Meant};
use super::walker::Walker;
use crate::ir::*;

impl Walker<'_> {
    /// Performs the checks in an expression; false if one of them certainly fails.
    #[must_use]
    pub fn observe(&mut self, state: &mut State, expr: ExprId) -> bool {
        if !self.has_check(expr) {
            return true;
        }
        match self.program.exprs[expr].kind {
            ExprKind::Constant(_) | ExprKind::Now | ExprKind::Cpu | ExprKind::Cpus => true,
            ExprKind::Read(place) => self.observe_place(state, &place),
            ExprKind::Size(of) => self.observe_index(state, &of),
            ExprKind::Same(left, right) => {
                self.observe_thread(state, &left).is_some()
                    && self.observe_thread(state, &right).is_some()
            }
            ExprKind::Unary(_, operand) | ExprKind::Convert(operand) => {
                self.observe(state, operand)
            }
            ExprKind::Binary(_, left, right) => {
                self.observe(state, left) && self.observe(state, right)
            }
            ExprKind::Let { temporary, value, body } => {
                self.observe(state, value) && {
                    self.keep(state, temporary, value);
                    self.observe(state, body)
                }
            }
            ExprKind::And(left, right) | ExprKind::Or(left, right) => {
                // Both ways go on in one state, which therefore learns nothing from the right side.
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                self.branch(left, state.clone(), &mut yes, &mut no);
                let is_and = matches!(self.program.exprs[expr].kind, ExprKind::And(..));
                let (evaluated, skipped) = if is_and { (yes, no) } else { (no, yes) };
                let mut alive = !skipped.is_empty();
                for mut state in evaluated {
                    alive |= self.observe(&mut state, right);
                }
                alive
            }
        }
    }

    #[must_use]
    pub fn observe_place(&mut self, state: &mut State, place: &Place) -> bool {
        match *place {
            Place::Local(_, None) | Place::Global(_, None) => true,
            Place::Local(local, Some(index)) => {
                let length = self.program.locals[local].length;
                self.observe_range(state, &index, length)
            }
            Place::Global(global, Some(index)) => {
                let length = match self.program.globals[global].extent {
                    Extent::Array(length) => Some(length),
                    Extent::One | Extent::PerCpu => None,
                };
                self.observe_range(state, &index, length)
            }
            Place::Attribute(thread, _) => self.observe_thread(state, &thread).is_some(),
        }
    }

    /// The check of a container's index.
    #[must_use]
    pub fn observe_index(&mut self, state: &mut State, of: &ContainerRef) -> bool {
        let Some(index) = of.index else { return true };
        let length = match self.program.containers[of.container].extent {
            Extent::Array(length) => Some(length),
            Extent::One | Extent::PerCpu => None,
        };
        self.observe_range(state, &index, length)
    }

    /// An index below `length`, or (None) below the number of CPUs.
    fn observe_range(&mut self, state: &mut State, index: &Index, length: Option<u32>) -> bool {
        if !self.observe(state, index.at) {
            return false;
        }
        let range = self.range(state, index.at);
        let length = length.or(self.one_cpu().then_some(1));
        let (allowed, below) = match length {
            Some(length) => (Range { lo: 0, hi: i64::from(length) - 1 }, true),
            None => (Range { lo: 0, hi: MOST_CPUS - 1 }, self.is_below_cpus(state, index.at)),
        };
        let truth = Truth::of(allowed.includes(range) && below, allowed.apart(range));
        self.record(index.check, truth, state, None);
        if truth == Truth::Maybe
            && let Some(variable) = self.read_variable(index.at)
        {
            let range = &mut state.variables[usize::from(variable)];
            *range = range.meet(allowed);
            if length.is_none() {
                state.set_below_cpus(variable, true);
            }
        }
        truth != Truth::No
    }

    pub fn is_below_cpus(&self, state: &State, expr: ExprId) -> bool {
        if self.range(state, expr).hi <= 0 {
            return true;
        }
        match self.program.exprs[expr].kind {
            ExprKind::Cpu => true,
            // Less than the number of CPUs, and as that is positive the difference does not wrap
            // around.
            ExprKind::Binary(BinaryOp::Subtract, left, right) => {
                matches!(self.program.exprs[left].kind, ExprKind::Cpus)
                    && self.range(state, right).lo >= 1
            }
            ExprKind::Binary(BinaryOp::Remainder, _, right) => {
                matches!(self.program.exprs[right].kind, ExprKind::Cpus)
            }
            _ => self.read_variable(expr).is_some_and(|variable| state.is_below_cpus(variable)),
        }
    }

    /// Performs a thread expression's checks, after which there is such a thread (unless that is no
    /// check here). None if one certainly fails.
    pub fn observe_thread(&mut self, state: &mut State, thread: &ThreadExpr) -> Option<Meant> {
        if let ThreadKind::First(of) = thread.kind
            && !self.observe_index(state, &of)
        {
            return None;
        }
        let meant = self.meant(state, thread);
        let Some(check) = thread.check else { return Some(meant) };
        let alive = match meant {
            Meant::Individual(individual) => {
                let places = state.places[individual];
                let truth =
                    Truth::of(!places.overlaps(Places::DESTROYED), places == Places::DESTROYED);
                self.record(check, truth, state, None);
                truth == Truth::Yes
                    || truth == Truth::Maybe
                        && state.learn_places(
                            &self.scene,
                            individual,
                            places.without(Places::DESTROYED),
                        )
            }
            Meant::First(site) => {
                let seen = state.count(&self.scene, site).seen;
                let truth = Truth::of(seen.lo > 0, seen.hi == 0);
                self.record(check, truth, state, Some(site));
                truth == Truth::Yes
                    || truth == Truth::Maybe && state.learn_seen(&self.scene, site, Size::SOME)
            }
        };
        alive.then_some(meant)
    }
}
