//! The threads of an engine that are ready, in a program whose threads may move: those that may, in
//! the order in which they became ready, and a count of all.
//!
//! Invariant: `thread.listed` says whether a thread is counted, and whether it is in the list;
//! `since` ascends in the list. A thread's right to move does not change while it is ready: only
//! the thread itself pins and unpins.

use crate::thread::{Listed, ThreadRef};

#[derive(Default)]
pub struct Ready {
    first: Option<ThreadRef>,
    last: Option<ThreadRef>,
    count: usize,
}

impl Ready {
    /// The thread that may move and has been ready longest.
    pub fn first(&self) -> Option<ThreadRef> {
        self.first
    }

    /// How many threads are ready, pinned ones too.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The thread is ready since the time that it carries: later than others, or it comes from
    /// another worker.
    pub fn enter(&mut self, thread: ThreadRef) {
        debug_assert_eq!(thread.listed.get(), Listed::Not);
        self.count += 1;
        if !thread.may_move() {
            thread.listed.set(Listed::Pinned);
            return;
        }
        thread.listed.set(Listed::Movable);
        let since = thread.times.since();
        let mut before = self.last;
        while let Some(later) = before.filter(|before| before.times.since() > since) {
            before = later.ready_before.get();
        }
        let behind = match before {
            Some(before) => before.ready_behind.replace(Some(thread)),
            None => self.first.replace(thread),
        };
        match behind {
            Some(behind) => behind.ready_before.set(Some(thread)),
            None => self.last = Some(thread),
        }
        thread.ready_before.set(before);
        thread.ready_behind.set(behind);
    }

    /// The thread is not ready any more, or leaves. Nothing if it was not.
    pub fn leave(&mut self, thread: ThreadRef) {
        match thread.listed.replace(Listed::Not) {
            Listed::Not => return,
            Listed::Pinned => {}
            Listed::Movable => {
                let (before, behind) = (thread.ready_before.take(), thread.ready_behind.take());
                match before {
                    Some(before) => before.ready_behind.set(behind),
                    None => self.first = behind,
                }
                match behind {
                    Some(behind) => behind.ready_before.set(before),
                    None => self.last = before,
                }
            }
        }
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: u64, since: i64) -> ThreadRef {
        let thread = ThreadRef::allocate(id, c"", std::ptr::null_mut(), 0);
        thread.times.begins(since);
        thread
    }

    fn order(ready: &Ready) -> Vec<u64> {
        let threads = std::iter::successors(ready.first(), |thread| thread.ready_behind.get());
        let forwards: Vec<u64> = threads.map(|thread| thread.id).collect();
        let threads = std::iter::successors(ready.last, |thread| thread.ready_before.get());
        let mut backwards: Vec<u64> = threads.map(|thread| thread.id).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        forwards
    }

    #[test]
    fn the_first_has_been_ready_longest_wherever_threads_enter_and_leave() {
        let times = [30, 10, 20, 10, 40];
        let threads: Vec<_> = (0..).zip(times).map(|(id, since)| thread(id, since)).collect();
        let mut ready = Ready::default();
        threads.iter().for_each(|thread| ready.enter(*thread));
        assert_eq!((order(&ready), ready.count()), (vec![1, 3, 2, 0, 4], 5));
        for (leaves, rest) in
            [(1, vec![3, 2, 0, 4]), (4, vec![3, 2, 0]), (2, vec![3, 0]), (2, vec![3, 0])]
        {
            ready.leave(threads[leaves]);
            assert_eq!((order(&ready), ready.count()), (rest.clone(), rest.len()));
        }
        ready.leave(threads[3]);
        ready.leave(threads[0]);
        assert!(order(&ready).is_empty() && ready.count() == 0);
    }

    #[test]
    fn pinned_threads_count_and_are_never_the_first() {
        let (pinned, stays, moves) = (thread(1, 1), thread(2, 2), thread(3, 3));
        pinned.pins.set(1);
        stays.stays.set(true);
        let mut ready = Ready::default();
        [pinned, stays, moves].into_iter().for_each(|thread| ready.enter(thread));
        assert_eq!((order(&ready), ready.count()), (vec![3], 3));
        ready.leave(pinned);
        assert_eq!((order(&ready), ready.count()), (vec![3], 2));
    }
}
