//! Simulates a closed loop in virtual time: one thread, one hard reservation, one controller.
//!
//! Job `k` arrives at `k P`, the server's budget is filled at the same times, and the thread runs
//! at once while it has budget and work: nothing else delays it. What a job does not get waits in
//! front of the next one. It shows what a controller does, not what a kernel does.

use super::{Controller, Sample};

/// One server period. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub budget_ns: u64,
    pub used_ns: u64,
    pub demand_ns: u64,
    pub exhausted: bool,
    /// Work left over at the end.
    pub backlog_ns: u64,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    pub steps: Vec<Step>,
    /// When each job ended, jobs that did not end left out.
    pub ends_ns: Vec<u64>,
}

impl Run {
    /// Budget given by use, over the run from step `from` on.
    pub fn given_by_used(&self, from: usize) -> f64 {
        let steps = self.steps.get(from..).unwrap_or_default();
        let given: u64 = steps.iter().map(|step| step.budget_ns).sum();
        let used: u64 = steps.iter().map(|step| step.used_ns).sum();
        given as f64 / used.max(1) as f64
    }

    /// Standard deviation of the time from one job's end to the next, in nanoseconds, from job
    /// `from` on.
    pub fn deviation_ns(&self, from: usize) -> f64 {
        let ends = self.ends_ns.get(from..).unwrap_or_default();
        let times: Vec<f64> = ends.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        if times.is_empty() {
            return 0.0;
        }
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        (times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64).sqrt()
    }

    /// The step after which the thread never runs out of budget again.
    pub fn settled(&self) -> usize {
        self.steps.iter().rposition(|step| step.exhausted).map_or(0, |last| last + 1)
    }
}

/// Runs jobs of the given lengths from a first budget.
pub fn run(
    controller: &mut dyn Controller,
    period_ns: u64,
    first_budget_ns: u64,
    demands_ns: &[u64],
) -> Run {
    let mut run = Run::default();
    let (mut budget, mut now) = (first_budget_ns.clamp(1, period_ns), 0u64);
    // Work that arrived, work that was done, and where each job's work ends.
    let (mut arrived, mut done) = (0u64, 0u64);
    let mut job_ends = std::collections::VecDeque::new();
    for &demand in demands_ns {
        arrived += demand;
        job_ends.push_back(arrived);
        let used = (arrived - done).min(budget);
        while let Some(&end) = job_ends.front().filter(|&&end| end <= done + used) {
            run.ends_ns.push(now + (end - done));
            job_ends.pop_front();
        }
        done += used;
        let backlog = arrived - done;
        let exhausted = backlog > 0;
        run.steps.push(Step {
            budget_ns: budget,
            used_ns: used,
            demand_ns: demand,
            exhausted,
            backlog_ns: backlog,
        });
        budget = controller.observe(&Sample {
            used_ns: used,
            periods: 1.0,
            budget_ns: budget,
            exhausted,
            reclaims: false,
        });
        now += period_ns;
    }
    run
}
