//! Several paths side by side: a list of [`State`]s describes the situations of each of them.
//!
//! Keeping paths apart is what relates one fact to another ("either `next` was empty, or `current` holds a thread").
//! Lists stay short: states that another includes are dropped, states that join without loss are joined, and beyond a limit
//! those join that lose least.

use super::domain::Grain;
use super::merge::Relation;
use super::state::{Scene, State};

/// Paths kept apart inside a handler.
pub const LIMIT: usize = 8;

/// Shortens the list to at most `limit` states (more only where states cannot be joined).
pub fn compact(scene: &Scene, paths: &mut Vec<State>, limit: usize) {
    if paths.len() < 2 {
        return;
    }
    let mut pool = Pool::default();
    for state in paths.drain(..) {
        pool.insert(scene, state);
    }
    while pool.states.len() > limit && pool.join_nearest(scene) {}
    *paths = pool.states;
}

/// States of which none includes another or joins with it without loss, and what joining two of them would lose.
#[derive(Default)]
struct Pool {
    states: Vec<State>,
    /// Symmetric; [`SEPARATE`] where two cannot be joined.
    distances: Vec<Vec<u32>>,
}

const SEPARATE: u32 = u32::MAX;

impl Pool {
    fn insert(&mut self, scene: &Scene, mut state: State) {
        let mut row = Vec::with_capacity(self.states.len() + 1);
        while let Some(other) = self.states.get(row.len()) {
            match other.relate(scene, &state) {
                Relation::Includes => return,
                Relation::Included => {
                    self.remove(row.len());
                }
                Relation::JoinsExactly => {
                    let mut joined = self.remove(row.len());
                    joined.join(scene, &state);
                    state = joined;
                    // It may now include or join an earlier one.
                    row.clear();
                }
                Relation::Apart(distance) => row.push(distance),
                Relation::Separate => row.push(SEPARATE),
            }
        }
        for (other, distance) in self.distances.iter_mut().zip(&row) {
            other.push(*distance);
        }
        row.push(SEPARATE);
        self.states.push(state);
        self.distances.push(row);
    }

    fn remove(&mut self, index: usize) -> State {
        self.distances.swap_remove(index);
        self.distances.iter_mut().for_each(|row| {
            row.swap_remove(index);
        });
        self.states.swap_remove(index)
    }

    /// Joins the two that lose least; false if no two can be joined.
    fn join_nearest(&mut self, scene: &Scene) -> bool {
        let pairs = (0..self.states.len()).flat_map(|right| (0..right).map(move |left| (left, right)));
        let Some((left, right)) = pairs.min_by_key(|&(left, right)| self.distances[left][right]) else {
            return false;
        };
        if self.distances[left][right] == SEPARATE {
            return false;
        }
        // The later one first: removing it moves none before it.
        let later = self.remove(right);
        let mut joined = self.remove(left);
        joined.join(scene, &later);
        self.insert(scene, joined);
        true
    }
}

/// States that come to one place again and again: the head of a loop, a phase of a CPU.
#[derive(Clone, Debug, Default)]
pub struct Meeting {
    pub states: Vec<State>,
}

impl Meeting {
    /// Adds states; yields those from which the analysis has to go on. Unless the grain is
    /// exact, it rounds outwards: then there are finitely many states, and adding comes to an end.
    pub fn absorb(&mut self, scene: &Scene, incoming: Vec<State>, grain: Grain, limit: usize) -> Vec<State> {
        let mut fresh: Vec<State> = Vec::new();
        for mut state in incoming {
            state.coarsen(scene.layout, grain);
            if let Some(state) = self.add(scene, state, grain, limit) {
                fresh.retain(|old| state.relate(scene, old) != Relation::Includes);
                fresh.push(state);
            }
        }
        fresh
    }

    /// The state as it was added, which may be more than it was; None if it was there already.
    fn add(&mut self, scene: &Scene, state: State, grain: Grain, limit: usize) -> Option<State> {
        let relations: Vec<Relation> = self.states.iter().map(|old| old.relate(scene, &state)).collect();
        if relations.contains(&Relation::Includes) {
            return None;
        }
        let exact = relations.iter().position(|relation| *relation == Relation::JoinsExactly);
        let partner = exact.or_else(|| {
            let apart = |(index, relation): (usize, &Relation)| match relation {
                Relation::Apart(distance) => Some((*distance, index)),
                _ => None,
            };
            let nearest = relations.iter().enumerate().filter_map(apart).min();
            nearest.filter(|_| self.states.len() >= limit).map(|(_, index)| index)
        });
        let mut state = state;
        if let Some(partner) = partner {
            let mut joined = self.states.swap_remove(partner);
            joined.join(scene, &state);
            joined.coarsen(scene.layout, grain);
            state = joined;
        }
        self.states.retain(|old| state.relate(scene, old) != Relation::Includes);
        self.states.push(state.clone());
        Some(state)
    }
}
