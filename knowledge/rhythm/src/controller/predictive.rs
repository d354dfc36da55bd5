//! Our own controller jumps to a new demand at once and predicts patterns.
//!
//! ```text
//!              exhausted              exhausted
//!   steady ───────────────▶ chasing ──────────────┐
//!     ▲                     (budget x 2) ◀────────┤
//!     │ enough                 │                  │ exhausted
//!     │                        ▼ enough           │
//!     └──────────────────── catching up ──────────┘
//! ```
//!
//! *Chasing*: the thread ran out of budget, so its use says nothing about its demand; the budget
//! grows by a factor each period. *Catching up*: the budget sufficed, for the job and for what was
//! left over. What was used in between is now known in sum; the next job has as much as one of them
//! on average, or the usual. *Steady*: uses are jobs. The first one after a chase tells how its sum
//! is divided: all jobs were long if this one is, else the first alone; where jobs repeat, as they
//! did a round before. Jobs are remembered and predicted from: by the same place in the pattern
//! where they repeat every `g` jobs (a group of pictures), else by the length that costs least, too
//! much given to most jobs weighed against too little to the longest; so a job that is long once in
//! a while is chased, not provided for. On top comes a part of how far the jobs spread, the smaller
//! the more are known. A job that began late is seen as next to nothing in one period and together
//! with its successor in another: what it left over is no part of that one's length. When the last
//! few jobs all exceed what is remembered or stay far below it, demand has moved: older jobs are
//! taken as having been that much longer or shorter, since how they vary is not forgotten.

use std::collections::VecDeque;

use super::{Controller, Sample, quantile, within};

/// Jobs that are remembered: two groups of pictures of the usual length, and some.
const JOBS: usize = 40;
/// What a job that exceeds its budget costs, in mean jobs: the chase, and that it ends a period
/// late; or, where it may go on with unreserved CPU time, that there may be none.
const EXCESS: f64 = 3.0;
const RECLAIMED: f64 = 0.5;
/// On top of the longest job that is provided for: so many times an `n`th of how far it lies above
/// the usual one, `n` jobs being known, and of this share of it, since few that are known may be
/// alike by chance.
const MARGIN: f64 = 6.0;
const UNKNOWN: f64 = 0.04;
/// On top of what a pattern has at a place.
const PATTERN_SPREAD: f64 = 0.08;
/// Growth of the budget in each period in which it was not enough.
const CHASE: f64 = 2.0;
/// The budget of the job after a chase, by the mean of those in it.
const RECOVERY: f64 = 1.15;
/// Uses after an exhausted budget that are no more than so many times that budget are jobs.
const LITTLE_MORE: f64 = 1.1;
/// A use below this share of the usual job is that of a job that is late.
const LATE: f64 = 0.5;
/// Jobs in a row that show that demand has moved.
const MOVED: usize = 3;
/// The mean error of a pattern, as a share of the mean job, and of the error of expecting the mean
/// job each time.
const PATTERN_ERROR: f64 = 0.1;
const PATTERN_GAIN: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Steady,
    Chasing,
    CatchingUp,
}

/// Uses in a row of which no one is a job's.
#[derive(Clone, Copy, Debug, Default)]
struct Chase {
    first: f64,
    sum: f64,
    count: usize,
}

#[derive(Clone, Debug)]
pub struct Predictive {
    period_ns: u64,
    jobs: VecDeque<f64>,
    state: State,
    /// The uses since the budget was exhausted.
    chased: Chase,
    /// What the last job left over, if it was late.
    left_over: f64,
}

impl Predictive {
    pub fn new(period_ns: u64) -> Predictive {
        Predictive {
            period_ns,
            jobs: VecDeque::new(),
            state: State::Steady,
            chased: Chase::default(),
            left_over: 0.0,
        }
    }

    fn chase(&mut self, use_ns: f64) {
        if self.chased.count == 0 {
            self.chased.first = use_ns;
        }
        self.chased.sum += use_ns;
        self.chased.count += 1;
    }

    /// Divides what was used during a chase among its jobs, and remembers them. `next`: the first
    /// job after it.
    fn settle_chase(&mut self, next: f64) {
        let Chase { first, sum, count } = std::mem::take(&mut self.chased);
        let usual = self.usual();
        let sum = without(std::mem::take(&mut self.left_over), sum, usual * count as f64);
        let each = sum / count as f64;
        if let Some(round) = self.round() {
            let known = self.jobs.len();
            let place = |job: usize| self.jobs[known - round + job % round];
            let places: Vec<f64> = (0..count.min(JOBS)).map(place).collect();
            let longer = each * places.len() as f64 / places.iter().sum::<f64>().max(1.0);
            places.into_iter().for_each(|place| self.remember(place * longer));
        } else if self.jobs.is_empty() || (next - each).abs() < (next - usual).abs() {
            (0..count.min(JOBS)).for_each(|_| self.remember(each));
        } else {
            let others = (sum - first) / (count - 1).max(1) as f64;
            // The first needed all it had, and little more if nothing is left for the others to
            // explain.
            let (long, others) = if others <= LITTLE_MORE * first {
                (first, others)
            } else {
                (sum - usual * (count - 1) as f64, usual)
            };
            self.remember(long);
            (1..count.min(JOBS)).for_each(|_| self.remember(others));
        }
    }

    fn usual(&self) -> f64 {
        quantile(self.jobs.iter().copied(), 0.5)
    }

    /// Remembers what was used in a period in which the budget sufficed.
    fn settle(&mut self, use_ns: f64) {
        let usual = self.usual();
        let left_over = std::mem::take(&mut self.left_over);
        if use_ns < LATE * usual {
            self.left_over = usual - use_ns;
        }
        self.remember(without(left_over, use_ns, usual));
    }

    fn remember(&mut self, job: f64) {
        self.jobs.push_back(job);
        if self.jobs.len() > JOBS {
            self.jobs.pop_front();
        }
        if self.jobs.len() <= 2 * MOVED {
            return;
        }
        let count = self.jobs.len();
        let (older, newest) = self.jobs.make_contiguous().split_at_mut(count - MOVED);
        let range = |jobs: &[f64]| {
            jobs.iter().fold((f64::MAX, 0.0f64), |(low, high), job| (low.min(*job), high.max(*job)))
        };
        let (before, now) = (range(older), range(newest));
        // Above all that is remembered, or below it: not a pattern but another demand.
        if now.0 > 1.1 * before.1 || now.1 < 0.8 * before.0 {
            let mean = |jobs: &[f64]| jobs.iter().sum::<f64>() / jobs.len() as f64;
            let change = mean(newest) / mean(older).max(1.0);
            older.iter_mut().for_each(|job| *job *= change);
        }
    }

    /// After how many jobs they repeat, if they do.
    fn round(&self) -> Option<usize> {
        let count = self.jobs.len();
        let mean = self.jobs.iter().sum::<f64>() / count as f64;
        let flat = self.jobs.iter().map(|job| (job - mean).abs()).sum::<f64>() / count as f64;
        (2..=count / 2)
            .find(|&round| self.error(round) < (PATTERN_ERROR * mean).min(PATTERN_GAIN * flat))
    }

    /// How much jobs differ from those a round before, on average.
    fn error(&self, round: usize) -> f64 {
        let count = self.jobs.len();
        let pairs = (round..count).map(|job| (self.jobs[job] - self.jobs[job - round]).abs());
        pairs.sum::<f64>() / (count - round) as f64
    }

    /// The next budget while demand is steady.
    fn steady(&self, excess: f64) -> f64 {
        let Some(round) = self.round() else { return self.worth_it(excess) };
        // As at the same place of the last two rounds, and as much more as rounds differ.
        let count = self.jobs.len();
        let place = self.jobs[count - round].max(self.jobs[count - 2 * round]);
        (1.0 + PATTERN_SPREAD) * (place + self.error(round))
    }

    /// The length that costs least: more budget for each job, or being exceeded by the jobs that
    /// are longer. `excess`: the cost of that.
    fn worth_it(&self, excess: f64) -> f64 {
        let mut jobs: Vec<f64> = self.jobs.iter().copied().collect();
        jobs.sort_by(|one, other| other.total_cmp(one));
        let count = jobs.len() as f64;
        let mean = jobs.iter().sum::<f64>() / count;
        let cost = |longer: usize| jobs[longer] + excess * mean * longer as f64 / count;
        let Some(best) = (0..jobs.len()).min_by(|one, other| cost(*one).total_cmp(&cost(*other)))
        else {
            return 0.0;
        };
        let longest = jobs[best];
        longest + MARGIN * (longest - self.usual() + UNKNOWN * longest) / (count + 1.0)
    }
}

/// A use above what is usual, without what was left over for it.
fn without(left_over: f64, use_ns: f64, usual: f64) -> f64 {
    if use_ns > usual { (use_ns - left_over).max(usual) } else { use_ns }
}

impl Controller for Predictive {
    fn observe(&mut self, sample: &Sample) -> u64 {
        let use_ns = sample.use_ns();
        let budget = sample.budget_ns as f64;
        self.state = match (self.state, sample.exhausted) {
            (_, true) => State::Chasing,
            (State::Chasing, false) => State::CatchingUp,
            (State::CatchingUp | State::Steady, false) => State::Steady,
        };
        match self.state {
            State::Chasing | State::CatchingUp => self.chase(use_ns),
            State::Steady => {
                if self.chased.count > 0 {
                    self.settle_chase(use_ns);
                }
                self.settle(use_ns);
            }
        }
        let steady = self.steady(if sample.reclaims { RECLAIMED } else { EXCESS });
        let wish = match self.state {
            State::Chasing => CHASE * budget.max(use_ns),
            State::CatchingUp => {
                (RECOVERY * self.chased.sum / self.chased.count as f64).max(steady)
            }
            State::Steady => steady,
        };
        within(wish, use_ns, self.period_ns)
    }
}
