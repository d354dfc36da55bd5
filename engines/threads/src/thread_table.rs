//! Threads by their numbers: those of this worker, and those that are away from home.
//!
//! Numbers grow and are never used again, so that an old number names no new thread. With one
//! worker, the slot of number n is `(n - 1) % slots`; a number whose slot is taken is passed over,
//! so no two threads ever share one, and doubling the slots keeps it so.
//!
//! A thread that was created here keeps its slot as long as its block lives, on whichever worker it
//! is: here its `at` can be looked up. A worker's threads that were created elsewhere are guests.
//!
//! Invariant: `slots` is a power of two and at most half full. Lookup is one comparison; numbering
//! is O(1) on average.

use std::collections::HashMap;

use crate::thread::{ThreadId, ThreadRef};

pub struct ThreadTable {
    slots: Vec<Option<ThreadRef>>,
    next: ThreadId,
    used: usize,
    /// The lowest so many bits of `number - 1` are the same for all numbers of this table: they say
    /// which worker the threads belong to.
    worker_bits: u32,
    guests: HashMap<ThreadId, ThreadRef>,
}

impl ThreadTable {
    pub fn new(worker: usize, worker_bits: u32) -> ThreadTable {
        let next = worker as ThreadId + 1;
        ThreadTable { slots: vec![None; 64], next, used: 0, worker_bits, guests: HashMap::new() }
    }

    /// A number for the thread that is inserted next.
    pub fn next_id(&mut self) -> ThreadId {
        if 2 * (self.used + 1) > self.slots.len() {
            self.grow();
        }
        while self.slots[self.slot(self.next)].is_some() {
            self.next += 1 << self.worker_bits;
        }
        self.next
    }

    /// `thread` carries the number that [`ThreadTable::next_id`] gave last.
    pub fn insert(&mut self, thread: ThreadRef) {
        let slot = self.slot(thread.id);
        self.slots[slot] = Some(thread);
        self.used += 1;
        self.next = thread.id + (1 << self.worker_bits);
    }

    pub fn remove(&mut self, thread: ThreadRef) {
        let slot = self.slot(thread.id);
        self.slots[slot] = None;
        self.used -= 1;
    }

    /// The thread of that number, if the worker has it.
    pub fn get(&self, id: ThreadId) -> Option<ThreadRef> {
        match self.created_here(id) {
            Some(thread) => (!thread.is_away.get()).then_some(thread),
            None if self.guests.is_empty() => None,
            None => self.guests.get(&id).copied(),
        }
    }

    /// The thread of that number, if it was created here and another worker has it.
    pub fn away(&self, id: ThreadId) -> Option<ThreadRef> {
        self.created_here(id).filter(|thread| thread.is_away.get())
    }

    /// All threads that the worker has, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = ThreadRef> {
        let own = self.slots.iter().flatten().copied().filter(|thread| !thread.is_away.get());
        own.chain(self.guests.values().copied())
    }

    /// All threads that were created here and that another worker has.
    pub fn all_away(&self) -> impl Iterator<Item = ThreadRef> {
        self.slots.iter().flatten().copied().filter(|thread| thread.is_away.get())
    }

    /// Whether the thread, which the worker has, was created elsewhere.
    pub fn is_guest(&self, thread: ThreadRef) -> bool {
        !self.guests.is_empty() && self.guests.contains_key(&thread.id)
    }

    /// The worker has the thread no longer, which lives on.
    pub fn goes(&mut self, thread: ThreadRef) {
        if self.guests.remove(&thread.id).is_none() {
            thread.is_away.set(true);
        }
    }

    /// The worker has the thread from now on.
    pub fn comes(&mut self, thread: ThreadRef) {
        match self.away(thread.id) {
            Some(thread) => thread.is_away.set(false),
            None => _ = self.guests.insert(thread.id, thread),
        }
    }

    fn created_here(&self, id: ThreadId) -> Option<ThreadRef> {
        self.slots[self.slot(id)].filter(|thread| thread.id == id)
    }

    pub fn slots(&self) -> &[Option<ThreadRef>] {
        &self.slots
    }

    fn slot(&self, id: ThreadId) -> usize {
        (id.wrapping_sub(1) >> self.worker_bits) as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        let doubled = vec![None; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, doubled);
        for thread in old.into_iter().flatten() {
            let slot = self.slot(thread.id);
            self.slots[slot] = Some(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(table: &mut ThreadTable) -> ThreadRef {
        let thread = ThreadRef::allocate(table.next_id(), c"", std::ptr::null_mut(), 0);
        table.insert(thread);
        thread
    }

    fn drop_thread(table: &mut ThreadTable, thread: ThreadRef) {
        table.remove(thread);
        // SAFETY: the table was its only holder.
        unsafe { thread.free() };
    }

    #[test]
    fn a_guest_and_a_thread_that_is_away_are_found_where_they_are() {
        let (mut here, mut there) = (ThreadTable::new(0, 1), ThreadTable::new(1, 1));
        let moves = add(&mut here);
        let all = |table: &ThreadTable| table.iter().map(|thread| thread.id).collect::<Vec<_>>();
        here.goes(moves);
        there.comes(moves);
        assert!(here.get(moves.id).is_none() && here.away(moves.id) == Some(moves));
        assert!(there.get(moves.id) == Some(moves) && there.away(moves.id).is_none());
        assert_eq!((all(&here), all(&there)), (vec![], vec![moves.id]));
        assert!(there.is_guest(moves) && here.all_away().eq([moves]));
        let next = add(&mut here);
        assert_ne!(next.id, moves.id);
        there.goes(moves);
        here.comes(moves);
        assert!(here.get(moves.id) == Some(moves) && !here.is_guest(moves));
        assert!(there.get(moves.id).is_none() && all(&there).is_empty());
        drop_thread(&mut here, moves);
        drop_thread(&mut here, next);
    }

    #[test]
    fn numbers_are_never_used_again_and_lookup_stays_right() {
        let mut table = ThreadTable::new(0, 0);
        let stay: Vec<ThreadRef> = (0..300).map(|_| add(&mut table)).collect();
        let mut last = stay[299].id;
        for _ in 0..5000 {
            let thread = add(&mut table);
            assert!(thread.id > last);
            last = thread.id;
            assert!(table.get(last) == Some(thread));
            drop_thread(&mut table, thread);
            assert!(table.get(last).is_none());
        }
        assert!(stay.iter().all(|thread| table.get(thread.id) == Some(*thread)));
        assert_eq!(table.iter().count(), 300);
        stay.into_iter().for_each(|thread| drop_thread(&mut table, thread));
    }
}
