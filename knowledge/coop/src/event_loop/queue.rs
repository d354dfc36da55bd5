//! Keeps the order of events.
//!
//! ```text
//! timers       by release time, then first submitted first
//! best effort  by importance, then release time, then first submitted first
//! ```
//!
//! A timer is due when it is released, and comes before every best-effort event.
//!
//! Each order is a heap. An event that is cancelled or moved leaves a stale entry behind, whose
//! submission is not the one in `place`.
//!
//! Invariants: each submitted event has one entry in one heap that is not stale; the top of a heap
//! is never stale.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slotmap::{SecondaryMap, new_key_type};

use crate::offer::Importance;
use crate::time::{NEVER, Time};

new_key_type! {
    /// Names an event of one loop. Not used again for another before two billion have come and gone
    /// in its place.
    pub struct EventId;
}

/// When an event is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Not before this time (CLOCK_MONOTONIC, nanoseconds), and as soon after it as can be.
    At(Time),
    /// When no timer is due and nothing is more important. `release` is the second key; it delays
    /// no event.
    BestEffort { importance: Importance, release: Time },
}

impl When {
    /// Best effort, with no second key.
    pub fn best_effort(importance: Importance) -> When {
        When::BestEffort { importance, release: NEVER }
    }
}

/// The place of an event that can run now, in the order in which events run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A timer, released at this time.
    Due(Time),
    BestEffort(Importance, Time),
}

/// An event's place in an order. No two were submitted at once, so the event itself decides
/// nothing.
type Entry<Key> = Reverse<(Key, u64, EventId)>;

/// Submitted events.
#[derive(Default)]
pub struct EventQueue {
    timers: BinaryHeap<Entry<Time>>,
    best_effort: BinaryHeap<Entry<(Importance, Time)>>,
    /// Where each submitted event is, and as which submission.
    place: SecondaryMap<EventId, (When, u64)>,
    submissions: u64,
}

/// Stale entries that are always put up with.
const STALE: usize = 16;

impl EventQueue {
    /// Puts the event where `when` says. Submitted to the same place before: nothing changes; to
    /// another: it moves.
    pub fn submit(&mut self, event: EventId, when: When) {
        if self.when(event) == Some(when) {
            return;
        }
        self.submissions += 1;
        let submitted = self.submissions;
        match when {
            When::At(release) => self.timers.push(Reverse((release, submitted, event))),
            When::BestEffort { importance, release } => {
                self.best_effort.push(Reverse(((importance, release), submitted, event)));
            }
        }
        if self.place.insert(event, (when, submitted)).is_some() {
            self.drop_stale();
        }
    }

    /// Takes the event out, if it is in. Gives where it was.
    pub fn cancel(&mut self, event: EventId) -> Option<When> {
        let (when, _) = self.place.remove(event)?;
        self.drop_stale();
        Some(when)
    }

    /// Where the event is, if it is submitted.
    pub fn when(&self, event: EventId) -> Option<When> {
        self.place.get(event).map(|(when, _)| *when)
    }

    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// The timer that is released first.
    pub fn first_timer(&self) -> Option<(Time, EventId)> {
        self.timers.peek().map(|Reverse((release, _, event))| (*release, *event))
    }

    /// The most important best-effort event.
    pub fn first_best_effort(&self) -> Option<(Importance, EventId)> {
        self.best_effort.peek().map(|Reverse(((importance, _), _, event))| (*importance, *event))
    }

    /// The event that runs at `now`: due timers first.
    pub fn next(&self, now: Time) -> Option<(Rank, EventId)> {
        match self.first_timer() {
            Some((release, event)) if release <= now => Some((Rank::Due(release), event)),
            _ => {
                let Reverse(((importance, release), _, event)) = self.best_effort.peek()?;
                Some((Rank::BestEffort(*importance, *release), *event))
            }
        }
    }

    /// After an event has left its place.
    fn drop_stale(&mut self) {
        drop_stale(&mut self.timers, &self.place);
        drop_stale(&mut self.best_effort, &self.place);
    }
}

/// Restores the invariant; and no queue grows by events that are moved again and again before they
/// come to the top.
fn drop_stale<Key: Ord>(
    heap: &mut BinaryHeap<Entry<Key>>,
    place: &SecondaryMap<EventId, (When, u64)>,
) {
    let is_live = |Reverse((_, submitted, event)): &Entry<Key>| {
        place.get(*event).is_some_and(|(_, last)| last == submitted)
    };
    while heap.peek().is_some_and(|top| !is_live(top)) {
        heap.pop();
    }
    if heap.len() > 2 * place.len() + STALE {
        heap.retain(is_live);
    }
}
