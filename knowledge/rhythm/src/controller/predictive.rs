//! Ours: jumps at once, knows patterns.
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
//! *Chasing*: the thread ran out of budget, so its use says nothing about its demand; the budget grows by a factor each period.
//! *Catching up*: the budget sufficed, for the job and for what was left over; it stays once more. What was used in between is now
//! known in sum: after a short chase its first job was the long one, after a long chase all of them were.
//! *Steady*: uses are jobs. They are remembered and predicted from: by the same place in the pattern where they repeat every `g` jobs (a
//! group of pictures), else by a high quantile. A job that began late is seen as next to nothing in one period and together with its successor in
//! another: what it left over is no part of that one's length. When the last few jobs all exceed the prediction or stay far below what is
//! remembered, demand has moved and older jobs are forgotten.

use std::collections::VecDeque;

use super::{Controller, Sample, quantile, within};

/// Jobs that are remembered: two groups of pictures of the usual length, and some.
const JOBS: usize = 40;
/// Jobs of which the quantile is taken.
const RECENT: usize = 16;
const QUANTILE: f64 = 0.95;
/// What is given on top of a prediction: by the many jobs that a quantile is taken of, and by the two that a pattern has at a place.
const SPREAD: f64 = 0.04;
const PATTERN_SPREAD: f64 = 0.06;
/// Growth of the budget in each period in which it was not enough.
const CHASE: f64 = 2.0;
/// A use below this share of the usual job is that of a job that is late.
const LATE: f64 = 0.5;
/// Jobs of a chase that one long job explains.
const SHORT: usize = 3;
/// Jobs in a row that show that demand has moved.
const MOVED: usize = 3;
/// The mean error of a pattern, as a share of the mean job, and of the error of expecting the mean job each time.
const PATTERN_ERROR: f64 = 0.1;
const PATTERN_GAIN: f64 = 0.4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Steady,
    Chasing,
    CatchingUp,
}

#[derive(Clone, Debug)]
pub struct Predictive {
    period_ns: u64,
    jobs: VecDeque<f64>,
    state: State,
    /// Sum and number of the uses since the budget was exhausted.
    chased: (f64, usize),
    /// What the last job left over, if it was late.
    left_over: f64,
}

impl Predictive {
    pub fn new(period_ns: u64) -> Predictive {
        Predictive {
            period_ns,
            jobs: VecDeque::new(),
            state: State::Steady,
            chased: (0.0, 0),
            left_over: 0.0,
        }
    }

    fn chase(&mut self, use_ns: f64) {
        self.chased.0 += use_ns;
        self.chased.1 += 1;
    }

    /// Divides what was used during a chase among its jobs, and remembers them.
    fn settle_chase(&mut self) {
        let (sum, count) = std::mem::take(&mut self.chased);
        let usual = self.usual();
        let sum = without(std::mem::take(&mut self.left_over), sum, usual * count as f64);
        let long = sum - usual * (count - 1) as f64;
        if count <= SHORT && !self.jobs.is_empty() && long > usual {
            self.remember(long);
            (1..count).for_each(|_| self.remember(usual));
        } else {
            (0..count.min(JOBS)).for_each(|_| self.remember(sum / count as f64));
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
        let (mut older, mut newest) = ((f64::MAX, 0.0f64), (f64::MAX, 0.0f64));
        for (age, &job) in self.jobs.iter().rev().enumerate() {
            let range = if age < MOVED { &mut newest } else { &mut older };
            *range = (range.0.min(job), range.1.max(job));
        }
        // Above all that is remembered, or below it: not a pattern but another demand.
        if newest.0 > 1.1 * older.1 || newest.1 < 0.8 * older.0 {
            self.jobs.drain(..self.jobs.len() - MOVED);
        }
    }

    /// The next job, if jobs repeat: as at the same place of the last two rounds, and as much more as rounds differ.
    fn pattern(&self) -> Option<f64> {
        let count = self.jobs.len();
        let mean = self.jobs.iter().sum::<f64>() / count as f64;
        let flat = self.jobs.iter().map(|job| (job - mean).abs()).sum::<f64>() / count as f64;
        let error = |round: usize| {
            let pairs = (round..count).map(|job| (self.jobs[job] - self.jobs[job - round]).abs());
            pairs.sum::<f64>() / (count - round) as f64
        };
        let found =
            (2..=count / 2).find(|&round| error(round) < (PATTERN_ERROR * mean).min(PATTERN_GAIN * flat));
        found.map(|round| self.jobs[count - round].max(self.jobs[count - 2 * round]) + error(round))
    }

    /// The next budget while demand is steady.
    fn steady(&self) -> f64 {
        let recent = self.jobs.iter().rev().take(RECENT).copied();
        match self.pattern() {
            Some(job) => (1.0 + PATTERN_SPREAD) * job,
            None => (1.0 + SPREAD) * quantile(recent, QUANTILE),
        }
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
            State::Chasing => self.chase(use_ns),
            State::CatchingUp => {
                self.chase(use_ns);
                self.settle_chase();
            }
            State::Steady => self.settle(use_ns),
        }
        let wish = match self.state {
            State::Chasing => CHASE * budget.max(use_ns),
            State::CatchingUp => budget,
            State::Steady => self.steady(),
        };
        within(wish, use_ns, self.period_ns)
    }
}
