//! Several paths side by side: a list of [`State`]s describes the situations of each of them.
//!
//! Keeping paths apart is what relates one fact to another ("either `next` was empty, or `current` holds a thread").
//! Lists stay short: states that another includes are dropped, states that join without loss are joined, and beyond a limit
//! those join that lose least.

use super::domain::Grain;
use super::merge::Relation;
use super::state::{Scene, State};

/// Paths kept apart inside a handler.
pub const LIMIT: usize = 6;

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
    /// Adds states; yields those from which the analysis has to go on, new or grown, which get the stamp. Unless the grain is
    /// exact, it rounds outwards: then there are finitely many states, and adding comes to an end.
    pub fn absorb(
        &mut self,
        scene: &Scene,
        incoming: Vec<State>,
        grain: Grain,
        limit: usize,
        stamp: u64,
    ) -> Vec<State> {
        let mut gathering = Gathering { scene, grain, states: Vec::new() };
        gathering.states.extend(self.states.drain(..).map(|state| (state, false)));
        for mut state in incoming {
            state.coarsen(scene.layout, grain);
            gathering.add(state);
        }
        while gathering.states.len() > limit && gathering.join_nearest() {}
        let mut fresh = Vec::new();
        for (mut state, is_fresh) in gathering.states {
            if is_fresh {
                state.stamp = stamp;
                fresh.push(state.clone());
            }
            self.states.push(state);
        }
        fresh
    }
}

/// States on their way into a meeting, each with whether it is fresh.
struct Gathering<'a> {
    scene: &'a Scene<'a>,
    grain: Grain,
    states: Vec<(State, bool)>,
}

impl Gathering<'_> {
    fn add(&mut self, mut state: State) {
        let mut index = 0;
        while let Some((other, _)) = self.states.get(index) {
            match other.relate(self.scene, &state) {
                Relation::Includes => return,
                Relation::Included => {
                    self.states.swap_remove(index);
                }
                Relation::JoinsExactly => {
                    state = self.joined(index, state);
                    index = 0;
                }
                Relation::Apart(_) | Relation::Separate => index += 1,
            }
        }
        self.states.push((state, true));
    }

    fn joined(&mut self, index: usize, state: State) -> State {
        let (mut joined, _) = self.states.swap_remove(index);
        joined.join(self.scene, &state);
        joined.coarsen(self.scene.layout, self.grain);
        joined
    }

    /// Joins the two that lose least; false if no two can be joined.
    fn join_nearest(&mut self) -> bool {
        let mut best: Option<(u32, usize, usize)> = None;
        for right in 1..self.states.len() {
            for left in 0..right {
                if let Relation::Apart(distance) =
                    self.states[left].0.relate(self.scene, &self.states[right].0)
                    && best.is_none_or(|(least, ..)| distance < least)
                {
                    best = Some((distance, left, right));
                }
            }
        }
        let Some((_, left, right)) = best else { return false };
        let (later, _) = self.states.swap_remove(right);
        let joined = self.joined(left, later);
        self.add(joined);
        true
    }
}
