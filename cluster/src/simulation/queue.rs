//! What happens when, in one order for the whole cluster: by time, then in the order in which it
//! was put there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use attune_simulator::scheduler::Time;

pub struct Queue<T> {
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    /// What the entries of the heap mean.
    slots: Vec<Option<T>>,
    free: Vec<usize>,
    sequence: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), sequence: 0 }
    }
}

impl<T> Queue<T> {
    pub fn push(&mut self, at: Time, what: T) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(what);
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, slot)));
    }

    /// The first that is not after `end`.
    pub fn pop(&mut self, end: Time) -> Option<(Time, T)> {
        self.heap.peek().filter(|Reverse((at, ..))| *at <= end)?;
        let Reverse((at, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        Some((at, self.slots[slot].take()?))
    }
}
