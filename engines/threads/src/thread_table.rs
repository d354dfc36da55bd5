//! Threads by their numbers.
//!
//! Numbers grow and are never used again, so that an old number names no new thread. With one
//! worker, the slot of number n is `(n - 1) % slots`; a number whose slot is taken is passed over,
//! so no two threads ever share one, and doubling the slots keeps it so.
//!
//! Invariant: `slots` is a power of two and at most half full. Lookup is one comparison; numbering
//! is O(1) on average.

use crate::thread::{ThreadId, ThreadRef};

pub struct ThreadTable {
    slots: Vec<Option<ThreadRef>>,
    next: ThreadId,
    used: usize,
    /// The lowest so many bits of `number - 1` are the same for all numbers of this table: they say
    /// which worker the threads belong to.
    worker_bits: u32,
}

impl ThreadTable {
    pub fn new(worker: usize, worker_bits: u32) -> ThreadTable {
        ThreadTable { slots: vec![None; 64], next: worker as ThreadId + 1, used: 0, worker_bits }
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

    pub fn get(&self, id: ThreadId) -> Option<ThreadRef> {
        self.slots[self.slot(id)].filter(|thread| thread.id == id)
    }

    /// All threads, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = ThreadRef> {
        self.slots.iter().flatten().copied()
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
