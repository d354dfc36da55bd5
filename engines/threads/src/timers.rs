//! When threads are to be woken: a binary heap in which every thread has at most one entry of each
//! kind and knows its place, so that a timeout that does not happen leaves nothing behind.
//!
//! Invariant: `heap[i] <= heap[2i+1], heap[2i+2]` by (time, number of the request), and
//! `heap[i].thread.timer_places[kind] == i + 1` (0: no entry). Units: nanoseconds of the engine's
//! clock.

use crate::thread::ThreadRef;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The end of a sleep or of a wait's timeout.
    Wake,
    /// What the scheduler asked for with `alarm t at T`.
    Alarm,
}

#[derive(Clone, Copy)]
struct Entry {
    at: i64,
    /// Equal times expire in the order of their requests.
    request: u64,
    thread: ThreadRef,
    kind: Kind,
}

#[derive(Default)]
pub struct Timers {
    heap: Vec<Entry>,
    requests: u64,
}

impl Timers {
    /// Replaces the thread's timer of that kind.
    pub fn set(&mut self, thread: ThreadRef, kind: Kind, at: i64) {
        self.cancel(thread, kind);
        self.requests += 1;
        self.heap.push(Entry { at, request: self.requests, thread, kind });
        self.rise(self.heap.len() - 1);
    }

    pub fn cancel(&mut self, thread: ThreadRef, kind: Kind) {
        self.take(thread, kind);
    }

    /// Cancels, and says when it would have come.
    pub fn take(&mut self, thread: ThreadRef, kind: Kind) -> Option<i64> {
        let place = (thread.timer_places[kind as usize].get() as usize).checked_sub(1)?;
        let at = self.heap[place].at;
        self.remove(place);
        Some(at)
    }

    /// The earliest time of all.
    pub fn next(&self) -> Option<i64> {
        self.heap.first().map(|entry| entry.at)
    }

    /// Takes the earliest timer if its time has come.
    pub fn expire(&mut self, now: i64) -> Option<(ThreadRef, Kind)> {
        let first = *self.heap.first().filter(|entry| entry.at <= now)?;
        self.remove(0);
        Some((first.thread, first.kind))
    }

    fn remove(&mut self, place: usize) {
        let gone = self.heap.swap_remove(place);
        gone.thread.timer_places[gone.kind as usize].set(0);
        if place < self.heap.len() {
            self.rise(place);
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.before(place, (place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        self.note(place);
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(child) = children.reduce(|a, b| if self.before(b, a) { b } else { a }) else {
                break;
            };
            if !self.before(child, place) {
                break;
            }
            self.swap(place, child);
            place = child;
        }
        self.note(place);
    }

    fn before(&self, a: usize, b: usize) -> bool {
        let key = |entry: &Entry| (entry.at, entry.request);
        key(&self.heap[a]) < key(&self.heap[b])
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.note(a);
        self.note(b);
    }

    fn note(&self, place: usize) {
        let entry = &self.heap[place];
        entry.thread.timer_places[entry.kind as usize].set(place as u32 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_requests_expire_in_order_and_cancelled_ones_never() {
        let mut timers = Timers::default();
        let threads: Vec<ThreadRef> =
            (1..=50).map(|id| ThreadRef::allocate(id, c"", std::ptr::null_mut(), 0)).collect();
        let mut wanted: std::collections::HashMap<(u64, bool), (i64, u64)> = Default::default();
        let mut random = 1u64;
        for step in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let thread = threads[(random >> 33) as usize % 50];
            let kind = if random >> 40 & 1 == 0 { Kind::Wake } else { Kind::Alarm };
            let key = (thread.id, kind == Kind::Wake);
            match random >> 50 & 3 {
                0 => {
                    let at = wanted.remove(&key).map(|(at, _)| at);
                    assert_eq!(timers.take(thread, kind), at);
                }
                1 => {
                    let first = timers
                        .expire(i64::MAX)
                        .map(|(thread, kind)| (thread.id, kind == Kind::Wake));
                    let least = wanted.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key);
                    assert_eq!(first, least);
                    least.map(|key| wanted.remove(&key));
                }
                _ => {
                    let at = (random >> 20 & 255) as i64;
                    timers.set(thread, kind, at);
                    wanted.insert(key, (at, step));
                }
            }
            assert_eq!(timers.next(), wanted.values().map(|(at, _)| *at).min());
        }
    }

    #[test]
    fn nothing_expires_before_its_time() {
        let thread = ThreadRef::allocate(1, c"", std::ptr::null_mut(), 0);
        let mut timers = Timers::default();
        timers.set(thread, Kind::Wake, 10);
        assert!(timers.expire(9).is_none());
        assert!(timers.expire(10).is_some());
        assert!(timers.next().is_none());
    }
}
