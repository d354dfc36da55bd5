//! A process that wakes up by the clock beside others that compute: how late it runs.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{clock, hogs, numbers};

/// After each wake-up it computes for `work`. The kernel's timer slack is switched off for it.
pub fn run(hog_count: usize, period: Duration, work: Duration, time: Duration) -> Result<Value> {
    let (period, work) = (period.as_nanos() as u64, work.as_nanos() as u64);
    ensure!(period > work, "the period must be longer than the work");
    let hogs = (0..hog_count).map(|_| hogs::start(0)).collect::<Result<Vec<_>>>()?;
    clock::without_slack();
    let mut late = vec![];
    let begin = clock::now() + 500_000_000;
    let (mut release, end) = (begin, begin + time.as_nanos() as u64);
    while release < end {
        clock::sleep_until(release);
        late.push(clock::now().saturating_sub(release));
        clock::compute(work);
        // A release that passed meanwhile is late from the beginning, and counts so.
        release += period;
    }
    drop(hogs);
    Ok(json!({ "late_ns": numbers::quantiles(&mut late), "hogs": hog_count, "period_ns": period,
               "from_ns": begin, "to_ns": end }))
}
