//! Clocks, in nanoseconds, and computing for a given time.

use std::hint::black_box;

use anyhow::{Result, ensure};
use attune_linux::time::{SECOND, Time, set_timer_slack};
pub use attune_linux::time::{now, process_cpu_time as cpu_time, sleep_until, thread_cpu_time};

/// This process's timers expire when they should, and not up to 50 us later.
pub fn without_slack() {
    set_timer_slack(Some(1));
}

/// Computes for that much CPU time of its own; time of others does not count.
pub fn compute(time: Time) {
    let start = thread_cpu_time();
    while thread_cpu_time() < start + time {
        spin();
    }
}

/// About a microsecond, in instructions one after the other: an emulator pays for each branch.
pub fn spin() {
    let mut number = black_box(1);
    for _ in 0..16 {
        number = work(work(work(work(number))));
        number = work(work(work(work(number))));
    }
    black_box(number);
}

pub fn spin_for_ever() -> ! {
    loop {
        spin();
    }
}

/// Hardly ever wakes: many such processes are quiet.
pub fn sleep_for_ever() -> ! {
    loop {
        sleep_until(now() + 1000 * SECOND);
    }
}

/// A step of a random generator (xorshift), which no compiler shortens.
#[inline(always)]
fn work(number: u64) -> u64 {
    let number = number ^ (number << 13);
    let number = number ^ (number >> 7);
    number ^ (number << 17)
}

/// Looks so often whether it is so. Err: it is not, after `patience`.
pub fn wait_until(so: impl Fn() -> bool, look: Time, patience: Time) -> Result<()> {
    let limit = now() + patience;
    while !so() {
        ensure!(now() < limit, "waited for {} s", patience / SECOND);
        sleep_until(now() + look);
    }
    Ok(())
}
