//! When the policy is started again after an end.
//!
//! - The kernel threw it out: after 1 s, twice as long each time, 64 s at most. It is 1 s again
//!   once a run has lasted for a minute.
//! - It could not start (a wrong text, no compiler, ..): after 5 s, as often as that happens.
//! - Its process was killed, or ended: at once; after 5 s if that happened more than five times
//!   before it scheduled.

use attune_linux::time::{MILLISECOND, SECOND, Time};

use super::Cause;

const FIRST: Time = SECOND;
const LONGEST: Time = 64 * SECOND;
/// A run that lasted for so long was a good one.
const GOOD: Time = 60 * SECOND;
const UNSTARTED: Time = 5 * SECOND;
const AT_ONCE: Time = 50 * MILLISECOND;
/// Ends without a start that are taken for accidents.
const ACCIDENTS: u32 = 5;

#[derive(Debug, Default)]
pub struct Pace {
    /// Ends by the kernel without a good run in between.
    thrown_out: u32,
    /// Ends without a start, one after the other.
    unstarted: u32,
}

impl Pace {
    /// How long to wait. `ran`: for how long it scheduled; None: it never did.
    pub fn after(&mut self, cause: Cause, ran: Option<Time>) -> Time {
        if ran.is_some_and(|ran| ran >= GOOD) {
            self.thrown_out = 0;
        }
        self.unstarted = if ran.is_some() { 0 } else { self.unstarted + 1 };
        match cause {
            Cause::Kernel => {
                let delay = FIRST << self.thrown_out.min(6);
                self.thrown_out += 1;
                delay.min(LONGEST)
            }
            Cause::Start => UNSTARTED,
            Cause::Asked | Cause::Killed if self.unstarted > ACCIDENTS => UNSTARTED,
            Cause::Asked | Cause::Killed => AT_ONCE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_only_when_the_kernel_ended_the_policy() {
        let mut pace = Pace::default();
        let short = Some(3 * SECOND);
        let delays: Vec<Time> = (0..9).map(|_| pace.after(Cause::Kernel, short) / SECOND).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        for cause in [Cause::Killed, Cause::Asked] {
            assert!((0..9).all(|_| pace.after(cause, short) == AT_ONCE));
        }
        assert!((0..9).all(|_| pace.after(Cause::Start, None) == UNSTARTED));
    }

    #[test]
    fn a_good_run_is_forgiven_what_was_before() {
        let mut pace = Pace::default();
        for _ in 0..5 {
            pace.after(Cause::Kernel, Some(SECOND));
        }
        assert_eq!(pace.after(Cause::Kernel, Some(GOOD)), FIRST);
    }

    #[test]
    fn a_process_that_dies_before_it_schedules_is_not_started_in_a_loop() {
        let mut pace = Pace::default();
        let delays: Vec<Time> = (0..7).map(|_| pace.after(Cause::Killed, None)).collect();
        assert_eq!(delays[..5], [AT_ONCE; 5]);
        assert_eq!(delays[5..], [UNSTARTED; 2]);
        pace.after(Cause::Killed, Some(SECOND));
        assert_eq!(pace.after(Cause::Killed, None), AT_ONCE);
    }
}
