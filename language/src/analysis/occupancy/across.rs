//! Across handlers: what holds when a handler starts is what the engine's protocol lets other
//! handlers leave behind.
//!
//! The analysis follows one CPU through its [`Phase`]s. For each phase it keeps the states in which
//! the CPU may be, for each [`Class`] of threads the places where such threads may sit, and goes on
//! until an occasion adds nothing new:
//!
//! ```text
//!   states of a phase ──bind the parameter──▶ handler ──▶ handler ──▶ states of the next phase
//!                            ▲                                   │
//!                     places by class ◀── the thread's new class ┘
//! ```
//!
//! **Threads without a name.** The first thread of a container may be of any class.
//! [`Moves::flow`] records where threads that were not known moved; a class's places are closed
//! under it.
//!
//! **Several CPUs.** Handlers of other CPUs run between any two of this one's. What shared
//! containers hold when a handler starts is therefore the join over the ends of all handlers. This
//! CPU's own containers keep what this CPU left in them, except where another CPU's handler takes a
//! thread from them or puts one in ([`Moves::taken_elsewhere`], [`Moves::put_elsewhere`]).

use super::effects::Moves;
use super::facts::{Cause, Count};
use super::lattice::{Grain, Places, Range, Size};
use super::layout::{Layout, OTHER, RUNNING, Reach};
use super::paths::Meeting;
use super::prepared::{MOST_TRAITS, Prepared};
use super::state::{Scene, State};
use super::verdict::Record;
use super::walker::Walker;
use crate::engine::event::{Event, Parameter};
use crate::engine::protocol::{ANY, Class, Cpus, Fate, Occasion, Phase, Protocol, Subject};
use crate::ir::*;

/// States of a phase that are kept apart.
const PHASE_LIMIT: usize = 4;
/// Rounds after which each phase is described by one state.
const PATIENCE: u32 = 12;

pub struct Across<'a> {
    program: &'a Program,
    protocol: &'a Protocol,
    layout: &'a Layout,
    prepared: &'a Prepared,
    pub record: Record,
    pub moves: Moves,
    phases: [Meeting; 3],
    /// Where threads of each class may sit, on whatever CPU.
    classes: [Places; 5],
    /// By class, then by trait: the values that such threads may have.
    class_traits: [[u64; MOST_TRAITS]; 5],
    /// By class: the values that threads on their way to another instance may have. None before
    /// one has left. The other instance runs the same text, so they come from there with these.
    leaving_traits: [Option<[u64; MOST_TRAITS]>; 5],
    /// On several CPUs: what holds of shared containers and of globals between any two handlers.
    shared: Option<State>,
    /// Grows whenever something that handlers start with, other than a phase's states, does.
    version: u64,
    stamp: u64,
    round: u32,
    /// Handlers that can be called, by number.
    pub called: [bool; Event::ALL.len()],
}

impl<'a> Across<'a> {
    pub fn new(
        program: &'a Program,
        protocol: &'a Protocol,
        layout: &'a Layout,
        prepared: &'a Prepared,
    ) -> Across<'a> {
        Across {
            program,
            protocol,
            layout,
            prepared,
            record: Record::new(),
            moves: Moves::new(),
            phases: Default::default(),
            classes: [Places::UNBOUND; 5],
            class_traits: [[0; MOST_TRAITS]; 5],
            leaving_traits: [None; 5],
            shared: None,
            version: 0,
            stamp: 0,
            round: 0,
            called: [false; Event::ALL.len()],
        }
    }

    /// To the fixed point, then the queries, which change nothing.
    pub fn run(&mut self) {
        self.start();
        let occasions = &self.protocol.occasions;
        // What each occasion started with when it was last followed: its context, and the last
        // stamp of each phase.
        let mut seen = vec![(Vec::new(), [0; 3]); occasions.len()];
        let mut changed = true;
        while changed && !self.record.gave_up() {
            changed = false;
            self.round += 1;
            for (index, occasion) in occasions.iter().enumerate() {
                let context = self.context(occasion);
                if context != seen[index].0 {
                    seen[index] = (context, [0; 3]);
                }
                let mut together = Vec::new();
                for &phase in occasion.phases {
                    let stamp = std::mem::replace(&mut seen[index].1[phase as usize], self.stamp);
                    let states = self.phases[phase as usize].states.iter();
                    let mut states: Vec<State> =
                        states.filter(|state| state.stamp > stamp).cloned().collect();
                    changed |= !states.is_empty();
                    if occasion.chooses() {
                        together.append(&mut states);
                    } else if !states.is_empty() {
                        self.happens(index, occasion, phase, states);
                    }
                }
                // A choice leads to the same phases from wherever it is made.
                if !together.is_empty() {
                    let scene = Scene { layout: self.layout, in_schedule: false };
                    super::paths::compact(&scene, &mut together, 2 * super::paths::LIMIT);
                    self.happens(index, occasion, Phase::Idle, together);
                }
            }
        }
        self.ask_queries();
    }

    /// All that an occasion's handlers start with besides the states of a phase.
    fn context(&self, occasion: &Occasion) -> Vec<u64> {
        if self.layout.cpus == Cpus::Many {
            return vec![self.version];
        }
        let mut context = vec![0];
        let depends_on = |context: &mut Vec<u64>, class: Class| {
            context.push(self.places_of_class(class).0);
            let traits = self.class_traits[class as usize].iter().zip(&self.moves.assigned);
            context.extend(
                traits.take(self.layout.traits.len()).map(|(own, assigned)| own | assigned),
            );
        };
        for call in &occasion.calls {
            match call.subject {
                Subject::Other(pairs) => {
                    pairs.iter().for_each(|(class, _)| depends_on(&mut context, *class))
                }
                Subject::Arriving(_) => {
                    for traits in &self.leaving_traits {
                        context.push(u64::from(traits.is_some()));
                        context.extend(traits.unwrap_or_default());
                    }
                }
                // A thread that is dispatched is ready.
                Subject::Nobody => depends_on(&mut context, Class::Ready),
                Subject::New | Subject::Running => {}
            }
        }
        context
    }

    /// Initial values, then `init`: no thread exists yet.
    fn start(&mut self) {
        let mut state = State::start(self.layout);
        for (global, &variable) in self.layout.globals.iter() {
            if let Value::Int(value) = self.program.globals[global].initial {
                state.variables[usize::from(variable)] = Range::exactly(value);
            }
        }
        self.forget_outside(&mut state);
        let program = self.program;
        let mut states = vec![state.clone()];
        if !program.prologue.body.statements.is_empty() {
            states = self.walker(None, 0, RUNNING).routine(&program.prologue, states);
            states.iter_mut().for_each(|state| state.forget_locals(self.layout, Range::ZERO));
        }
        let after_prologue = states.clone();
        if let Some(handler) = program.handler(Event::Init).filter(|_| !states.is_empty()) {
            self.called[Event::Init as usize] = true;
            states = self.walker(Some(Event::Init), 0, RUNNING).handler(handler, states);
        }
        if self.layout.cpus == Cpus::Many {
            self.shared = Some(state);
            // Other CPUs' instances of per-CPU variables keep their initial values.
            after_prologue.iter().for_each(|state| self.publish(state));
        }
        self.arrive(Phase::Idle, states);
    }

    fn walker(&mut self, event: Option<Event>, occasion: usize, parameter: usize) -> Walker<'_> {
        Walker {
            program: self.program,
            scene: Scene { layout: self.layout, in_schedule: event == Some(Event::Schedule) },
            prepared: self.prepared,
            moves: &mut self.moves,
            recording: &mut self.record,
            parameter,
            elsewhere_roles: 0,
            incidental_roles: 0,
            ready_traits: self.class_traits[Class::Ready as usize],
            event,
            occasion,
        }
    }

    // Occasions

    fn happens(&mut self, index: usize, occasion: &Occasion, phase: Phase, mut states: Vec<State>) {
        let before = self.moves.clone();
        if occasion.calls.is_empty() {
            self.between_handlers(&mut states, Event::SwitchOut);
        }
        for call in &occasion.calls {
            self.between_handlers(&mut states, call.event);
            states = self.call(index, call.event, call.subject, states);
            states.iter().for_each(|state| self.publish(state));
            self.running_elsewhere(&states);
        }
        if let Some(fate) = occasion.stops {
            states = self.retire(RUNNING, fate, states);
        }
        if before != self.moves {
            self.version += 1;
        }
        if occasion.chooses() {
            let (mut running, idle): (Vec<State>, _) =
                states.into_iter().partition(|state| state.dispatched);
            running.iter_mut().for_each(|state| state.dispatched = false);
            self.arrive(Phase::Running, running);
            self.arrive(Phase::Idle, idle);
        } else {
            let next = match (occasion.idles, occasion.stops) {
                (true, _) => Phase::Idle,
                (false, Some(_)) => Phase::Choosing,
                (false, None) => phase,
            };
            self.arrive(next, states);
        }
    }

    /// Calls one handler, about one thread.
    fn call(
        &mut self,
        occasion: usize,
        event: Event,
        subject: Subject,
        states: Vec<State>,
    ) -> Vec<State> {
        let states = self.bind(subject, states);
        if states.is_empty() {
            return states;
        }
        let Some(handler) = self.program.handler(event) else {
            // A policy need not know that a thread leaves.
            return match subject {
                Subject::Other(pairs) => self.release(pairs, states),
                _ => states,
            };
        };
        self.called[event as usize] = true;
        let program = self.program;
        let (parameter, elsewhere_roles) = match subject {
            Subject::Running => (RUNNING, 0),
            Subject::Nobody | Subject::New => (OTHER, 0),
            Subject::Other(pairs) | Subject::Arriving(pairs) => {
                // What is done to a thread that dies matters to no handler of the CPU on which it
                // ran.
                let elsewhere = pairs
                    .iter()
                    .enumerate()
                    .filter(|(_, (class, fate))| *class == Class::Elsewhere && *fate != Fate::Dies);
                (OTHER, elsewhere.map(|(role, _)| 1 << role).sum())
            }
        };
        let mut walker = self.walker(Some(event), occasion, parameter);
        walker.elsewhere_roles = elsewhere_roles;
        walker.incidental_roles = incidental_roles(event, subject);
        let mut states = states;
        if event.is_query() && event.parameter() != Parameter::None {
            // `set_dead` on another CPU may have destroyed the thread that runs here, but no query
            // is about a thread that is gone.
            states.retain_mut(|state| {
                let alive = state.places[parameter].without(Places::DESTROYED);
                state.learn_places(&walker.scene, parameter, alive)
            });
        }
        if subject == Subject::New && !program.thread_prologue.body.statements.is_empty() {
            walker.event = None;
            states = walker.routine(&program.thread_prologue, states);
            walker.event = Some(event);
        }
        let states = walker.handler(handler, states);
        match subject {
            Subject::Nobody | Subject::Running => states,
            Subject::New => self.retire(OTHER, Fate::Becomes(Class::Ready), states),
            Subject::Other(pairs) | Subject::Arriving(pairs) => self.release(pairs, states),
        }
    }

    /// States in which the parameter names a thread that the call may be about.
    fn bind(&mut self, subject: Subject, states: Vec<State>) -> Vec<State> {
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
                super::paths::compact(&scene, &mut bound, 2 * super::paths::LIMIT);
                bound
            }
        }
    }

    /// The parameter is one of its class's threads again.
    fn release(&mut self, pairs: &[(Class, Fate)], states: Vec<State>) -> Vec<State> {
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
    fn retire(&mut self, individual: usize, fate: Fate, states: Vec<State>) -> Vec<State> {
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

    fn joins(&mut self, class: Class, state: &State, individual: usize) {
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

    // Several CPUs

    /// For other CPUs, the thread that runs here runs elsewhere.
    fn running_elsewhere(&mut self, states: &[State]) {
        if self.layout.cpus == Cpus::Many {
            for state in states {
                self.joins(Class::Elsewhere, state, RUNNING);
            }
        }
    }

    /// What may have happened since this CPU's last handler ended; then what is read from outside
    /// when a handler starts.
    fn between_handlers(&mut self, states: &mut Vec<State>, next: Event) {
        let scene = Scene { layout: self.layout, in_schedule: next == Event::Schedule };
        if self.layout.cpus == Cpus::Many {
            states.retain_mut(|state| self.interleave(&scene, state));
        }
        states.iter_mut().for_each(|state| self.forget_outside(state));
    }

    /// Imports and tunables may have changed.
    fn forget_outside(&self, state: &mut State) {
        for (global, &variable) in self.layout.globals.iter() {
            if matches!(self.program.globals[global].storage, Storage::Import | Storage::Tunable) {
                state.assign(variable, Range::ALL);
            }
        }
    }

    /// Other CPUs' handlers may start with what this one left.
    fn publish(&mut self, state: &State) {
        let Some(shared) = &mut self.shared else { return };
        let mut grew = false;
        for (index, home) in self.layout.homes.iter().enumerate() {
            if matches!(home.reach, Reach::Shared | Reach::Array(_)) {
                let old = &mut shared.cells[index].count.held;
                let new = old.hull(state.cells[index].count.held).coarse(Grain::Phase);
                grew |= *old != new;
                *old = new;
            }
        }
        for index in 0..self.layout.global_count {
            let old = &mut shared.variables[index];
            if !old.includes(state.variables[index]) {
                *old = self.layout.coarse(old.hull(state.variables[index]));
                grew = true;
            }
        }
        self.version += u64::from(grew);
    }

    fn interleave(&self, scene: &Scene, state: &mut State) -> bool {
        let Some(shared) = &self.shared else { return true };
        for (index, home) in self.layout.homes.iter().enumerate() {
            let count = &mut state.cells[index].count;
            match home.reach {
                Reach::Shared | Reach::Array(_) => {
                    let held = shared.cells[index].count.held;
                    let filtered = scene.is_filtered(index as u16);
                    *count =
                        Count { held, seen: if filtered { Size::at_most(held.hi) } else { held } };
                }
                Reach::PerCpu => {
                    let lo = if self.moves.taken_elsewhere.overlaps(home.there) {
                        0
                    } else {
                        count.held.lo
                    };
                    let hi = if self.moves.put_elsewhere.overlaps(home.there) {
                        home.capacity
                    } else {
                        count.held.hi
                    };
                    *count = Count::both(Size { lo, hi });
                }
                Reach::Local => {}
            }
        }
        state.variables[..self.layout.global_count]
            .copy_from_slice(&shared.variables[..self.layout.global_count]);
        state.facts.clear();
        state.links.clear();
        if state.places[RUNNING].is_bound() {
            state.places[RUNNING] = self.moved_by_others(state.places[RUNNING]);
            for (index, values) in state.traits_of_mut(RUNNING).iter_mut().enumerate() {
                *values |= self.moves.assigned[index] | self.moves.assigned_elsewhere[index];
            }
        }
        state.reduce(scene)
    }

    /// Where other CPUs' handlers may have put the thread that runs here.
    fn moved_by_others(&self, places: Places) -> Places {
        let view = |places| self.layout.seen_from_elsewhere(places);
        let mut reached = places.with(view(self.moves.running_moved));
        loop {
            let next = reached.with(view(self.moves.flow_from(view(reached))));
            if next == reached {
                return reached;
            }
            reached = next;
        }
    }

    // Phases

    fn arrive(&mut self, phase: Phase, mut states: Vec<State>) {
        let scene = Scene { layout: self.layout, in_schedule: false };
        self.stamp += 1;
        for state in &mut states {
            self.publish(state);
            self.only_own(state);
        }
        let limit = if self.round > PATIENCE { 1 } else { PHASE_LIMIT };
        self.phases[phase as usize].absorb(&scene, states, Grain::Phase, limit, self.stamp);
    }

    /// On several CPUs a phase says nothing of what is shared; `seen` is of one handler only.
    fn only_own(&self, state: &mut State) {
        for (cell, home) in state.cells.iter_mut().zip(&self.layout.homes) {
            cell.cause = Cause::Entry;
            cell.count = match (self.layout.cpus, home.reach) {
                (Cpus::Many, Reach::Shared | Reach::Array(_)) => {
                    Count::both(Size::at_most(home.capacity))
                }
                _ => Count::both(cell.count.held),
            };
        }
        if self.layout.cpus == Cpus::Many {
            state.variables[..self.layout.global_count].fill(Range::ALL);
        }
        state.variables[self.layout.global_count..].fill(Range::ALL);
    }

    fn ask_queries(&mut self) {
        for &event in &self.protocol.queries {
            for phase in [Phase::Idle, Phase::Running] {
                let mut states = self.phases[phase as usize].states.clone();
                self.between_handlers(&mut states, event);
                if states.is_empty() {
                    continue;
                }
                let occasion = self.protocol.occasions.len();
                if event.parameter() == Parameter::None {
                    self.call(occasion, event, Subject::Nobody, states);
                } else {
                    if phase == Phase::Running {
                        self.call(occasion, event, Subject::Running, states.clone());
                    }
                    self.call(occasion, event, ANY, states);
                }
            }
        }
    }
}

/// The roles in which an event befalls a thread wherever it sits: it is suspended, killed, chosen
/// by name, or what it waits for comes while it is suspended.
fn incidental_roles(event: Event, subject: Subject) -> u8 {
    let Subject::Other(pairs) = subject else { return 0 };
    let befalls = |class: Class| match event {
        Event::SuspendThread | Event::SetNextThread | Event::SetDead | Event::Leaves => true,
        Event::EventRaised => class == Class::SuspendedWaiting,
        _ => false,
    };
    let roles = pairs.iter().enumerate().filter(|(_, (class, _))| befalls(*class));
    roles.map(|(role, _)| 1 << role).sum()
}
