//! Tells the times of a program's beats, and when the supervisor looks at what the program used.
//!
//! A job's CPU time is known when the job is over, so looks are taken between jobs: shortly before
//! the next beat, when this job has ended and the next one has not begun. Then each sample holds
//! whole jobs. Looked at in the middle of one, two samples would hold one and a half and a half of
//! it, and a budget by the greater would be half as large again as the job.
//!
//! Times are in ns of CLOCK_MONOTONIC.

/// A look comes so long before a beat, as a share of the period.
const BEFORE: f64 = 0.1;
/// A look that comes later than this after its time, as a share of the period, would see a part of
/// the next job.
const LATE: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub period: u64,
    /// When one of the beats was.
    pub beat: u64,
}

impl Pace {
    /// The time that has passed at `now` since the last moment to look.
    fn since_time_to_look(&self, now: u64) -> u64 {
        let period = i128::from(self.period.max(1));
        let first = i128::from(self.beat) - (BEFORE * self.period as f64) as i128;
        (i128::from(now) - first).rem_euclid(period) as u64
    }

    /// Whether a look at `now` lies between two jobs.
    pub fn is_between_jobs(&self, now: u64) -> bool {
        self.since_time_to_look(now) as f64 <= LATE * self.period as f64
    }

    /// The next time to look after `now` that is about as far away as `least`, and at least half of
    /// it.
    pub fn time_to_look(&self, now: u64, least: u64) -> u64 {
        let period = self.period.max(1);
        now + period * least.div_ceil(period).max(1) - self.since_time_to_look(now)
    }

    /// Periods in so much time: a whole number, if looks between jobs are so far apart.
    pub fn periods(&self, elapsed: u64) -> f64 {
        let periods = elapsed as f64 / self.period.max(1) as f64;
        let whole = periods.round().max(1.0);
        if (periods - whole).abs() <= LATE { whole } else { periods }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { period: 40_000, beat: 1_000_000 };

    #[test]
    fn looks_lie_before_beats() {
        for now in [0, 990_000, 995_999, 996_000, 1_000_001, 1_030_000, 77_777_777] {
            let next = PACE.time_to_look(now, 20_000);
            assert!(next > now && next - now <= 40_000, "{next} after {now}");
            assert!(PACE.is_between_jobs(next) && PACE.is_between_jobs(next + 3_900));
            assert!(!PACE.is_between_jobs(next + 4_100) && !PACE.is_between_jobs(next - 1));
            assert_eq!((next + 4_000) % 40_000, PACE.beat % 40_000);
        }
        let often = Pace { period: 7_000, beat: 3 };
        let next = often.time_to_look(50_000, 20_000);
        assert!((14_000..=21_000).contains(&(next - 50_000)), "{next}");
    }

    #[test]
    fn late_looks_see_whole_jobs_still() {
        assert_eq!(PACE.periods(41_500), 1.0);
        assert_eq!(PACE.periods(78_500), 2.0);
        assert_eq!(PACE.periods(60_000), 1.5);
    }
}
