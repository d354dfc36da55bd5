//! Several CPUs: what other CPUs' handlers may have done between two handlers of the CPU that the
//! analysis follows.

use super::Across;
use crate::analysis::occupancy::facts::{Cause, Count};
use crate::analysis::occupancy::lattice::{Grain, Places, Range, Size};
use crate::analysis::occupancy::layout::{RUNNING, Reach};
use crate::analysis::occupancy::state::{Scene, State};
use crate::engine::event::Event;
use crate::engine::protocol::{Class, Cpus};
use crate::ir::Storage;

impl Across<'_> {
    /// For other CPUs, the thread that runs here runs elsewhere.
    pub(super) fn running_elsewhere(&mut self, states: &[State]) {
        if self.layout.cpus == Cpus::Many {
            for state in states {
                self.joins(Class::Elsewhere, state, RUNNING);
            }
        }
    }

    /// What may have happened since this CPU's last handler ended; then what is read from outside
    /// when a handler starts.
    pub(super) fn between_handlers(&mut self, states: &mut Vec<State>, next: Event) {
        let scene = Scene { layout: self.layout, in_schedule: next == Event::Schedule };
        if self.layout.cpus == Cpus::Many {
            states.retain_mut(|state| self.interleave(&scene, state));
        }
        states.iter_mut().for_each(|state| self.forget_outside(state));
    }

    /// Imports and tunables may have changed.
    pub(super) fn forget_outside(&self, state: &mut State) {
        for (global, &variable) in self.layout.globals.iter() {
            if matches!(self.program.globals[global].storage, Storage::Import | Storage::Tunable) {
                state.assign(variable, Range::ALL);
            }
        }
    }

    /// Other CPUs' handlers may start with what this one left.
    pub(super) fn publish(&mut self, state: &State) {
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

    /// On several CPUs a phase says nothing of what is shared; `seen` is of one handler only.
    pub(super) fn only_own(&self, state: &mut State) {
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
}
