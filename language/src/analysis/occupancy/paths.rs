//! Several paths side by side: a list of [`State`]s describes the situations of each of them.
//!
//! Keeping paths apart is what relates one fact to another ("either `next` was empty, or `current` holds a thread").
//! Lists stay short: states that another includes are dropped, states that join without loss are joined, and beyond a limit
//! those join that lose least.

use super::state::{Scene, State};

/// Paths kept apart inside a handler.
pub const LIMIT: usize = 8;

/// Shortens the list to at most `limit` states (more only where states cannot be joined).
pub fn compact(scene: &Scene, paths: &mut Vec<State>, limit: usize) {
    let mut index = 0;
    while index < paths.len() {
        let mut other = index + 1;
        let mut changed = false;
        while other < paths.len() {
            if paths[index].includes(scene, &paths[other]) {
                paths.swap_remove(other);
            } else if paths[other].includes(scene, &paths[index]) {
                paths.swap(index, other);
                paths.swap_remove(other);
                changed = true;
            } else if paths[index].joins_exactly(scene, &paths[other]) {
                let joined = paths.swap_remove(other);
                paths[index].join(scene, &joined);
                changed = true;
            } else {
                other += 1;
            }
        }
        // What changed may now include or join an earlier one.
        index = if changed { 0 } else { index + 1 };
    }
    while paths.len() > limit {
        let Some((left, right)) = nearest_pair(paths) else { return };
        let joined = paths.swap_remove(right);
        paths[left].join(scene, &joined);
    }
}

fn nearest_pair(paths: &[State]) -> Option<(usize, usize)> {
    let mut best = None;
    for left in 0..paths.len() {
        for right in left + 1..paths.len() {
            if let Some(distance) = paths[left].distance(&paths[right])
                && best.is_none_or(|(least, _)| distance < least)
            {
                best = Some((distance, (left, right)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// States that come to one place again and again: the head of a loop, a phase of a CPU.
#[derive(Clone, Debug, Default)]
pub struct Meeting {
    pub states: Vec<State>,
}

impl Meeting {
    /// Adds states; yields those from which the analysis has to go on. With `coarse` it rounds outwards: then there are
    /// finitely many states, and adding comes to an end.
    pub fn absorb(&mut self, scene: &Scene, incoming: Vec<State>, coarse: bool, limit: usize) -> Vec<State> {
        let mut fresh: Vec<State> = Vec::new();
        for mut state in incoming {
            if self.covers(scene, &state) {
                continue;
            }
            if coarse {
                state.coarsen(scene.layout);
                if self.covers(scene, &state) {
                    continue;
                }
            }
            if let Some(partner) = self.partner(scene, &state, limit) {
                let mut old = self.states.swap_remove(partner);
                old.join(scene, &state);
                if coarse {
                    old.coarsen(scene.layout);
                }
                state = old;
            }
            self.states.retain(|old| !state.includes(scene, old));
            fresh.retain(|old| !state.includes(scene, old));
            self.states.push(state.clone());
            fresh.push(state);
        }
        fresh
    }

    /// The state to join with: one that joins without loss, or, where there are enough, the nearest.
    fn partner(&self, scene: &Scene, state: &State, limit: usize) -> Option<usize> {
        let exact = self.states.iter().position(|old| old.joins_exactly(scene, state));
        exact.or_else(|| {
            let near = |(index, old): (usize, &State)| old.distance(state).map(|distance| (distance, index));
            let nearest = self.states.iter().enumerate().filter_map(near).min();
            nearest.filter(|_| self.states.len() >= limit).map(|(_, index)| index)
        })
    }

    fn covers(&self, scene: &Scene, state: &State) -> bool {
        self.states.iter().any(|old| old.includes(scene, state))
    }
}
