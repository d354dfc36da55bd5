//! Several paths side by side: a list of [`State`]s describes the situations of each of them.
//!
//! Keeping paths apart is what relates one fact to another ("either `next` was empty, or `current`
//! holds a thread"). Lists stay short: states that another includes are dropped, states that join
//! without loss are joined, and beyond a limit those join that lose least.

use super::lattice::Grain;
use super::merge::Relation;
use super::state::{Scene, State};

/// Paths kept apart inside a handler.
pub const LIMIT: usize = 6;

/// Shortens the list to at most `limit` states (more only where states cannot be joined).
pub fn compact(scene: &Scene, paths: &mut Vec<State>, limit: usize) {
    if paths.len() < 2 {
        return;
    }
    let mut gathering = Gathering { scene, grain: Grain::Exact, states: Vec::new() };
    for state in paths.drain(..) {
        gathering.add(state);
    }
    while gathering.states.len() > limit && gathering.join_nearest() {}
    paths.extend(gathering.states.into_iter().map(|(state, _)| state));
}

/// States that come to one place again and again: the head of a loop, a phase of a CPU.
#[derive(Clone, Debug, Default)]
pub struct Meeting {
    pub states: Vec<State>,
}

impl Meeting {
    /// Adds states; yields those from which the analysis has to go on, new or grown, which get the
    /// stamp. Unless the grain is exact, it rounds outwards: then there are finitely many states,
    /// and adding comes to an end.
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

/// States of which none includes another or joins with it without loss, each with whether it was
/// added or grew.
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
                Relation::Apart | Relation::Separate => index += 1,
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
                let (a, b) = (&self.states[left].0, &self.states[right].0);
                if a.is_separate(b) {
                    continue;
                }
                let least = best.map_or(u32::MAX, |(least, ..)| least);
                if let Some(distance) = a.distance(self.scene, b, least) {
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
