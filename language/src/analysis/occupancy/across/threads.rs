//! Threads between handlers: which of them a handler may be about, where those of a class may sit,
//! and what becomes of one after the handler.
//!
//! A class's places and values only grow; each growth raises the version, so that occasions are
//! followed again.

use super::Across;
use crate::analysis::occupancy::facts::Cause;
use crate::analysis::occupancy::lattice::Places;
use crate::analysis::occupancy::layout::{OTHER, RUNNING};
use crate::analysis::occupancy::paths;
use crate::analysis::occupancy::state::{Scene, State};
use crate::engine::event::Event;
use crate::engine::protocol::{Class, Fate, Subject};

impl Across<'_> {
    /// States in which the parameter names a thread that the call may be about.
    pub(super) fn bind(&mut self, subject: Subject, states: Vec<State>) -> Vec<State> {
        let scene = Scene { layout: self.layout, in_schedule: false };
        match subject {
            Subject::Nobody | Subject::Running => states,
            Subject::New => {
                let mut states = states;
                for state in &mut states {
                    state.places[OTHER] = Places::NOWHERE;
                    for (index, each) in self.layout.traits.iter().enumerate() {
                        state.traits_of_mut(OTHER)[index] = each.initial;
                    }
                }
                states
            }
            Subject::Other(pairs) | Subject::Arriving(pairs) => {
                let mut bound = Vec::new();
                let arriving = matches!(subject, Subject::Arriving(_));
                for (role, (class, _)) in pairs.iter().enumerate() {
                    let left = self.leaving_traits[*class as usize];
                    let places = match (arriving, left) {
                        (false, _) => self.places_of_class(*class),
                        (true, Some(_)) => Places::NOWHERE,
                        (true, None) => Places::UNBOUND,
                    };
                    for state in states.iter().filter(|_| places.is_bound()) {
                        let mut state = state.clone();
                        state.places[OTHER] = places;
                        state.roles = 1 << role;
                        for (index, values) in state.traits_of_mut(OTHER).iter_mut().enumerate() {
                            if let (true, Some(left)) = (arriving, left) {
                                *values = left[index];
                                continue;
                            }
                            *values = self.class_traits[*class as usize][index]
                                | self.moves.assigned[index];
                            if *class == Class::Elsewhere {
                                *values |= self.moves.assigned_elsewhere[index];
                            }
                        }
                        if state.reduce(&scene) {
                            bound.push(state);
                        }
                    }
                }
                paths::compact(&scene, &mut bound, 2 * paths::LIMIT);
                bound
            }
        }
    }

    /// The parameter is one of its class's threads again.
    pub(super) fn release(&mut self, pairs: &[(Class, Fate)], states: Vec<State>) -> Vec<State> {
        let mut released = Vec::new();
        for mut state in states {
            let mut dies = false;
            for (role, &(class, fate)) in pairs.iter().enumerate() {
                if state.roles >> role & 1 == 0 {
                    continue;
                }
                match fate {
                    Fate::Becomes(class) => self.joins(class, &state, OTHER),
                    Fate::Dies => dies = true,
                    Fate::GoesOver => {
                        self.leaves(class, &state);
                        dies = true;
                    }
                }
            }
            state.roles = 0;
            if dies {
                self.remove(OTHER, state, &mut released);
            } else {
                state.unbind(self.layout, OTHER);
                released.push(state);
            }
        }
        released
    }

    /// An individual is followed no longer.
    pub(super) fn retire(
        &mut self,
        individual: usize,
        fate: Fate,
        states: Vec<State>,
    ) -> Vec<State> {
        let mut retired = Vec::new();
        for mut state in states {
            match fate {
                Fate::Becomes(class) => {
                    self.joins(class, &state, individual);
                    state.unbind(self.layout, individual);
                    retired.push(state);
                }
                Fate::Dies | Fate::GoesOver => self.remove(individual, state, &mut retired),
            }
        }
        retired
    }

    /// The engine takes a dead thread out of wherever it is.
    fn remove(&mut self, individual: usize, state: State, out: &mut Vec<State>) {
        let mut walker = self.walker(None, 0, RUNNING);
        for place in state.places[individual].each() {
            let mut state = state.clone();
            let scene = walker.scene;
            if state.learn_places(&scene, individual, place) {
                state.unbind(scene.layout, individual);
                // A thread that ends by itself leaves the container where the policy left it, if
                // the policy is told of ends. A thread that is killed may sit anywhere: that says
                // nothing of what a container is for.
                if individual == RUNNING && walker.program.handler(Event::SetDead).is_some() {
                    walker.moves.left = walker.moves.left.with(place);
                }
                if walker.depart(place, true, true, Cause::Entry, &mut state) {
                    out.push(state);
                }
            }
        }
    }

    /// The parameter goes over to another instance with the attributes that it has.
    fn leaves(&mut self, class: Class, state: &State) {
        let known = self.leaving_traits[class as usize];
        let mut traits = known.unwrap_or_default();
        for (old, new) in traits.iter_mut().zip(state.traits_of(OTHER)) {
            *old |= new;
        }
        if known != Some(traits) {
            self.leaving_traits[class as usize] = Some(traits);
            self.version += 1;
        }
    }

    pub(super) fn joins(&mut self, class: Class, state: &State, individual: usize) {
        for (old, new) in
            self.class_traits[class as usize].iter_mut().zip(state.traits_of(individual))
        {
            self.version += u64::from(new & !*old != 0);
            *old |= new;
        }
        let places = self.layout.on_any_cpu(state.places[individual]);
        let old = &mut self.classes[class as usize];
        if !places.within(*old) {
            *old = old.with(places);
            self.version += 1;
        }
    }

    /// Where threads sit when they become one of the class.
    pub fn joins_class(&self, class: Class) -> Places {
        self.classes[class as usize]
    }

    /// Where threads of the class may sit, closed under what is done to threads without a name.
    pub fn places_of_class(&self, class: Class) -> Places {
        let mut places = self.classes[class as usize];
        loop {
            let next = self.layout.on_any_cpu(places.with(self.moves.flow_from(places)));
            if next == places {
                return places;
            }
            places = next;
        }
    }
}
