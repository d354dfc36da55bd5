//! Conditions: what a state learns where one holds or fails.
//!
//! Learning may split a state: `|RQ| + |NQ| > 0` holds where `RQ` holds a thread, or where it holds
//! none and `NQ` does.

use super::facts::{Link, Site};
use super::lattice::{Places, Range, Size, Truth};
use super::state::State;
use super::values::{Meant, is_comparison};
use super::walker::Walker;
use crate::ir::*;

impl Walker<'_> {
    /// Sends a state on where the condition holds, and where it fails. Performs the condition's
    /// checks.
    pub fn branch(
        &mut self,
        condition: ExprId,
        mut state: State,
        yes: &mut Vec<State>,
        no: &mut Vec<State>,
    ) {
        match self.program.exprs[condition].kind {
            ExprKind::And(left, right) => {
                let mut held = Vec::new();
                self.branch(left, state, &mut held, no);
                for state in held {
                    self.branch(right, state, yes, no);
                }
            }
            ExprKind::Or(left, right) => {
                let mut failed = Vec::new();
                self.branch(left, state, yes, &mut failed);
                for state in failed {
                    self.branch(right, state, yes, no);
                }
            }
            ExprKind::Unary(UnaryOp::Not, operand) => self.branch(operand, state, no, yes),
            ExprKind::Let { temporary, value, body } => {
                if self.observe(&mut state, value) {
                    self.keep(&mut state, temporary, value);
                    self.branch(body, state, yes, no);
                }
            }
            _ => {
                if self.observe(&mut state, condition) {
                    self.learn(condition, true, state.clone(), yes);
                    self.learn(condition, false, state, no);
                }
            }
        }
    }

    /// Adds to `out` what a state becomes where the condition holds (or fails). Its checks hold
    /// already.
    fn learn(&self, condition: ExprId, holds: bool, state: State, out: &mut Vec<State>) {
        if !self.is_integer(condition) {
            out.push(state);
            return;
        }
        match self.program.exprs[condition].kind {
            ExprKind::Same(left, right) => self.learn_same(&left, &right, holds, state, out),
            ExprKind::Unary(UnaryOp::Not, operand) => self.learn(operand, !holds, state, out),
            ExprKind::And(left, right) | ExprKind::Or(left, right) => {
                // The right side decides where the left is what does not.
                let is_and = matches!(self.program.exprs[condition].kind, ExprKind::And(..));
                if is_and != holds {
                    self.learn(left, holds, state.clone(), out);
                }
                let mut open = Vec::new();
                self.learn(left, is_and, state, &mut open);
                open.into_iter().for_each(|state| self.learn(right, holds, state, out));
            }
            ExprKind::Binary(op, left, _) if is_comparison(op) && !self.is_integer(left) => {
                out.push(state)
            }
            ExprKind::Binary(op, left, right) if is_comparison(op) => {
                let op = if holds { op } else { op.negated() };
                self.learn_comparison(op, left, right, state, out);
            }
            _ => {
                let range = self.range(&state, condition);
                let wanted = if holds { range.without(0) } else { range.meet(Range::ZERO) };
                if !wanted.is_empty() {
                    self.restrict(condition, wanted, state, out);
                }
            }
        }
    }

    fn learn_comparison(
        &self,
        op: BinaryOp,
        left: ExprId,
        right: ExprId,
        mut state: State,
        out: &mut Vec<State>,
    ) {
        let (a, b) = (self.range(&state, left), self.range(&state, right));
        // What each side must be, given the other.
        let (left_wanted, right_wanted) = match op {
            BinaryOp::Equal => (a.meet(b), a.meet(b)),
            BinaryOp::NotEqual => {
                let other = |range: Range, other: Range| {
                    other.constant().map_or(range, |value| range.without(value))
                };
                (other(a, b), other(b, a))
            }
            BinaryOp::Less => (below(a, b), above(b, a)),
            BinaryOp::Greater => (above(a, b), below(b, a)),
            BinaryOp::LessEqual => {
                (Range { hi: a.hi.min(b.hi), ..a }, Range { lo: b.lo.max(a.lo), ..b })
            }
            _ => (Range { lo: a.lo.max(b.lo), ..a }, Range { hi: b.hi.min(a.hi), ..b }),
        };
        if left_wanted.is_empty() || right_wanted.is_empty() {
            return;
        }
        for (op_below, index, bound) in
            [(BinaryOp::Less, left, right), (BinaryOp::Greater, right, left)]
        {
            if op == op_below
                && matches!(self.program.exprs[bound].kind, ExprKind::Cpus)
                && let Some(variable) = self.read_variable(index)
            {
                state.set_below_cpus(variable, true);
            }
        }
        if op == BinaryOp::NotEqual
            && let Some((individual, index)) = self.trait_read(&state, left)
            && let Some(value @ 0..64) = b.constant()
        {
            let values = &mut state.traits_of_mut(individual)[index];
            *values &= !(1 << value);
            if *values == 0 {
                return;
            }
        }
        let mut narrowed = Vec::new();
        self.restrict(left, left_wanted, state, &mut narrowed);
        for state in narrowed {
            self.restrict(right, right_wanted, state, out);
        }
    }

    fn learn_same(
        &self,
        left: &ThreadExpr,
        right: &ThreadExpr,
        holds: bool,
        mut state: State,
        out: &mut Vec<State>,
    ) {
        let scene = &self.scene;
        let truth = self.same(&state, left, right);
        if truth == if holds { Truth::No } else { Truth::Yes } {
            return;
        }
        let alive = match (self.meant(&state, left), self.meant(&state, right)) {
            (Meant::Individual(a), Meant::Individual(b)) => {
                let common = state.places[a].and(state.places[b]);
                let dead = state.places[a].with(state.places[b]).overlaps(Places::DESTROYED);
                !holds
                    || dead
                    || state.learn_places(scene, a, common) && state.learn_places(scene, b, common)
            }
            (Meant::Individual(a), Meant::First(site))
            | (Meant::First(site), Meant::Individual(a)) => {
                let places = self.places_of(site);
                if state.places[a].overlaps(Places::DESTROYED) {
                    true
                } else if holds {
                    state.learn_places(scene, a, places)
                        && state.learn_seen(scene, site, Size::SOME)
                } else if let Site::One(container) = site
                    && scene.layout.home(container).exact
                    && !scene.is_filtered(container)
                    && state.count(scene, site).held.hi <= 1
                {
                    let elsewhere = state.places[a].without(places);
                    elsewhere.is_bound() && state.learn_places(scene, a, elsewhere)
                } else {
                    true
                }
            }
            (Meant::First(a), Meant::First(b)) => match state.same_site(scene, a, b) {
                Truth::No if holds => {
                    state.learn_seen(scene, a, Size::NONE) && state.learn_seen(scene, b, Size::NONE)
                }
                Truth::No => {
                    let mut first = state.clone();
                    if first.learn_seen(scene, a, Size::SOME) {
                        out.push(first);
                    }
                    state.learn_seen(scene, a, Size::NONE) && state.learn_seen(scene, b, Size::SOME)
                }
                _ => true,
            },
        };
        if alive {
            out.push(state);
        }
    }

    /// Adds to `out` what the state becomes where the expression's value lies in the range.
    pub fn restrict(&self, expr: ExprId, wanted: Range, mut state: State, out: &mut Vec<State>) {
        let now = self.range(&state, expr);
        if now.apart(wanted) {
            return;
        }
        if wanted.includes(now) {
            out.push(state);
            return;
        }
        match self.program.exprs[expr].kind {
            ExprKind::Size(of) => {
                let site = self.site(&state, &of);
                if state.learn_seen(&self.scene, site, Size::within(wanted)) {
                    out.push(state);
                }
            }
            ExprKind::Read(place) => {
                match (self.read(&state, &place), self.trait_read(&state, expr)) {
                    (Some(variable), _) => self.restrict_variable(variable, wanted, state, out),
                    (None, Some((individual, index))) => {
                        let values = &mut state.traits_of_mut(individual)[index];
                        *values &= (0..64)
                            .filter(|&value| wanted.contains(value))
                            .fold(0, |all, value| all | 1 << value);
                        if *values != 0 {
                            out.push(state);
                        }
                    }
                    (None, None) => out.push(state),
                }
            }
            ExprKind::Convert(operand) if self.is_integer(operand) => {
                self.restrict(operand, wanted, state, out)
            }
            ExprKind::Unary(UnaryOp::Negate, operand) if now != Range::ALL => {
                let wanted = wanted.meet(now);
                self.restrict(operand, Range::unary(UnaryOp::Negate, wanted), state, out);
            }
            ExprKind::Binary(BinaryOp::Add, left, right) if now != Range::ALL => {
                self.restrict_sum(left, right, wanted.meet(now), state, out);
            }
            ExprKind::Binary(BinaryOp::Subtract, left, right) if now != Range::ALL => {
                let wanted = wanted.meet(now);
                let (a, b) = (self.range(&state, left), self.range(&state, right));
                let left_wanted = Range::binary(BinaryOp::Add, wanted, b).meet(a);
                let right_wanted = Range::binary(BinaryOp::Subtract, a, wanted).meet(b);
                let mut narrowed = Vec::new();
                self.restrict(left, left_wanted, state, &mut narrowed);
                for state in narrowed {
                    self.restrict(right, right_wanted, state, out);
                }
            }
            ExprKind::Let { temporary, value, body } => {
                self.keep(&mut state, temporary, value);
                self.restrict(body, wanted, state, out);
            }
            ExprKind::Same(..)
            | ExprKind::And(..)
            | ExprKind::Or(..)
            | ExprKind::Unary(UnaryOp::Not, _) => {
                self.restrict_truth(expr, wanted, state, out);
            }
            ExprKind::Binary(op, ..) if is_comparison(op) => {
                self.restrict_truth(expr, wanted, state, out)
            }
            _ => out.push(state),
        }
    }

    /// The same for an expression that is 0 or 1.
    fn restrict_truth(&self, expr: ExprId, wanted: Range, state: State, out: &mut Vec<State>) {
        match (wanted.contains(0), wanted.contains(1)) {
            (true, true) => out.push(state),
            (false, true) => self.learn(expr, true, state, out),
            (true, false) => self.learn(expr, false, state, out),
            (false, false) => {}
        }
    }

    /// `left + right` lies in `wanted`, and no addition wraps.
    fn restrict_sum(
        &self,
        left: ExprId,
        right: ExprId,
        wanted: Range,
        state: State,
        out: &mut Vec<State>,
    ) {
        let (a, b) = (self.range(&state, left), self.range(&state, right));
        let given_right = Range::binary(BinaryOp::Subtract, wanted, b).meet(a);
        let undecided = a.constant().is_none()
            && b.constant().is_none()
            && wanted.lo > a.lo.saturating_add(b.lo);
        let mut narrowed = Vec::new();
        if undecided && given_right.lo == a.lo {
            // Either the left is at its least and the right makes up for it, or the left is more.
            self.restrict(
                left,
                Range { lo: a.lo.saturating_add(1), ..given_right },
                state.clone(),
                &mut narrowed,
            );
            self.restrict(left, Range::exactly(a.lo), state, &mut narrowed);
        } else {
            self.restrict(left, given_right, state, &mut narrowed);
        }
        for state in narrowed {
            let given_left =
                Range::binary(BinaryOp::Subtract, wanted, self.range(&state, left)).meet(b);
            if !given_left.is_empty() {
                self.restrict(right, given_left, state, out);
            }
        }
    }

    fn restrict_variable(
        &self,
        variable: u16,
        wanted: Range,
        mut state: State,
        out: &mut Vec<State>,
    ) {
        let range = &mut state.variables[usize::from(variable)];
        *range = range.meet(wanted);
        if range.is_empty() {
            return;
        }
        let range = *range;
        let mut states = vec![state];
        let links = states[0].links.clone();
        for link in links.into_iter().filter(|link| link.variable == variable) {
            let mut narrowed = Vec::new();
            for state in states {
                self.restrict_link(&link, range, state, &mut narrowed);
            }
            states = narrowed;
        }
        out.append(&mut states);
    }

    /// The linked variable lies in `range`.
    fn restrict_link(&self, link: &Link, range: Range, state: State, out: &mut Vec<State>) {
        let wanted = Range::binary(BinaryOp::Subtract, range, Range::exactly(link.offset));
        if wanted == Range::ALL {
            out.push(state);
            return;
        }
        let sites: Vec<Site> = link.sites.into_iter().flatten().collect();
        self.restrict_sites(&sites, wanted, state, out);
    }

    /// The sum of the sizes seen at the sites lies in `wanted`.
    fn restrict_sites(
        &self,
        sites: &[Site],
        wanted: Range,
        mut state: State,
        out: &mut Vec<State>,
    ) {
        let scene = &self.scene;
        let Some((&site, rest)) = sites.split_first() else {
            if wanted.contains(0) {
                out.push(state);
            }
            return;
        };
        let others = rest.iter().fold(Range::ZERO, |sum, &site| {
            Range::binary(BinaryOp::Add, sum, state.count(scene, site).seen.range())
        });
        let here = state.count(scene, site).seen.range();
        let possible = Range::binary(BinaryOp::Subtract, wanted, others).meet(here);
        if possible.is_empty() {
            return;
        }
        let go_on = |state: State, out: &mut Vec<State>| {
            let left =
                Range::binary(BinaryOp::Subtract, wanted, state.count(scene, site).seen.range());
            self.restrict_sites(rest, left, state, out);
        };
        if !rest.is_empty() && possible.lo == 0 && wanted.lo > 0 {
            let mut none = state.clone();
            if none.learn_seen(scene, site, Size::NONE) {
                go_on(none, out);
            }
            if state.learn_seen(scene, site, Size::within(Range { lo: 1, ..possible })) {
                go_on(state, out);
            }
        } else if state.learn_seen(scene, site, Size::within(possible)) {
            go_on(state, out);
        }
    }
}

/// The part of `range` below some value of `bound`.
fn below(range: Range, bound: Range) -> Range {
    match bound.hi.checked_sub(1) {
        Some(most) => Range { hi: range.hi.min(most), ..range },
        None => Range { lo: 1, hi: 0 },
    }
}

/// The part of `range` above some value of `bound`.
fn above(range: Range, bound: Range) -> Range {
    match bound.lo.checked_add(1) {
        Some(least) => Range { lo: range.lo.max(least), ..range },
        None => Range { lo: 1, hi: 0 },
    }
}
