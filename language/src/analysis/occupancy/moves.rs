//! Threads that move: what a transfer and a `destroy` do to a [`State`], and what they tell other
//! handlers.

use super::facts::{Cause, Change, Site};
use super::lattice::{Places, Size, Truth};
use super::layout::{FIRST_VISITED, OTHER, RUNNING};
use super::state::State;
use super::values::Meant;
use super::walker::Walker;
use crate::ir::CheckId;

/// Where a thread goes.
#[derive(Clone, Copy)]
struct Journey {
    /// None: it is destroyed.
    to: Option<Site>,
    /// The places that this may be.
    arrives: Places,
    /// For messages: what takes it out of where it was, what puts it there.
    leaving: Cause,
    entering: Cause,
}

/// Splitting a thread's places further than this tells too little for what it costs.
const MOST_SPLITS: u32 = 3;

impl Walker<'_> {
    /// Where a thread in that container is.
    pub fn places_of(&self, site: Site) -> Places {
        let home = self.scene.layout.home(site.container());
        match site {
            Site::One(_) => home.here,
            Site::Element(..) | Site::Some(_) => home.here.with(home.there),
        }
    }

    /// Moves a thread that is there to a container, or (None) destroys it.
    pub fn relocate(
        &mut self,
        who: Meant,
        to: Option<Site>,
        checks: [Option<CheckId>; 2],
        state: State,
        out: &mut Vec<State>,
    ) {
        if let (Meant::Individual(individual), [Some(check), _]) = (who, checks) {
            self.recording.note_origin(check, state.places[individual]);
        }
        let [leaving, entering] = checks.map(|check| check.map_or(Cause::Several, Cause::At));
        let arrives = to.map_or(Places::DESTROYED, |site| self.places_of(site));
        self.moves.entered = self.moves.entered.with(arrives);
        if let Some(site @ (Site::Element(..) | Site::Some(_))) = to {
            let there = self.scene.layout.home(site.container()).there;
            self.moves.put_elsewhere = self.moves.put_elsewhere.with(there);
        }
        let journey = Journey { to, arrives, leaving, entering };
        match who {
            Meant::First(from) => self.relocate_first(from, journey, state, out),
            Meant::Individual(individual) => {
                self.relocate_individual(individual, journey, state, out)
            }
        }
    }

    /// The first thread of `from`, another container than `to`.
    fn relocate_first(
        &mut self,
        from: Site,
        journey: Journey,
        mut state: State,
        out: &mut Vec<State>,
    ) {
        let Journey { to, arrives, leaving, entering } = journey;
        let layout = self.scene.layout;
        let departs = self.places_of(from);
        self.moves.left = self.moves.left.with(departs);
        if !matches!(from, Site::One(_)) {
            let there = layout.home(from.container()).there;
            self.moves.taken_elsewhere = self.moves.taken_elsewhere.with(there);
        }
        let alone = state.count(&self.scene, from).held.hi <= 1;
        let is_here = |state: &State, individual: usize| {
            let Site::One(container) = from else { return false };
            alone && state.certain(layout, individual) == Some(container)
        };
        if !is_here(&state, RUNNING) && !is_here(&state, OTHER) {
            self.moves.add_flow(departs, arrives);
        }
        if let Some(to) = to {
            let sighted = state.holds_allowed(&self.scene, from.container());
            if !self.enter(to, sighted, entering, &mut state) {
                return;
            }
        }
        for individual in 0..state.places.len() {
            if is_here(&state, individual) {
                state.places[individual] = arrives;
            } else if state.places[individual].overlaps(departs) {
                state.places[individual] = state.places[individual].with(arrives);
                state.sighted &= !(1 << individual.min(63));
            }
        }
        if state.change_size(&self.scene, from, Change::LEAVES, leaving) {
            out.push(state);
        }
    }

    fn enter(&self, to: Site, sighted: bool, cause: Cause, state: &mut State) -> bool {
        let change = if sighted { Change::ENTERS } else { Change::ENTERS.perhaps_unseen() };
        state.note_allowed(to.container(), sighted);
        state.change_size(&self.scene, to, change, cause)
    }

    fn relocate_individual(
        &mut self,
        individual: usize,
        journey: Journey,
        state: State,
        out: &mut Vec<State>,
    ) {
        let arrives = journey.arrives;
        let places = state.places[individual];
        let incidental =
            individual == OTHER && state.roles != 0 && state.roles & !self.incidental_roles == 0;
        if !incidental {
            self.moves.left = self.moves.left.with(places);
        }
        if individual >= FIRST_VISITED {
            self.moves.add_flow(places, arrives);
        }
        if individual == OTHER && state.roles & self.elsewhere_roles != 0 {
            self.moves.running_moved = self.moves.running_moved.with(arrives);
        }
        if places.count() <= MOST_SPLITS {
            for place in places.each() {
                let mut state = state.clone();
                if state.learn_places(&self.scene, individual, place) {
                    self.relocate_from(individual, place, journey, state, out);
                }
            }
        } else {
            self.relocate_from(individual, places, journey, state, out);
        }
    }

    /// An individual that is at one of `places`.
    fn relocate_from(
        &mut self,
        individual: usize,
        places: Places,
        journey: Journey,
        mut state: State,
        out: &mut Vec<State>,
    ) {
        let Journey { to, arrives, leaving, entering } = journey;
        let layout = self.scene.layout;
        let certain = places.count() == 1;
        let sighted = state.sighted >> individual.min(63) & 1 == 1 || !self.scene.in_schedule;
        if let Some(to) = to {
            if matches!(to, Site::One(_))
                && certain
                && places == arrives
                && layout.home(to.container()).exact
            {
                out.push(state);
                return;
            }
            // It may have been there already.
            let mut change = Change::ENTERS;
            if places.overlaps(arrives) {
                change.held.0 = 0;
                change.seen.0 = 0;
            }
            let change = if sighted { change } else { change.perhaps_unseen() };
            state.note_allowed(to.container(), sighted);
            if !state.change_size(&self.scene, to, change, entering) {
                return;
            }
        }
        for other in 0..state.places.len() {
            let apart = matches!((individual, other), (RUNNING, OTHER) | (OTHER, RUNNING));
            if other != individual && !apart && state.places[other].overlaps(places) {
                state.places[other] = state.places[other].with(arrives);
            }
        }
        state.places[individual] = arrives;
        for place in places.each() {
            if !self.depart(place, certain, sighted, leaving, &mut state) {
                return;
            }
        }
        out.push(state);
    }

    /// A thread leaves a place, certainly or perhaps.
    pub fn depart(
        &mut self,
        place: Places,
        certain: bool,
        sighted: bool,
        cause: Cause,
        state: &mut State,
    ) -> bool {
        let layout = self.scene.layout;
        let leave = if certain { Change::LEAVES } else { Change::MAY_LEAVE };
        let leave = if sighted { leave } else { leave.perhaps_unseen() };
        if place == Places::CROWD {
            let may_leave = Change::MAY_LEAVE;
            return layout
                .homes
                .iter()
                .enumerate()
                .filter(|(_, home)| home.here == place || home.there == place)
                .all(|(container, _)| {
                    state.change_size(&self.scene, Site::Some(container as u16), may_leave, cause)
                });
        }
        let Some(&(container, elsewhere)) = layout.by_bit.get(place.bit() as usize) else {
            return true;
        };
        if elsewhere {
            self.moves.taken_elsewhere = self.moves.taken_elsewhere.with(place);
        }
        let known = layout.home(container).exact && !elsewhere;
        let site = if known { Site::One(container) } else { Site::Some(container) };
        state.change_size(&self.scene, site, leave, cause)
    }

    /// `from => to` where both are containers, or a name and a container. Checks hold, but for the
    /// destination's.
    pub fn transfer(
        &mut self,
        who: Meant,
        to: Site,
        destination_check: Option<CheckId>,
        source_check: Option<CheckId>,
        state: State,
        out: &mut Vec<State>,
    ) {
        let scene = self.scene;
        // Whether the thread sits in the destination already.
        let within = match who {
            Meant::First(from) => state.same_site(&scene, from, to),
            Meant::Individual(individual) => {
                let (places, there) = (state.places[individual], self.places_of(to));
                let exact =
                    matches!(to, Site::One(container) if scene.layout.home(container).exact);
                Truth::of(exact && places == there, !places.overlaps(there))
            }
        };
        if let Some(check) = destination_check {
            let held = state.count(&scene, to).held;
            let truth =
                Truth::of(held.hi == 0 || within == Truth::Yes, held.lo > 0 && within == Truth::No);
            self.record(check, truth, &state, Some(to));
        }
        if within != Truth::No {
            // Taken out and put back: only its position changes.
            let mut inside = state.clone();
            let alive = match (who, to) {
                (Meant::Individual(individual), Site::One(container))
                    if scene.layout.home(container).exact =>
                {
                    inside.learn_places(&scene, individual, self.places_of(to))
                }
                (Meant::Individual(individual), _) => {
                    inside.learn_places(&scene, individual, self.places_of(to))
                }
                (Meant::First(from), _) => {
                    let seen = inside.count(&scene, from).seen;
                    inside.learn_seen(&scene, to, Size { lo: 0, hi: seen.hi })
                }
            };
            if alive {
                out.push(inside);
            }
        }
        if within != Truth::Yes {
            let mut outside = state;
            let empty = destination_check.is_none()
                || outside.learn_size(&scene, to, Size::NONE, Size::NONE);
            let exact = matches!(to, Site::One(container) if scene.layout.home(container).exact);
            let elsewhere = match who {
                Meant::Individual(individual) if exact => {
                    let left = outside.places[individual].without(self.places_of(to));
                    left.is_bound() && outside.learn_places(&scene, individual, left)
                }
                _ => true,
            };
            if empty && elsewhere {
                self.relocate(
                    who,
                    Some(to),
                    [source_check, destination_check.or(source_check)],
                    outside,
                    out,
                );
            }
        }
    }
}
