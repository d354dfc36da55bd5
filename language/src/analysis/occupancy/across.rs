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

mod other_cpus;
mod threads;

use super::effects::Moves;
use super::lattice::{Grain, Places, Range};
use super::layout::{Layout, OTHER, RUNNING};
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
