//! When the engine reads its clock: at every switch where somebody needs the time of each, else
//! only while there is something to compare it with. A reading costs as much as half a switch.
//!
//! Invariant: how long threads run and are ready is counted where every switch has its time, and
//! nowhere else. Units: nanoseconds of the engine's clock.

use super::{Engine, modes};
use crate::clock;

/// What of the time an engine needs to know.
pub(super) struct Time {
    /// Every switch reads the clock.
    pub of_every_switch: bool,
    /// Somebody may ask how long threads have run and have been ready.
    is_watched: bool,
    /// The last reading.
    read: i64,
}

impl Time {
    pub fn new(is_watched: bool, now: i64) -> Time {
        Time { of_every_switch: true, is_watched, read: now }
    }
}

impl Engine {
    /// The time as far as somebody needs it; else that of the last reading.
    #[inline]
    pub(super) fn time(&mut self) -> i64 {
        let compares = self.timers.next().is_some() || self.descriptors.waiting() > 0;
        if self.time.of_every_switch || compares {
            self.read_clock();
        }
        self.time.read
    }

    #[inline(never)]
    fn read_clock(&mut self) {
        self.time.read = clock::now();
    }

    /// Finds out anew whether a switch has to read the clock.
    pub(super) fn look_around(&mut self) {
        let before = self.time.of_every_switch;
        self.time.of_every_switch = self.scheduler.cluster().is_some()
            || self.trace.is_some()
            || modes::any()
            || self.scheduler.tells_time()
            || self.time.is_watched;
        if self.time.of_every_switch && !before {
            let now = self.time();
            self.threads.iter().for_each(|thread| thread.times.begins(now));
        }
    }
}
