//! Expressions: what values they may have in a [`State`], and what a state learns where a condition holds or fails.
//!
//! Learning may split a state: `|RQ| + |NQ| > 0` holds where `RQ` holds a thread, or where it holds none and `NQ` does.

use super::domain::{Range, Size, Truth};
use super::handler::Walker;
use super::layout::{OTHER, RUNNING, Reach, number};
use super::state::{Key, Link, Site, State};
use crate::ir::*;
use crate::protocol::Cpus;

/// Which thread is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    Individual(usize),
    First(Site),
}

/// More CPUs than any machine has.
const MOST_CPUS: i64 = 1 << 16;

impl Walker<'_> {
    // Values

    /// The values of an integer expression, given that its checks hold.
    pub fn range(&self, state: &State, expr: ExprId) -> Range {
        let node = &self.program.exprs[expr];
        if node.ty == Type::Float {
            return Range::ALL;
        }
        match node.kind {
            ExprKind::Constant(Value::Int(value)) => Range::exactly(value),
            ExprKind::Constant(Value::Float(_)) | ExprKind::Now => Range::ALL,
            ExprKind::Read(place) => match (self.variable(&place), self.trait_read(state, expr)) {
                (Some(variable), _) => state.variables[usize::from(variable)],
                (None, Some((individual, index))) => values_range(state.traits_of(individual)[index]),
                (None, None) => Range::ALL,
            },
            ExprKind::Size(of) => state.count(&self.scene, self.site(state, &of)).seen.range(),
            ExprKind::Same(left, right) => self.same(state, &left, &right).range(),
            ExprKind::Cpu if self.one_cpu() => Range::ZERO,
            ExprKind::Cpus if self.one_cpu() => Range::ONE,
            ExprKind::Cpu => Range { lo: 0, hi: MOST_CPUS - 1 },
            ExprKind::Cpus => Range { lo: 1, hi: MOST_CPUS },
            ExprKind::Unary(op, operand) => match self.is_integer(operand) {
                true => Range::unary(op, self.range(state, operand)),
                false => default_range(op == UnaryOp::Not),
            },
            ExprKind::Binary(op, left, right) => match self.is_integer(left) {
                true => Range::binary(op, self.range(state, left), self.range(state, right)),
                false => default_range(is_comparison(op)),
            },
            ExprKind::And(left, right) => match (self.truth(state, left), self.truth(state, right)) {
                (Truth::No, _) | (_, Truth::No) => Range::ZERO,
                (Truth::Yes, Truth::Yes) => Range::ONE,
                _ => Range::TRUTH,
            },
            ExprKind::Or(left, right) => match (self.truth(state, left), self.truth(state, right)) {
                (Truth::Yes, _) | (_, Truth::Yes) => Range::ONE,
                (Truth::No, Truth::No) => Range::ZERO,
                _ => Range::TRUTH,
            },
            ExprKind::Convert(operand) if self.is_integer(operand) => self.range(state, operand),
            ExprKind::Convert(_) => Range::ALL,
            ExprKind::Let { temporary, value, body } => {
                let mut state = state.clone();
                self.keep(&mut state, temporary, value);
                self.range(&state, body)
            }
        }
    }

    /// The temporary of a `Let` takes its value.
    fn keep(&self, state: &mut State, temporary: LocalId, value: ExprId) {
        if let Some(variable) = self.variable(&Place::Local(temporary, None)) {
            self.assign_number(variable, value, state);
        }
    }

    fn truth(&self, state: &State, expr: ExprId) -> Truth {
        if self.is_integer(expr) { self.range(state, expr).truth() } else { Truth::Maybe }
    }

    pub fn is_integer(&self, expr: ExprId) -> bool {
        self.program.exprs[expr].ty != Type::Float
    }

    pub fn one_cpu(&self) -> bool {
        self.scene.layout.cpus == Cpus::One
    }

    /// The variable that a place is, if it is one that is followed.
    pub fn variable(&self, place: &Place) -> Option<u16> {
        match *place {
            Place::Local(local, None) => self.scene.layout.locals.get(local).copied(),
            Place::Global(global, None) => self.scene.layout.globals.get(global).copied(),
            _ => None,
        }
    }

    /// The individual and the trait that an expression reads, if it is known whose.
    fn trait_read(&self, state: &State, expr: ExprId) -> Option<(usize, usize)> {
        let ExprKind::Read(Place::Attribute(thread, attribute)) = self.program.exprs[expr].kind else {
            return None;
        };
        let index = self.scene.layout.traits.iter().position(|each| each.attribute == attribute)?;
        match self.meant(state, &thread) {
            Meant::Individual(individual) => Some((individual, index)),
            Meant::First(site) => Some((state.only_thread(&self.scene, site)?, index)),
        }
        .filter(|&(individual, _)| state.places[individual].is_bound())
    }

    pub fn read_variable(&self, expr: ExprId) -> Option<u16> {
        match self.program.exprs[expr].kind {
            ExprKind::Read(place) => self.variable(&place),
            ExprKind::Convert(operand) if self.is_integer(expr) && self.is_integer(operand) => {
                self.read_variable(operand)
            }
            _ => None,
        }
    }

    /// The container that is meant, given that its index is in range.
    pub fn site(&self, state: &State, of: &ContainerRef) -> Site {
        let container = number(of.container);
        let Some(index) = of.index else { return Site::One(container) };
        let per_cpu = match self.scene.layout.home(container).reach {
            Reach::Array(_) => false,
            Reach::PerCpu => true,
            // Only per-CPU containers have an index without being arrays: on one CPU, that of CPU 0.
            Reach::Shared | Reach::Local => return Site::One(container),
        };
        if per_cpu && matches!(self.program.exprs[index.at].kind, ExprKind::Cpu) {
            return Site::One(container);
        }
        self.key(state, index.at).map_or(Site::Some(container), |key| Site::Element(container, key))
    }

    fn key(&self, state: &State, index: ExprId) -> Option<Key> {
        if let Some(value) = self.range(state, index).constant() {
            return Some(Key { variable: None, offset: value });
        }
        if let Some(variable) = self.read_variable(index) {
            return Some(Key { variable: Some(variable), offset: 0 });
        }
        let ExprKind::Binary(op, left, right) = self.program.exprs[index].kind else { return None };
        let offset = self.range(state, right).constant()?;
        let variable = Some(self.read_variable(left)?);
        match op {
            BinaryOp::Add => Some(Key { variable, offset }),
            BinaryOp::Subtract => Some(Key { variable, offset: offset.wrapping_neg() }),
            _ => None,
        }
    }

    /// The sizes of which an expression is the sum, if it is one.
    pub fn sum(&self, state: &State, expr: ExprId) -> Option<([Option<Site>; 3], i64)> {
        match self.program.exprs[expr].kind {
            ExprKind::Size(of) => match self.site(state, &of) {
                Site::Some(_) => None,
                site => Some(([Some(site), None, None], 0)),
            },
            ExprKind::Read(place) => {
                let variable = self.variable(&place)?;
                let link = state.links.iter().find(|link| link.variable == variable)?;
                Some((link.sites, link.offset))
            }
            ExprKind::Convert(operand) if self.is_integer(expr) && self.is_integer(operand) => {
                self.sum(state, operand)
            }
            ExprKind::Binary(BinaryOp::Add, left, right) => {
                if let Some(value) = self.range(state, right).constant() {
                    let (sites, offset) = self.sum(state, left)?;
                    return Some((sites, offset.wrapping_add(value)));
                }
                let (mut sites, offset) = self.sum(state, left)?;
                let (more, add) = self.sum(state, right)?;
                for site in more.into_iter().flatten() {
                    *sites.iter_mut().find(|slot| slot.is_none())? = Some(site);
                }
                Some((sites, offset.wrapping_add(add)))
            }
            ExprKind::Binary(BinaryOp::Subtract, left, right) => {
                let value = self.range(state, right).constant()?;
                let (sites, offset) = self.sum(state, left)?;
                Some((sites, offset.wrapping_sub(value)))
            }
            _ => None,
        }
    }

    // Thread names

    /// Which individual or container a thread expression means, without looking at its check.
    pub fn meant(&self, state: &State, thread: &ThreadExpr) -> Meant {
        match thread.kind {
            ThreadKind::Name(name) => Meant::Individual(self.individual(name)),
            ThreadKind::First(of) => Meant::First(self.site(state, &of)),
        }
    }

    pub fn individual(&self, name: NameId) -> usize {
        self.scene.layout.visited.get(name).map_or(self.parameter, |&visited| usize::from(visited))
    }

    fn same(&self, state: &State, left: &ThreadExpr, right: &ThreadExpr) -> Truth {
        let scene = &self.scene;
        match (self.meant(state, left), self.meant(state, right)) {
            (Meant::Individual(a), Meant::Individual(b)) => {
                let alive = |individual: usize| !state.places[individual].overlaps(Places::DESTROYED);
                let apart = matches!((a, b), (RUNNING, OTHER) | (OTHER, RUNNING))
                    || !state.places[a].overlaps(state.places[b]);
                Truth::of(a == b, alive(a) && alive(b) && apart)
            }
            (Meant::Individual(a), Meant::First(site)) | (Meant::First(site), Meant::Individual(a)) => {
                let places = state.places[a];
                let away = !places.overlaps(self.places_of(site).with(Places::DESTROYED));
                Truth::of(false, away)
            }
            (Meant::First(a), Meant::First(b)) => {
                let (here, there) = (state.count(scene, a).seen, state.count(scene, b).seen);
                match state.same_site(scene, a, b) {
                    Truth::Yes => Truth::Yes,
                    Truth::No => Truth::of(here.hi == 0 && there.hi == 0, here.lo > 0 || there.lo > 0),
                    Truth::Maybe => Truth::Maybe,
                }
            }
        }
    }

    // Conditions

    /// Sends a state on where the condition holds, and where it fails. Performs the condition's checks.
    pub fn branch(&mut self, condition: ExprId, mut state: State, yes: &mut Vec<State>, no: &mut Vec<State>) {
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

    /// Adds to `out` what a state becomes where the condition holds (or fails). Its checks hold already.
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
            ExprKind::Binary(op, left, _) if is_comparison(op) && !self.is_integer(left) => out.push(state),
            ExprKind::Binary(op, left, right) if is_comparison(op) => {
                let op = if holds { op } else { opposite(op) };
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
                let other =
                    |range: Range, other: Range| other.constant().map_or(range, |value| range.without(value));
                (other(a, b), other(b, a))
            }
            BinaryOp::Less => (below(a, b), above(b, a)),
            BinaryOp::Greater => (above(a, b), below(b, a)),
            BinaryOp::LessEqual => (Range { hi: a.hi.min(b.hi), ..a }, Range { lo: b.lo.max(a.lo), ..b }),
            _ => (Range { lo: a.lo.max(b.lo), ..a }, Range { hi: b.hi.min(a.hi), ..b }),
        };
        if left_wanted.is_empty() || right_wanted.is_empty() {
            return;
        }
        for (op_below, index, bound) in [(BinaryOp::Less, left, right), (BinaryOp::Greater, right, left)] {
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
                !holds || dead || state.learn_places(scene, a, common) && state.learn_places(scene, b, common)
            }
            (Meant::Individual(a), Meant::First(site)) | (Meant::First(site), Meant::Individual(a)) => {
                let places = self.places_of(site);
                if state.places[a].overlaps(Places::DESTROYED) {
                    true
                } else if holds {
                    state.learn_places(scene, a, places) && state.learn_seen(scene, site, Size::SOME)
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
            ExprKind::Read(place) => match (self.variable(&place), self.trait_read(&state, expr)) {
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
            },
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
            ExprKind::Same(..) | ExprKind::And(..) | ExprKind::Or(..) | ExprKind::Unary(UnaryOp::Not, _) => {
                self.restrict_truth(expr, wanted, state, out);
            }
            ExprKind::Binary(op, ..) if is_comparison(op) => self.restrict_truth(expr, wanted, state, out),
            _ => out.push(state),
        }
    }

    /// Of an expression that is 0 or 1.
    fn restrict_truth(&self, expr: ExprId, wanted: Range, state: State, out: &mut Vec<State>) {
        match (wanted.contains(0), wanted.contains(1)) {
            (true, true) => out.push(state),
            (false, true) => self.learn(expr, true, state, out),
            (true, false) => self.learn(expr, false, state, out),
            (false, false) => {}
        }
    }

    /// `left + right` lies in `wanted`, and no addition wraps.
    fn restrict_sum(&self, left: ExprId, right: ExprId, wanted: Range, state: State, out: &mut Vec<State>) {
        let (a, b) = (self.range(&state, left), self.range(&state, right));
        let given_right = Range::binary(BinaryOp::Subtract, wanted, b).meet(a);
        let undecided =
            a.constant().is_none() && b.constant().is_none() && wanted.lo > a.lo.saturating_add(b.lo);
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
            let given_left = Range::binary(BinaryOp::Subtract, wanted, self.range(&state, left)).meet(b);
            if !given_left.is_empty() {
                self.restrict(right, given_left, state, out);
            }
        }
    }

    fn restrict_variable(&self, variable: u16, wanted: Range, mut state: State, out: &mut Vec<State>) {
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
    fn restrict_sites(&self, sites: &[Site], wanted: Range, mut state: State, out: &mut Vec<State>) {
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
            let left = Range::binary(BinaryOp::Subtract, wanted, state.count(scene, site).seen.range());
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

    // Checks

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
                self.observe_thread(state, &left).is_some() && self.observe_thread(state, &right).is_some()
            }
            ExprKind::Unary(_, operand) | ExprKind::Convert(operand) => self.observe(state, operand),
            ExprKind::Binary(_, left, right) => self.observe(state, left) && self.observe(state, right),
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
            ExprKind::Binary(BinaryOp::Remainder, _, right) => {
                matches!(self.program.exprs[right].kind, ExprKind::Cpus)
            }
            _ => self.read_variable(expr).is_some_and(|variable| state.is_below_cpus(variable)),
        }
    }

    /// Performs a thread expression's checks, after which there is such a thread (unless that is no check here). None if one
    /// certainly fails.
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
                let truth = Truth::of(!places.overlaps(Places::DESTROYED), places == Places::DESTROYED);
                self.record(check, truth, state, None);
                truth == Truth::Yes
                    || truth == Truth::Maybe
                        && state.learn_places(&self.scene, individual, places.without(Places::DESTROYED))
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

use super::domain::Places;

/// The least range with all values of a trait.
fn values_range(values: u64) -> Range {
    Range { lo: i64::from(values.trailing_zeros()), hi: 63 - i64::from(values.leading_zeros()) }
}

fn default_range(is_truth: bool) -> Range {
    if is_truth { Range::TRUTH } else { Range::ALL }
}

pub fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Equal | NotEqual | Less | Greater | LessEqual | GreaterEqual)
}

fn opposite(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Equal => BinaryOp::NotEqual,
        BinaryOp::NotEqual => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::GreaterEqual,
        BinaryOp::GreaterEqual => BinaryOp::Less,
        BinaryOp::Greater => BinaryOp::LessEqual,
        BinaryOp::LessEqual => BinaryOp::Greater,
        other => other,
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
