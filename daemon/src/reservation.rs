//! Turns the budget of a beat into the reservation that a supervisor asks the kernel for.
//!
//! *A quarter of the beat.* Among reservations the earliest deadline goes first, and the deadline
//! of a reservation is its period. With the whole beat as period, a job would begin after the jobs
//! of all shorter reservations. A quarter of the budget in each quarter of the beat is the same
//! bandwidth, and enough for the job, since the beat is a whole number of periods; but the job
//! begins with a deadline that is near. A deadline before the end of the period would do that as
//! well. But the kernel stops a thread that wakes between the two until the period ends: a thread
//! that sleeps within its job, or wakes a little early.
//!
//! *Unreserved bandwidth.* A job that is longer than its budget goes on with bandwidth that is not
//! reserved (SCHED_FLAG_RECLAIM), instead of waiting for the next period. So budgets need not
//! provide for the longest job. This is meant for the odd long job: a thread that is given less
//! than it wants, because of the bound or the kernel, keeps to its budget.

use attune_linux::scheduling::{Attributes, RECLAIM, RESET_ON_FORK};
use attune_linux::time::MILLISECOND;

/// Periods in a beat, at most.
const PARTS: u64 = 4;
/// A period is no shorter: many kernels look whether a budget is used up at their ticks alone,
/// every 1 to 4 ms.
const SHORTEST: u64 = 4 * MILLISECOND;

/// CPU time that is reserved for each beat. In ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub budget: u64,
    /// The time from beat to beat.
    pub period: u64,
    /// It may use bandwidth that is not reserved.
    pub reclaims: bool,
}

impl Reservation {
    /// Share of one CPU.
    pub fn share(&self) -> f64 {
        self.budget as f64 / self.period as f64
    }

    pub fn attributes(&self) -> Attributes {
        let parts = (self.period / SHORTEST).clamp(1, PARTS);
        let flags = if self.reclaims { RESET_ON_FORK | RECLAIM } else { RESET_ON_FORK };
        Attributes::reservation(self.budget.div_ceil(parts), self.period / parts).with_flags(flags)
    }

    /// Whether a beat of that period may be an echo of the budget: a job that is longer than one
    /// part goes on when the next part comes.
    pub fn echoes(&self, period: u64) -> bool {
        let part = self.attributes().period;
        part < self.period && part.abs_diff(period) * 100 <= part
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_beat_has_its_budget_in_a_whole_number_of_periods(
            period in 100_000u64..4_000_000_000,
            share in 0.001..0.9f64,
        ) {
            let budget = (share * period as f64) as u64;
            let given = Reservation { budget, period, reclaims: false }.attributes();
            let parts = period / given.period;
            prop_assert!((1..=PARTS).contains(&parts) && period - parts * given.period < parts);
            prop_assert!(parts == 1 || given.period >= SHORTEST);
            // No less than was asked for, and no more but for rounding.
            prop_assert!(given.runtime * parts >= budget && given.runtime * parts < budget + parts);
            prop_assert_eq!(given.deadline, given.period);
        }

        #[test]
        fn parts_of_a_beat_are_its_echoes_and_the_beat_is_not(
            period in 8_000_000u64..4_000_000_000,
        ) {
            let reservation = Reservation { budget: period / 10, period, reclaims: false };
            prop_assert!(reservation.echoes(reservation.attributes().period));
            prop_assert!(!reservation.echoes(period));
        }
    }
}
