//! Loops, to a fixed point: `while`, `do` and `for`, and `foreach`, which ends with the container
//! that it visits.

use super::facts::Site;
use super::handler::Exits;
use super::lattice::{Grain, Size};
use super::layout::number;
use super::paths::{self, LIMIT, Meeting};
use super::state::State;
use super::walker::Walker;
use crate::ir::*;

/// Rounds of a loop before its states are rounded outwards.
const EXACT_ROUNDS: u32 = 2;

fn grain_of_round(round: u32) -> Grain {
    if round > EXACT_ROUNDS { Grain::Loop } else { Grain::Exact }
}

/// A loop that does not come to rest soon is described by fewer paths.
fn paths_of_round(round: u32) -> usize {
    if round > 12 { 1 } else { LIMIT }
}

impl Walker<'_> {
    pub fn while_loop(&mut self, each: &Loop, states: Vec<State>, exits: &mut Exits) -> Vec<State> {
        let mut head = Meeting::default();
        let mut left = Vec::new();
        let mut round = 0;
        let mut fresh = head.absorb(&self.scene, states, Grain::Exact, LIMIT, 0);
        while !fresh.is_empty() && !self.recording.gave_up() {
            let mut inner = Exits::default();
            let mut inside = std::mem::take(&mut fresh);
            if each.test == Test::First {
                inside = self.test(each, inside, &mut left, &mut inner);
            }
            inside = self.block(&each.body, inside, &mut inner);
            inside.append(&mut inner.continues);
            paths::compact(&self.scene, &mut inside, LIMIT);
            inside = self.block(&each.step, inside, &mut inner);
            if each.test == Test::Last {
                inside = self.test(each, inside, &mut left, &mut inner);
            }
            left.append(&mut inner.breaks);
            exits.returns.append(&mut inner.returns);
            paths::compact(&self.scene, &mut left, LIMIT);
            round += 1;
            fresh =
                head.absorb(&self.scene, inside, grain_of_round(round), paths_of_round(round), 0);
        }
        paths::compact(&self.scene, &mut exits.returns, LIMIT);
        left
    }

    /// The loop's condition: states that stay in the loop; `left` gets the others.
    fn test(
        &mut self,
        each: &Loop,
        states: Vec<State>,
        left: &mut Vec<State>,
        exits: &mut Exits,
    ) -> Vec<State> {
        let mut inside = Vec::new();
        for state in self.block(&each.prelude, states, exits) {
            self.branch(each.condition, state, &mut inside, left);
        }
        paths::compact(&self.scene, &mut inside, LIMIT);
        inside
    }

    /// Visits what the container held at the start. With nothing put in meanwhile, it is empty
    /// after a body that always moves its thread away.
    pub fn foreach(
        &mut self,
        name: NameId,
        of: &ContainerRef,
        body: &Block,
        states: Vec<State>,
        exits: &mut Exits,
    ) -> Vec<State> {
        let individual = self.individual(name);
        let mut left = Vec::new();
        let mut entering = Vec::new();
        for mut state in states {
            if !self.observe_index(&mut state, of) {
                continue;
            }
            let site = self.site(&state, of);
            let mut none = state.clone();
            if none.learn_seen(&self.scene, site, Size::NONE) {
                left.push(none);
            }
            if state.learn_seen(&self.scene, site, Size::SOME) {
                entering.push(state);
            }
        }
        let steady = Steady::of(self.program, of, body);
        let mut always_moves = true;
        let mut head = Meeting::default();
        let mut ended: Vec<State> = Vec::new();
        let mut round = 0;
        let mut fresh = head.absorb(&self.scene, entering, Grain::Exact, LIMIT, 0);
        while !fresh.is_empty() && !self.recording.gave_up() {
            let mut inner = Exits::default();
            let mut inside = Vec::new();
            for mut state in std::mem::take(&mut fresh) {
                let site = if steady.index {
                    self.site(&state, of)
                } else {
                    Site::Some(number(of.container))
                };
                state.places[individual] = self.places_of(site);
                for (index, each) in self.scene.layout.traits.iter().enumerate() {
                    state.traits_of_mut(individual)[index] = each.values;
                }
                let allowed = state.holds_allowed(&self.scene, site.container());
                let bit = 1 << individual.min(63);
                state.sighted = if allowed { state.sighted | bit } else { state.sighted & !bit };
                if state.learn_seen(&self.scene, site, Size::SOME) && state.reduce(&self.scene) {
                    inside.push(state);
                }
            }
            inside = self.block(body, inside, &mut inner);
            inside.append(&mut inner.continues);
            let home = *self.scene.layout.home(number(of.container));
            always_moves &= inside
                .iter()
                .all(|state| !state.places[individual].overlaps(home.here.with(home.there)));
            for state in inside.iter_mut().chain(&mut inner.breaks) {
                state.unbind(self.scene.layout, individual);
            }
            left.append(&mut inner.breaks);
            exits.returns.append(&mut inner.returns);
            paths::compact(&self.scene, &mut inside, LIMIT);
            ended.extend(inside.iter().cloned());
            paths::compact(&self.scene, &mut ended, LIMIT);
            round += 1;
            fresh =
                head.absorb(&self.scene, inside, grain_of_round(round), paths_of_round(round), 0);
        }
        for mut state in ended {
            let emptied = always_moves && steady.index && steady.nothing_enters;
            let site = self.site(&state, of);
            if !emptied || state.learn_seen(&self.scene, site, Size::NONE) {
                left.push(state);
            }
        }
        paths::compact(&self.scene, &mut left, LIMIT);
        paths::compact(&self.scene, &mut exits.returns, LIMIT);
        left
    }
}

/// What a `foreach` body certainly leaves alone.
struct Steady {
    /// The index of the visited container.
    index: bool,
    /// It puts no thread into the container, and re-inserts none there.
    nothing_enters: bool,
}

impl Steady {
    fn of(program: &Program, of: &ContainerRef, body: &Block) -> Steady {
        let mut uses = Uses {
            container: of.container,
            steady: Steady { index: true, nothing_enters: true },
            read: Vec::new(),
        };
        if let Some(index) = of.index {
            let mut reads = Reads(Vec::new());
            visit::expr(program, index.at, &mut reads);
            uses.steady.index = !reads.0.is_empty()
                || matches!(program.exprs[index.at].kind, ExprKind::Constant(_) | ExprKind::Cpu);
            uses.read = reads.0;
        }
        visit::block(program, body, &mut uses);
        uses.steady
    }
}

/// Places read by an expression.
struct Reads(Vec<Place>);

impl visit::Visitor for Reads {
    fn place_read(&mut self, _program: &Program, place: &Place) {
        self.0.push(*place);
    }
}

struct Uses {
    container: ContainerId,
    steady: Steady,
    read: Vec<Place>,
}

impl Uses {
    fn changes_index(&self, written: impl Fn(&Place) -> bool) -> bool {
        self.read.iter().any(|read| {
            written(read) || !matches!(read, Place::Local(_, None) | Place::Global(_, None))
        })
    }
}

impl visit::Visitor for Uses {
    fn statement(&mut self, program: &Program, statement: &Statement) {
        let changes = match &statement.kind {
            StatementKind::Transfer { destination, .. } => {
                self.steady.nothing_enters &= destination.container != self.container;
                false
            }
            StatementKind::Assign { place, .. } => {
                if let Place::Attribute(_, attribute) = place
                    && program.containers[self.container]
                        .sort
                        .is_some_and(|sort| sort.by == *attribute)
                {
                    self.steady.nothing_enters = false;
                }
                self.changes_index(|read| match (read, place) {
                    (Place::Local(read, _), Place::Local(written, _)) => read == written,
                    (Place::Global(read, _), Place::Global(written, _)) => read == written,
                    _ => false,
                })
            }
            StatementKind::Random { into, .. } => {
                self.changes_index(|read| matches!(read, Place::Local(local, _) if local == into))
            }
            StatementKind::Verbatim { .. } | StatementKind::VerbatimValue { .. } => {
                self.changes_index(|_| true)
            }
            _ => false,
        };
        if changes {
            self.steady.index = false;
        }
    }
}
