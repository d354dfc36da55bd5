//! Periodic real-time tasks that take a share of every CPU: the load that a player is to survive.
//! Two tasks a CPU, with periods that are no multiples of each other.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use attune_linux::affinity::Cpus;
use attune_linux::scheduling::Attributes;
use serde_json::{Value, json};

use crate::child::{Child, shared};
use crate::{clock, numbers};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Class {
    /// SCHED_FIFO, each task pinned to its CPU
    Fifo,
    /// SCHED_DEADLINE, on any CPU, since the kernel pins no reservation
    Deadline,
}

const PERIODS_MS: [u64; 4] = [10, 17, 23, 31];
/// A reservation is so much longer than the job, and longer by so many ns: asking for the time
/// takes time.
const MARGIN: f64 = 1.02;
const MARGIN_NS: u64 = 20_000;

struct Task {
    cpu: u32,
    period_ns: u64,
    job_ns: u64,
}

/// `share`: of every CPU, 0 to 0.9.
pub fn run(class: Class, share: f64, time: Duration) -> Result<Value> {
    ensure!((0.0..=0.9).contains(&share), "the share of a CPU goes from 0 to 90 %");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let tasks: Vec<Task> = (0..2 * cpus)
        .map(|index| {
            let period_ns = PERIODS_MS[index % PERIODS_MS.len()] * 1_000_000;
            Task {
                cpu: index as u32 / 2,
                period_ns,
                job_ns: (period_ns as f64 * share / 2.0) as u64,
            }
        })
        .filter(|task| task.job_ns > 0)
        .collect();
    let counts = shared(2 * tasks.len())?;
    let begin = clock::now() + 100_000_000;
    let end = begin + time.as_nanos() as u64;
    let mut children = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let (jobs, late) = (&counts[2 * index], &counts[2 * index + 1]);
        children.push(Child::start(|| {
            if let Err(error) = set(class, task, index) {
                eprintln!("attune-load: {error:#}");
                return 1;
            }
            let mut release = begin;
            while release < end {
                clock::sleep_until(release);
                clock::compute(task.job_ns);
                release += task.period_ns;
                jobs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                late.fetch_add(
                    u64::from(clock::now() > release),
                    std::sync::atomic::Ordering::Relaxed,
                );
            }
            0
        })?);
    }
    let mut used = Vec::new();
    clock::sleep_until(end);
    for child in &children {
        used.push(clock::cpu_time(child.pid()).unwrap_or(0));
    }
    children.into_iter().try_for_each(Child::wait)?;
    let sum = |offset: usize| -> u64 {
        counts
            .iter()
            .skip(offset)
            .step_by(2)
            .map(|count| count.load(std::sync::atomic::Ordering::Relaxed))
            .sum()
    };
    let taken = used.iter().sum::<u64>() as f64 / (time.as_nanos() as f64 * cpus as f64);
    Ok(json!({ "share": share, "taken": taken, "tasks": tasks.len(), "jobs": sum(0),
            "late": sum(1),
               "cpu_ns": numbers::quantiles(&mut used) }))
}

fn set(class: Class, task: &Task, index: usize) -> Result<()> {
    let attributes = match class {
        Class::Fifo => Attributes::fifo(10 + index as u32),
        Class::Deadline => {
            let budget = (task.job_ns as f64 * MARGIN) as u64 + MARGIN_NS;
            Attributes::reservation(budget, task.period_ns)
        }
    };
    if class == Class::Fifo {
        Cpus::one(task.cpu).apply().with_context(|| format!("cannot run on CPU {}", task.cpu))?;
    }
    attributes.apply_to(0).with_context(|| {
        format!(
            "cannot be a {class:?} task (needs root, and reservations must have room left for it)"
        )
    })
}
