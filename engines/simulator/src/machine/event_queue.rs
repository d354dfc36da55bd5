//! Orders what happens next: a binary heap of (time, sequence, key) in which every key stands at
//! most once.
//!
//! Invariants: `position[key]` is the key's index in `heap`, or [`ABSENT`]; no entry is less than
//! its parent. Two entries of one time come out in the order in which they were set, so a run does
//! not depend on the heap's layout. The heap has no stale entries: moving or cancelling a timer
//! takes O(log n), and the queue is never longer than its keys.

use crate::scheduler::Time;

/// What a timer belongs to; the machine numbers its CPUs and threads.
pub type Key = u32;

const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Entry {
    time: Time,
    sequence: u64,
    key: Key,
}

impl Entry {
    fn before(&self, other: &Entry) -> bool {
        (self.time, self.sequence) < (other.time, other.sequence)
    }
}

#[derive(Default)]
pub struct EventQueue {
    heap: Vec<Entry>,
    position: Vec<u32>,
    sequence: u64,
}

impl EventQueue {
    /// Makes room for keys below `keys`.
    pub fn grow(&mut self, keys: usize) {
        if self.position.len() < keys {
            self.position.resize(keys, ABSENT);
        }
    }

    /// Sets the key's timer, or moves it if it is set already.
    pub fn set(&mut self, key: Key, time: Time) {
        self.sequence += 1;
        let entry = Entry { time, sequence: self.sequence, key };
        let at = match self.position[key as usize] {
            ABSENT => {
                self.heap.push(entry);
                self.heap.len() - 1
            }
            at => {
                self.heap[at as usize] = entry;
                at as usize
            }
        };
        let at = self.sift_up(at, entry);
        self.sift_down(at, entry);
    }

    /// Lets a timer that is set go off no later than that.
    pub fn advance(&mut self, key: Key, time: Time) {
        let at = self.position[key as usize];
        if at != ABSENT && time < self.heap[at as usize].time {
            self.set(key, time);
        }
    }

    pub fn cancel(&mut self, key: Key) {
        let at = self.position[key as usize];
        if at != ABSENT {
            self.remove(at as usize);
        }
    }

    /// Takes the first timer that is not after `end`.
    pub fn pop(&mut self, end: Time) -> Option<(Time, Key)> {
        let first = *self.heap.first().filter(|first| first.time <= end)?;
        self.remove(0);
        Some((first.time, first.key))
    }

    /// The time of the first timer.
    pub fn first(&self) -> Option<Time> {
        self.heap.first().map(|first| first.time)
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn remove(&mut self, at: usize) {
        let removed = self.heap.swap_remove(at);
        self.position[removed.key as usize] = ABSENT;
        if let Some(&moved) = self.heap.get(at) {
            let at = self.sift_up(at, moved);
            self.sift_down(at, moved);
        }
    }

    /// Puts the entry, which belongs at `at` or above, into its place; returns that.
    fn sift_up(&mut self, mut at: usize, entry: Entry) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
        at
    }

    fn sift_down(&mut self, mut at: usize, entry: Entry) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1].before(&self.heap[child]) {
                child += 1;
            }
            if !self.heap[child].before(&entry) {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }

    fn place(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.position[entry.key as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::distribution::Random;

    #[test]
    fn timers_come_out_by_time_and_then_in_the_order_of_setting() {
        let mut queue = EventQueue::default();
        queue.grow(4);
        queue.set(3, 10);
        queue.set(1, 10);
        queue.set(2, 5);
        queue.set(0, 20);
        assert_eq!(queue.pop(15), Some((5, 2)));
        assert_eq!(queue.pop(15), Some((10, 3)));
        assert_eq!(queue.pop(15), Some((10, 1)));
        assert_eq!(queue.pop(15), None);
        assert!(!queue.is_empty());
    }

    /// Against a plain list that is searched.
    #[test]
    fn random_timers_behave_as_a_sorted_list() {
        let mut random = Random::new(1, 1);
        let mut queue = EventQueue::default();
        queue.grow(50);
        let mut model: Vec<(Time, usize, Key)> = Vec::new();
        for sequence in 0..20_000 {
            let key = random.below(50) as Key;
            match random.below(4) {
                0 | 1 => {
                    let time = random.below(100) as Time;
                    queue.set(key, time);
                    model.retain(|entry| entry.2 != key);
                    model.push((time, sequence, key));
                }
                2 => {
                    queue.cancel(key);
                    model.retain(|entry| entry.2 != key);
                }
                _ => {
                    let end = random.below(120) as Time;
                    model.sort();
                    let expected = model
                        .first()
                        .filter(|first| first.0 <= end)
                        .map(|first| (first.0, first.2));
                    if expected.is_some() {
                        model.remove(0);
                    }
                    assert_eq!(queue.pop(end), expected);
                }
            }
            assert_eq!(queue.is_empty(), model.is_empty());
        }
    }
}
