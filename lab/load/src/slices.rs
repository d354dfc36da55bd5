//! How long a process that computes stays on the CPU before another runs, as it sees that itself:
//! by the holes in its time.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::{clock, numbers};

/// A hole of this many nanoseconds is another process's turn; shorter ones are interrupts. Slices
/// must be longer.
const HOLE: u64 = 60_000;
/// A process notes this many stays.
const ROOM: usize = 100_000;

/// Starts `count` such processes, lets them find their balance for half a second, and notes their
/// stays for `time`. The first and the last stay of each are cut by the measurement, and left out.
pub fn run(count: usize, time: Duration) -> Result<Value> {
    ensure!(count > 1, "at least two processes: one alone is never interrupted");
    let noted = (0..count).map(|_| child::shared(ROOM + 1)).collect::<Result<Vec<_>, _>>()?;
    let begin = clock::now() + 500_000_000;
    let end = begin + time.as_nanos() as u64;
    let children = noted
        .iter()
        .map(|noted| Child::start(|| watch(noted, begin, end)))
        .collect::<Result<Vec<_>, _>>()?;
    children.into_iter().try_for_each(Child::wait)?;
    let mut stays = vec![];
    for noted in noted {
        let its = noted[0].load(Acquire) as usize;
        stays.extend(noted[1..=its].iter().map(|stay| stay.load(Relaxed)));
    }
    ensure!(!stays.is_empty(), "no process was interrupted");
    Ok(json!({ "stay_ns": numbers::quantiles(&mut stays), "processes": count }))
}

/// `noted[0]` is how many stays stand behind it.
fn watch(noted: &[std::sync::atomic::AtomicU64], begin: u64, end: u64) -> i32 {
    let (mut since, mut before, mut count, mut whole) = (clock::now(), clock::now(), 0, false);
    while before < end {
        let now = clock::now();
        if now - before > HOLE {
            if whole && since >= begin && count < ROOM {
                count += 1;
                noted[count].store(before - since, Relaxed);
            }
            (since, whole) = (now, true);
        }
        before = now;
    }
    noted[0].store(count as u64, Release);
    0
}
