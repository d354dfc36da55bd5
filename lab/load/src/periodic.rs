//! Periodic processes: each is released once a period, computes, and should be done before its next
//! release.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::reservation::{self, By};
use crate::{clock, hogs, numbers};

/// One of them, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub period: u64,
    pub work: u64,
    /// Reserved for it in every period; 0: nothing.
    pub budget: u64,
}

impl std::str::FromStr for Task {
    type Err = String;

    /// `PERIOD,WORK[,BUDGET]` in microseconds.
    fn from_str(text: &str) -> Result<Task, String> {
        let numbers: Result<Vec<u64>, _> =
            text.split(',').map(|number| number.trim().parse()).collect();
        let fits = |period: u64, part: u64| part < period && period <= 10_000_000;
        let (period, work, budget) = match numbers.as_deref() {
            Ok([period, work]) if fits(*period, *work) => (*period, *work, 0),
            Ok([period, work, budget]) if fits(*period, *work) && fits(*period, *budget) => {
                (*period, *work, *budget)
            }
            _ => {
                return Err(format!(
                    "`{text}`: PERIOD,WORK or PERIOD,WORK,BUDGET in microseconds is meant, such as \
                        10000,500"
                ));
            }
        };
        Ok(Task { period: period * 1000, work: work * 1000, budget: budget * 1000 })
    }
}

impl Task {
    /// Jobs that are released in so many nanoseconds.
    fn jobs(&self, time: u64) -> usize {
        time.div_ceil(self.period) as usize
    }
}

/// What a task shows: words of its memory, and behind them lateness and response of each job.
enum Word {
    Count,
    By,
    /// CPU time of the hogs, and when it was that: after the first job and after the last.
    Hogs,
    Jobs = 6,
}

/// Runs them beside hogs for `time`, after half a second to find their balance. A job's lateness is
/// the time from its release to its first instruction, its response that to its end; a response
/// that is longer than the period has missed its deadline, and the next job begins late. Jobs that
/// have not begun when the time is over are missed, too.
pub fn run(tasks: &[Task], hog_count: usize, deadline: bool, time: Duration) -> Result<Value> {
    ensure!(!tasks.is_empty(), "at least one task");
    let time = time.as_nanos() as u64;
    let room = |task: &Task| Word::Jobs as usize + 2 * task.jobs(time);
    let noted =
        tasks.iter().map(|task| child::shared(room(task))).collect::<Result<Vec<_>, _>>()?;
    let hogs = (0..hog_count).map(|_| hogs::start(0)).collect::<Result<Vec<_>>>()?;
    let begin = clock::now() + 500_000_000;
    // Tasks look, since nobody else may have the CPU where they have reservations.
    let hogs_used = || hogs.iter().map(|hog| clock::cpu_time(hog.pid()).unwrap_or(0)).sum::<u64>();
    let each = tasks.iter().zip(&noted);
    let children = each
        .clone()
        .map(|(task, noted)| {
            Child::start(|| match serve(*task, deadline, noted, (begin, begin + time), hogs_used) {
                Ok(()) => 0,
                Err(error) => {
                    eprintln!("attune-load: {error:#}");
                    1
                }
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    children.into_iter().try_for_each(Child::wait)?;
    drop(hogs);
    let (mut shares, mut missed, mut jobs, mut of_each) = (vec![], 0, 0, vec![]);
    for (task, noted) in each {
        let count = noted[Word::Count as usize].load(Acquire) as usize;
        let of = |offset| {
            let words = noted[Word::Jobs as usize..][..2 * count].iter().skip(offset).step_by(2);
            words.map(|word| word.load(Relaxed)).collect::<Vec<_>>()
        };
        let (mut late, mut responses) = (of(0), of(1));
        let (released, its) =
            (task.jobs(time), responses.iter().filter(|response| **response > task.period));
        let its = its.count() + released - count;
        (jobs, missed) = (jobs + released, missed + its);
        shares.extend(responses.iter().map(|response| response * 100 / task.period));
        of_each.push(json!({
            "period_ns": task.period, "work_ns": task.work, "budget_ns": task.budget,
            "reserved": By::name(noted[Word::By as usize].load(Relaxed)),
            "jobs": released, "missed": its,
            "missed_percent": 100.0 * its as f64 / released.max(1) as f64,
            "late_ns": numbers::quantiles(&mut late),
            "response_ns": numbers::quantiles(&mut responses),
        }));
    }
    let seen: Vec<u64> = noted[0][Word::Hogs as usize..Word::Jobs as usize]
        .iter()
        .map(|word| word.load(Relaxed))
        .collect();
    let (hogs_cpu, elapsed) = (seen[2] - seen[0], seen[3] - seen[1]);
    Ok(json!({
        "tasks": of_each, "jobs": jobs, "missed": missed,
        "missed_percent": 100.0 * missed as f64 / jobs.max(1) as f64,
        "response_percent": numbers::quantiles(&mut shares),
        "hogs_percent": 100.0 * hogs_cpu as f64 / elapsed.max(1) as f64,
    }))
}

fn serve(
    task: Task,
    deadline: bool,
    noted: &[AtomicU64],
    (begin, end): (u64, u64),
    hogs_used: impl Fn() -> u64,
) -> Result<()> {
    clock::without_slack();
    let look = |word: usize| {
        noted[Word::Hogs as usize + word].store(hogs_used(), Relaxed);
        noted[Word::Hogs as usize + word + 1].store(clock::now(), Relaxed);
    };
    let by = reservation::ask(task.budget, task.period, deadline)?;
    noted[Word::By as usize].store(by as u64, Relaxed);
    let (mut release, mut count) = (begin, 0);
    // At the end a job that has missed its deadline is dropped: a task that overruns would go on
    // for long.
    while release < end && clock::now() < end.max(release + task.period) {
        clock::sleep_until(release);
        let late = clock::now().saturating_sub(release);
        clock::compute(task.work);
        let job = &noted[Word::Jobs as usize + 2 * count..];
        job[0].store(late, Relaxed);
        job[1].store(clock::now().saturating_sub(release), Relaxed);
        if count == 0 {
            look(0);
        }
        count += 1;
        release += task.period;
    }
    if count > 0 {
        look(2);
    }
    noted[Word::Count as usize].store(count as u64, Release);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Task;

    #[test]
    fn a_task_is_a_period_and_work_that_fits_into_it() {
        let task: Task = "10000,500".parse().expect("a task");
        assert_eq!((task.period, task.work, task.budget), (10_000_000, 500_000, 0));
        let reserved: Task = "10000,500,700".parse().expect("a task with a budget");
        assert_eq!((reserved.work, reserved.budget), (500_000, 700_000));
        for nonsense in ["", "5", "5,6", "x,1", "0,0", "99999999999,1", "10,1,11", "10,1,1,1"] {
            assert!(nonsense.parse::<Task>().is_err(), "{nonsense}");
        }
    }
}
