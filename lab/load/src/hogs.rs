//! Processes that compute without end: how evenly the scheduler shares the CPU among them, by their
//! weights.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Result, ensure};
use attune_linux::affinity::Cpus;
use attune_linux::scheduling::{Attributes, Class};
use serde_json::{Value, json};

use crate::child::Child;
use crate::{clock, numbers};

/// The kernel's weight of each nice value from -20 to 19: a step is about a tenth of the CPU
/// between two processes.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// Starts them, lets them run half a second to find their balance, and measures their CPU time over
/// `time`.
pub fn run(count: usize, time: Duration, nice: &[i32]) -> Result<Value> {
    ensure!(count > 0 && !nice.is_empty(), "at least one process, and one nice value");
    ensure!(nice.iter().all(|nice| (-20..20).contains(nice)), "nice values go from -20 to 19");
    let nice: Vec<i32> = nice.iter().copied().cycle().take(count).collect();
    let hogs = nice.iter().map(|nice| start(*nice)).collect::<Result<Vec<_>>>()?;
    let begin = clock::now() + 500_000_000;
    clock::sleep_until(begin);
    let at_begin =
        hogs.iter().map(|hog| clock::cpu_time(hog.pid())).collect::<Result<Vec<_>, _>>()?;
    clock::sleep_until(begin + time.as_nanos() as u64);
    let at_end =
        hogs.iter().map(|hog| clock::cpu_time(hog.pid())).collect::<Result<Vec<_>, _>>()?;

    let got: Vec<u64> = at_end.iter().zip(&at_begin).map(|(end, begin)| end - begin).collect();
    let weights: Vec<f64> =
        nice.iter().map(|nice| f64::from(WEIGHTS[(nice + 20) as usize])).collect();
    // What each should have had of the sum.
    let (all, weight): (u64, f64) = (got.iter().sum(), weights.iter().sum());
    let relative: Vec<f64> = got
        .iter()
        .zip(&weights)
        .map(|(got, own)| *got as f64 / (all as f64 * own / weight))
        .collect();
    let worst = relative.iter().map(|relative| (relative - 1.0).abs()).fold(0.0, f64::max);
    Ok(json!({ "cpu_ns": got, "nice": nice, "jain": numbers::jain(&relative),
            "worst_deviation": worst }))
}

/// A process that computes until it is killed.
pub fn start(nice: i32) -> Result<Child> {
    Ok(Child::start(|| {
        if rustix::process::setpriority_process(None, nice).is_err() {
            return 1;
        }
        loop {
            clock::spin();
        }
    })?)
}

/// The same on that CPU, in SCHED_IDLE: for time that nobody else wants.
pub fn start_idle(cpu: u32) -> Result<Child> {
    Ok(Child::start(|| {
        if Cpus::one(cpu).apply().and(Class::IDLE.apply()).is_err() {
            return 1;
        }
        loop {
            clock::spin();
        }
    })?)
}

/// The same as [`start`], counting what it has computed in [`clock::spin`]s, and scheduled under
/// `reservation`.
pub fn start_counting(spins: &'static AtomicU64, reservation: Option<Attributes>) -> Result<Child> {
    Ok(Child::start(|| {
        if let Some(Err(error)) = reservation.map(|reservation| reservation.apply_to(0)) {
            eprintln!("attune-load: a hog: no reservation: {error}");
            return 1;
        }
        for done in 1.. {
            clock::spin();
            spins.store(done, Relaxed);
        }
        0
    })?)
}

/// Nanoseconds that a [`clock::spin`] takes: the least of some tries, so that a busy machine does
/// not make hogs idle.
pub fn nanoseconds_per_spin() -> f64 {
    const SPINS: u32 = 200;
    let tries = (0..20).map(|_| {
        let begin = clock::now();
        (0..SPINS).for_each(|_| clock::spin());
        (clock::now() - begin) as f64 / f64::from(SPINS)
    });
    tries.fold(f64::INFINITY, f64::min)
}
