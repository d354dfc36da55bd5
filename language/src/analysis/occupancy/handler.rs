//! One handler, from what holds when it starts to what holds when it ends.

use super::facts::{Cause, Count, Link, Site};
use super::lattice::{Places, Range, Truth};
use super::layout::{FIRST_VISITED, OTHER, RUNNING, Reach, number};
use super::paths::{self, LIMIT};
use super::state::State;
use super::values::{Meant, is_comparison};
use super::walker::Walker;
use crate::ir::*;

/// States that leave a block other than at its end.
#[derive(Default)]
pub struct Exits {
    pub breaks: Vec<State>,
    pub continues: Vec<State>,
    /// `return` and `dispatch`.
    pub returns: Vec<State>,
}

impl Walker<'_> {
    /// The handler's parts one after another, then the checks at its end.
    pub fn handler(&mut self, handler: &Handler, states: Vec<State>) -> Vec<State> {
        let mut states = states;
        for state in &mut states {
            state.forget_locals(self.scene.layout, Range::ZERO);
            state.cells.iter_mut().for_each(|cell| cell.cause = Cause::Entry);
        }
        for part in &handler.parts {
            states = self.routine(&part.routine, states);
        }
        if let Some(check) = handler.stored {
            states.retain_mut(|state| self.stored(check, state));
        }
        for &(container, check) in &handler.emptied {
            states.retain_mut(|state| self.emptied(container, check, state));
        }
        for state in &mut states {
            state.forget_locals(self.scene.layout, Range::ALL);
        }
        paths::compact(&self.scene, &mut states, LIMIT);
        states
    }

    pub fn routine(&mut self, routine: &Routine, states: Vec<State>) -> Vec<State> {
        let mut exits = Exits::default();
        let mut states = self.block(&routine.body, states, &mut exits);
        states.append(&mut exits.returns);
        for state in &mut states {
            state.forget_visited(self.scene.layout);
        }
        if states.len() > LIMIT {
            paths::compact(&self.scene, &mut states, LIMIT);
        }
        states
    }

    fn stored(&mut self, check: CheckId, state: &mut State) -> bool {
        let places = state.places[self.parameter];
        let truth = Truth::of(!places.overlaps(Places::NOWHERE), places == Places::NOWHERE);
        self.record(check, truth, state, None);
        truth != Truth::No
            && state.learn_places(&self.scene, self.parameter, places.without(Places::NOWHERE))
    }

    fn emptied(&mut self, container: ContainerId, check: CheckId, state: &mut State) -> bool {
        let site = match self.scene.layout.home(number(container)).reach {
            Reach::Array(_) => Site::Some(number(container)),
            _ => Site::One(number(container)),
        };
        let held = state.count(&self.scene, site).held;
        let truth = Truth::of(held.hi == 0, held.lo > 0);
        self.record(check, truth, state, Some(site));
        if truth == Truth::No {
            return false;
        }
        state.cells[usize::from(site.container())].count = Count::NONE;
        state.reduce(&self.scene)
    }

    pub fn block(
        &mut self,
        block: &Block,
        mut states: Vec<State>,
        exits: &mut Exits,
    ) -> Vec<State> {
        for statement in &block.statements {
            if states.is_empty() {
                break;
            }
            if !self.recording.spend(states.len() * (8 + self.scene.layout.homes.len())) {
                return Vec::new();
            }
            states = self.statement(statement, states, exits);
            self.forget(self.prepared.lifetimes.end_after(statement), &mut states);
        }
        states
    }

    /// Paths that only these variables kept apart become one.
    fn forget(&self, variables: &[LocalId], states: &mut Vec<State>) {
        if variables.is_empty() {
            return;
        }
        for state in states.iter_mut() {
            let places = variables.iter().filter_map(|local| self.scene.layout.locals.get(*local));
            places.for_each(|variable| state.assign(*variable, Range::ALL));
        }
        paths::compact(&self.scene, states, LIMIT);
    }

    fn statement(
        &mut self,
        statement: &Statement,
        states: Vec<State>,
        exits: &mut Exits,
    ) -> Vec<State> {
        let before = states.len();
        let mut out = Vec::with_capacity(before);
        match &statement.kind {
            StatementKind::If { condition, then, otherwise } => {
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                for state in states {
                    self.branch(*condition, state, &mut yes, &mut no);
                }
                for (block, side) in [(then, &mut yes), (otherwise, &mut no)] {
                    self.forget(self.prepared.lifetimes.end_before(block), side);
                    if side.len() > LIMIT {
                        paths::compact(&self.scene, side, LIMIT);
                    }
                }
                out = self.block(then, yes, exits);
                out.extend(self.block(otherwise, no, exits));
            }
            StatementKind::Loop(each) => return self.while_loop(each, states, exits),
            StatementKind::Foreach { name, container, body } => {
                return self.foreach(*name, container, body, states, exits);
            }
            StatementKind::Break => exits.breaks.extend(states),
            StatementKind::Continue => exits.continues.extend(states),
            _ => {
                for state in states {
                    self.simple(statement, state, &mut out, exits);
                }
            }
        }
        // As many states as before: nothing was split.
        if out.len() > before {
            paths::compact(&self.scene, &mut out, LIMIT);
        }
        out
    }

    /// A statement without statements in it.
    fn simple(
        &mut self,
        statement: &Statement,
        mut state: State,
        out: &mut Vec<State>,
        exits: &mut Exits,
    ) {
        match &statement.kind {
            StatementKind::Assign { place, value } => self.assign(place, *value, state, out),
            StatementKind::Clear(_) => out.push(state),
            StatementKind::Random { into, bound } => {
                if self.observe(&mut state, *bound) {
                    let most = self.range(&state, *bound).hi.saturating_sub(1).max(0);
                    let below = matches!(self.program.exprs[*bound].kind, ExprKind::Cpus);
                    if let Some(variable) = self.variable(&Place::Local(*into, None)) {
                        state.assign(variable, Range { lo: 0, hi: most });
                        state.set_below_cpus(variable, below);
                    }
                    out.push(state);
                }
            }
            // The scheduler's names stand in it under their own spelling: any variable may have
            // changed.
            StatementKind::Verbatim { .. } | StatementKind::VerbatimValue { .. } => {
                for variable in 0..state.variables.len() {
                    state.assign(variable as u16, Range::ALL);
                }
                out.push(state);
            }
            StatementKind::Transfer { source, destination, destination_check } => {
                if let Some(who) = self.observe_thread(&mut state, source)
                    && self.observe_index(&mut state, destination)
                {
                    let to = self.site(&state, destination);
                    self.transfer(who, to, *destination_check, source.check, state, out);
                }
            }
            StatementKind::Destroy { thread } => {
                if let Some(who) = self.observe_thread(&mut state, thread) {
                    self.relocate(who, None, [thread.check; 2], state, out);
                }
            }
            StatementKind::Dispatch { thread, slice } => {
                if let Some(who) = self.observe_thread(&mut state, thread)
                    && slice.is_none_or(|slice| self.observe(&mut state, slice))
                {
                    self.dispatch(who, &mut state);
                    exits.returns.push(state);
                }
            }
            StatementKind::Alarm { thread, at } => {
                if self.observe_thread(&mut state, thread).is_some()
                    && self.observe(&mut state, *at)
                {
                    out.push(state);
                }
            }
            StatementKind::Preempt { cpu, at } => {
                if self.observe(&mut state, *cpu)
                    && at.is_none_or(|at| self.observe(&mut state, at))
                {
                    out.push(state);
                }
            }
            StatementKind::Return(returned) => {
                let alive = match returned {
                    Some(Returned::Number(value)) => self.observe(&mut state, *value),
                    Some(Returned::Thread(thread)) => {
                        self.observe_thread(&mut state, thread).is_some()
                    }
                    None => true,
                };
                if alive {
                    exits.returns.push(state);
                }
            }
            StatementKind::If { .. }
            | StatementKind::Loop(_)
            | StatementKind::Foreach { .. }
            | StatementKind::Break
            | StatementKind::Continue => {}
        }
    }

    /// The thread runs from now on; where it sits does not change. If there was a decision already,
    /// either may stand.
    fn dispatch(&mut self, who: Meant, state: &mut State) {
        let places = match who {
            Meant::Individual(individual) => state.places[individual],
            Meant::First(site) => self.places_of(site),
        };
        let known = match who {
            Meant::Individual(individual) if individual < FIRST_VISITED => Some(individual),
            Meant::Individual(_) => None,
            Meant::First(site) => {
                state.only_thread(&self.scene, site).filter(|&known| known < FIRST_VISITED)
            }
        };
        for index in 0..self.scene.layout.traits.len() {
            // A policy that dispatches a thread that is not ready is stopped.
            let ready = self.ready_traits[index] | self.moves.assigned[index];
            let values = known.map_or(ready, |known| state.traits_of(known)[index]);
            state.traits_of_mut(RUNNING)[index] |= values;
        }
        let running = &mut state.places[RUNNING];
        *running = running.with(places);
        state.forget_attributes(self.scene.layout, RUNNING);
        state.dispatched = true;
    }

    fn assign(&mut self, place: &Place, value: ExprId, mut state: State, out: &mut Vec<State>) {
        let variable = match place {
            Place::Attribute(..) => None,
            place => self.variable(place),
        };
        let Some(variable) = variable else {
            if self.observe(&mut state, value) && self.observe_place(&mut state, place) {
                if let Place::Attribute(thread, attribute) = place {
                    self.assign_trait(thread, *attribute, value, &mut state);
                    self.assign_indexing(thread, *attribute, value, &mut state);
                }
                // Another element of what has one value on this CPU.
                if let Place::Global(global, Some(_)) = place
                    && let Some(&variable) = self.scene.layout.globals.get(*global)
                {
                    state.assign(variable, Range::ALL);
                }
                out.push(state);
            }
            return;
        };
        // What the application does to a value that is written to it is not known.
        if let Place::Global(global, _) = place
            && self.program.globals[*global].storage == Storage::Import
        {
            if self.observe(&mut state, value) {
                state.assign(variable, Range::ALL);
                out.push(state);
            }
            return;
        }
        if self.is_truth(value) {
            let (mut yes, mut no) = (Vec::new(), Vec::new());
            self.branch(value, state, &mut yes, &mut no);
            for (states, range) in [(yes, Range::ONE), (no, Range::ZERO)] {
                for mut state in states {
                    state.assign(variable, range);
                    out.push(state);
                }
            }
            return;
        }
        if self.observe(&mut state, value) {
            self.assign_number(variable, value, &mut state);
            out.push(state);
        }
    }

    /// An attribute takes a constant: of the thread that is meant, and of whatever other name that
    /// thread has.
    fn assign_trait(
        &mut self,
        thread: &ThreadExpr,
        attribute: AttributeId,
        value: ExprId,
        state: &mut State,
    ) {
        let Some(index) =
            self.scene.layout.traits.iter().position(|each| each.attribute == attribute)
        else {
            return;
        };
        let Some(value @ 0..64) = self.range(state, value).constant() else { return };
        let bit = 1 << value;
        let (known, places) = match self.meant(state, thread) {
            Meant::Individual(individual) => (Some(individual), state.places[individual]),
            Meant::First(site) => (state.only_thread(&self.scene, site), self.places_of(site)),
        };
        if known.is_none_or(|known| known >= FIRST_VISITED) {
            self.moves.assigned[index] |= bit;
        }
        if known == Some(OTHER) && state.roles & self.elsewhere_roles != 0 {
            self.moves.assigned_elsewhere[index] |= bit;
        }
        for individual in 0..state.places.len() {
            let apart =
                matches!((known, individual), (Some(RUNNING), OTHER) | (Some(OTHER), RUNNING));
            if known == Some(individual) {
                state.traits_of_mut(individual)[index] = bit;
            } else if !apart && state.places[individual].overlaps(places) {
                state.traits_of_mut(individual)[index] |= bit;
            }
        }
    }

    /// An attribute by which arrays are indexed takes a value: of the thread that is meant, and
    /// perhaps of each other individual, which may be the same thread.
    fn assign_indexing(
        &self,
        thread: &ThreadExpr,
        attribute: AttributeId,
        value: ExprId,
        state: &mut State,
    ) {
        let layout = self.scene.layout;
        if !layout.indexing.contains(&attribute) {
            return;
        }
        // What the application does to a value that is written to it is not known.
        let new = match self.program.attributes[attribute].import {
            true => Range::ALL,
            false => self.range(state, value),
        };
        let known = self.known(state, thread);
        for individual in 0..state.places.len() {
            let Some(variable) = layout.attribute_of(individual, attribute) else { continue };
            let old = state.variables[usize::from(variable)];
            state.assign(variable, if known == Some(individual) { new } else { old.hull(new) });
        }
    }

    pub fn assign_number(&self, variable: u16, value: ExprId, state: &mut State) {
        let range = self.range(state, value);
        if let Some(original) = self.read_variable(value) {
            state.copy(variable, original);
            return;
        }
        if let ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Subtract), left, right) =
            self.program.exprs[value].kind
            && self.read_variable(left) == Some(variable)
            && let Some(step) = self.range(state, right).constant()
        {
            let step = if op == BinaryOp::Add { step } else { step.wrapping_neg() };
            state.advance(variable, step, range);
            return;
        }
        let sum = self.sum(state, value);
        let below = !self.one_cpu() && self.is_below_cpus(state, value);
        state.assign(variable, range);
        state.set_below_cpus(variable, below);
        if let Some((sites, offset)) = sum
            && !sites
                .into_iter()
                .flatten()
                .any(|site| matches!(site, Site::Element(_, key) if key.variable == Some(variable)))
        {
            state.links.push(Link { variable, offset, sites });
        }
    }

    /// Whether the expression is 0 or 1 by what it is.
    fn is_truth(&self, expr: ExprId) -> bool {
        match self.program.exprs[expr].kind {
            ExprKind::Same(..)
            | ExprKind::And(..)
            | ExprKind::Or(..)
            | ExprKind::Unary(UnaryOp::Not, _) => self.is_integer(expr),
            ExprKind::Binary(op, ..) => is_comparison(op) && self.is_integer(expr),
            _ => false,
        }
    }
}
