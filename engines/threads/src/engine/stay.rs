//! How long the running thread may stay, in a program that has opted into preemption.
//!
//! A stay begins when `schedule` has chosen the thread. It is over when its slice is used up
//! (`dispatch t for d`), or when the policy wants the worker to choose again (`preempt cpu at T`).
//! The thread gives way at its next safe point (preemption.rs): nothing interrupts it before.
//!
//! Invariant: in a program that has not opted in no stay is ever over, and none is looked at.
//! Units: nanoseconds of the engine's clock.

use super::{Engine, modes};
use crate::clock::{self, NEVER};
use crate::thread::ThreadRef;
use attune_abi::Event;

pub struct Stay {
    /// When the slice is used up; NEVER: the policy has named none.
    ends: i64,
}

impl Stay {
    pub const ENDLESS: Stay = Stay { ends: NEVER };

    /// `slice` as the policy says it: negative for none.
    fn new(slice: i64, now: i64) -> Stay {
        Stay { ends: if slice < 0 { NEVER } else { now.saturating_add(slice) } }
    }

    #[inline]
    pub fn is_used_up(&self, now: i64) -> bool {
        now >= self.ends
    }

    /// NEVER: it has no end.
    fn left(&self, now: i64) -> i64 {
        if self.ends == NEVER { NEVER } else { (self.ends - now).max(0) }
    }
}

impl Engine {
    /// Asks the scheduler for the next thread, which then begins its stay.
    pub(super) fn schedule_a_stay(&mut self, now: i64) -> Option<ThreadRef> {
        self.scheduler.forget_preempt();
        let chosen = self.scheduler.schedule(now);
        self.stay = Stay::new(self.scheduler.slice(), now);
        // No thread runs while `schedule` chooses, and of an idle CPU `preempt` asks nothing later.
        if self.scheduler.chooses_again_at() > now {
            self.scheduler.forget_preempt();
        }
        chosen
    }

    /// At a safe point: tells the policy what has come from outside, and says whether the running
    /// thread is to give way. Reads the clock only where there is something to compare with it.
    pub fn stay_is_over(&mut self) -> bool {
        let ends = |engine: &Engine| engine.stay.ends.min(engine.scheduler.chooses_again_at());
        if ends(self) != NEVER || self.may_hear() {
            let now = clock::now();
            // A handler may ask for the CPU now.
            self.raise_pending(now);
            if now >= ends(self) {
                return true;
            }
        }
        self.current.suspend_next.get()
    }

    /// How long the running thread may still run: what the policy answers, or else what is left of
    /// its slice. NEVER: its stay has no end.
    pub fn slice_left(&mut self) -> i64 {
        if !modes::preemption() {
            return NEVER;
        }
        let now = clock::now();
        let left = self.stay.left(now);
        self.scheduler.ask(Event::TimesliceLeft, None, left, now).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_is_used_up_when_its_slice_is() {
        let stay = Stay::new(5, 100);
        assert_eq!((stay.left(100), stay.left(104), stay.left(200)), (5, 1, 0));
        assert!(!stay.is_used_up(104) && stay.is_used_up(105));
        assert!(Stay::new(0, 100).is_used_up(100));
    }

    #[test]
    fn without_a_slice_or_with_an_endless_one_no_stay_is_used_up() {
        for stay in [Stay::ENDLESS, Stay::new(-1, 100), Stay::new(i64::MAX, 100)] {
            assert!(!stay.is_used_up(i64::MAX - 1));
            assert_eq!(stay.left(i64::MAX - 1), NEVER);
        }
    }
}
