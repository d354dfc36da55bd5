//! The order of events.
//!
//! ```text
//! timers       by release time, then first submitted first          due when released; before every best-effort event
//! best effort  by importance, then release time, then first submitted first
//! ```
//!
//! Invariant: an event is in at most one of the two, at most once; `place` says where.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::offer::Importance;
use crate::time::{NEVER, Time};

/// Names an event of one loop. Never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub(crate) u64);

/// When an event is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Not before this time (CLOCK_MONOTONIC, nanoseconds), and as soon after it as can be.
    At(Time),
    /// When no timer is due and nothing is more important. `release` is the second key; it delays nothing.
    BestEffort { importance: Importance, release: Time },
}

impl When {
    /// Best effort, with no second key.
    pub fn best_effort(importance: Importance) -> When {
        When::BestEffort { importance, release: NEVER }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    release: Time,
    submitted: u64,
    event: EventId,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BestEffort {
    importance: Importance,
    release: Time,
    submitted: u64,
    event: EventId,
}

/// Submitted events.
#[derive(Default)]
pub struct EventQueue {
    timers: BTreeSet<Timer>,
    best_effort: BTreeSet<BestEffort>,
    place: FxHashMap<EventId, (When, u64)>,
    submissions: u64,
}

impl EventQueue {
    /// Puts the event where `when` says. Submitted to the same place before: nothing changes; to another: it moves.
    pub fn submit(&mut self, event: EventId, when: When) {
        if self.when(event) == Some(when) {
            return;
        }
        self.cancel(event);
        self.submissions += 1;
        let submitted = self.submissions;
        self.place.insert(event, (when, submitted));
        match when {
            When::At(release) => drop(self.timers.insert(Timer { release, submitted, event })),
            When::BestEffort { importance, release } => {
                self.best_effort.insert(BestEffort { importance, release, submitted, event });
            }
        }
    }

    /// Takes the event out, if it is in. Gives where it was.
    pub fn cancel(&mut self, event: EventId) -> Option<When> {
        let (when, submitted) = self.place.remove(&event)?;
        match when {
            When::At(release) => {
                self.timers.remove(&Timer { release, submitted, event });
            }
            When::BestEffort { importance, release } => {
                self.best_effort.remove(&BestEffort { importance, release, submitted, event });
            }
        }
        Some(when)
    }

    /// Where the event is, if it is submitted.
    pub fn when(&self, event: EventId) -> Option<When> {
        self.place.get(&event).map(|(when, _)| *when)
    }

    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// The timer that is released first, among those that `wanted` takes.
    pub fn first_timer(&self, wanted: impl Fn(EventId) -> bool) -> Option<(EventId, Time)> {
        self.timers.iter().find(|timer| wanted(timer.event)).map(|timer| (timer.event, timer.release))
    }

    /// The most important best-effort event, among those that `wanted` takes.
    pub fn first_best_effort(&self, wanted: impl Fn(EventId) -> bool) -> Option<(EventId, Importance)> {
        let first = self.best_effort.iter().find(|event| wanted(event.event));
        first.map(|first| (first.event, first.importance))
    }

    /// What is to happen at `now`, among the events that `wanted` takes: due timers first.
    pub fn next(&self, now: Time, wanted: impl Fn(EventId) -> bool) -> Option<EventId> {
        let due = self.first_timer(&wanted).filter(|(_, release)| *release <= now);
        due.map(|(event, _)| event).or_else(|| self.first_best_effort(wanted).map(|(event, _)| event))
    }
}
