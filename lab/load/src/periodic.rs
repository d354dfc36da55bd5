//! Periodic processes: each is released once a period, computes, and should be done before its next release.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::{clock, hogs, numbers};

/// One of them, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub period: u64,
    pub work: u64,
}

impl std::str::FromStr for Task {
    type Err = String;

    /// `PERIOD,WORK` in microseconds.
    fn from_str(text: &str) -> Result<Task, String> {
        let numbers = text.split_once(',').and_then(|(period, work)| {
            Some((period.trim().parse::<u64>().ok()?, work.trim().parse::<u64>().ok()?))
        });
        let fits = |(period, work): &(u64, u64)| *work < *period && *period <= 10_000_000;
        let (period, work) = numbers
            .filter(fits)
            .ok_or_else(|| format!("`{text}`: PERIOD,WORK in microseconds is meant, such as 10000,500"))?;
        Ok(Task { period: period * 1000, work: work * 1000 })
    }
}

/// Runs them beside hogs for `time`, after half a second to find their balance. A job's response is the time from its release to its
/// end; one that is longer than the period has missed its deadline, and the next begins late.
pub fn run(tasks: &[Task], hog_count: usize, time: Duration) -> Result<Value> {
    ensure!(!tasks.is_empty(), "at least one task");
    let time = time.as_nanos() as u64;
    let room = |task: &Task| 1 + (time / task.period) as usize + 1;
    let noted = tasks.iter().map(|task| child::shared(room(task))).collect::<Result<Vec<_>, _>>()?;
    let hogs = (0..hog_count).map(|_| hogs::start(0)).collect::<Result<Vec<_>>>()?;
    let begin = clock::now() + 500_000_000;
    let each = tasks.iter().zip(&noted);
    let children = each
        .clone()
        .map(|(task, noted)| Child::start(|| serve(*task, noted, begin, begin + time)))
        .collect::<Result<Vec<_>, _>>()?;
    children.into_iter().try_for_each(Child::wait)?;
    drop(hogs);
    let (mut shares, mut missed, mut of_each) = (vec![], 0, vec![]);
    for (task, noted) in each {
        let count = noted[0].load(Acquire) as usize;
        let mut responses: Vec<u64> =
            noted[1..=count].iter().map(|response| response.load(Relaxed)).collect();
        shares.extend(responses.iter().map(|response| response * 100 / task.period));
        missed += responses.iter().filter(|response| **response > task.period).count();
        of_each.push(json!({ "period_ns": task.period, "work_ns": task.work,
                             "response_ns": numbers::quantiles(&mut responses) }));
    }
    let jobs = shares.len();
    Ok(json!({
        "tasks": of_each, "jobs": jobs, "missed": missed,
        "missed_percent": 100.0 * missed as f64 / jobs.max(1) as f64,
        "response_percent": numbers::quantiles(&mut shares),
    }))
}

/// `noted[0]` is how many responses stand behind it.
fn serve(task: Task, noted: &[AtomicU64], begin: u64, end: u64) -> i32 {
    clock::without_slack();
    let (mut release, mut count) = (begin, 0);
    while release < end && count + 1 < noted.len() {
        clock::sleep_until(release);
        clock::compute(task.work);
        count += 1;
        noted[count].store(clock::now().saturating_sub(release), Relaxed);
        release += task.period;
    }
    noted[0].store(count as u64, Release);
    0
}

#[cfg(test)]
mod tests {
    use super::Task;

    #[test]
    fn a_task_is_a_period_and_work_that_fits_into_it() {
        let task: Task = "10000,500".parse().expect("a task");
        assert_eq!((task.period, task.work), (10_000_000, 500_000));
        for nonsense in ["", "5", "5,6", "x,1", "0,0", "99999999999,1"] {
            assert!(nonsense.parse::<Task>().is_err(), "{nonsense}");
        }
    }
}
