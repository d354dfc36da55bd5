//! What handlers do to threads without a name, gathered for each other.

use super::lattice::Places;
use super::prepared::MOST_TRAITS;

/// What handlers did to threads that they did not know, gathered over all of them. Only grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    /// By place: where a thread that sat there may have been moved to.
    pub flow: [Places; Places::BITS as usize + 1],
    /// Other CPUs' containers from which threads were taken, and into which threads were put.
    pub taken_elsewhere: Places,
    pub put_elsewhere: Places,
    /// Where threads that run on other CPUs were moved to.
    pub running_moved: Places,
    /// By trait: what was assigned to threads that were not known, and to threads that run on other
    /// CPUs.
    pub assigned: [u64; MOST_TRAITS],
    pub assigned_elsewhere: [u64; MOST_TRAITS],
    /// Containers that some thread entered, and left.
    pub entered: Places,
    pub left: Places,
}

impl Moves {
    pub fn new() -> Moves {
        Moves {
            flow: [Places::UNBOUND; Places::BITS as usize + 1],
            taken_elsewhere: Places::UNBOUND,
            put_elsewhere: Places::UNBOUND,
            running_moved: Places::UNBOUND,
            assigned: [0; MOST_TRAITS],
            assigned_elsewhere: [0; MOST_TRAITS],
            entered: Places::UNBOUND,
            left: Places::UNBOUND,
        }
    }

    /// A thread of these places may go on to those.
    pub fn add_flow(&mut self, from: Places, to: Places) {
        for place in from.without(Places::NOWHERE.with(Places::DESTROYED)).each() {
            let flow = &mut self.flow[place.bit() as usize];
            *flow = flow.with(to);
        }
    }

    /// Where a thread at one of these places may have been moved, not knowing which thread it was.
    pub fn flow_from(&self, places: Places) -> Places {
        let containers = places.without(Places::NOWHERE.with(Places::DESTROYED));
        containers
            .each()
            .fold(Places::UNBOUND, |all, place| all.with(self.flow[place.bit() as usize]))
    }
}
