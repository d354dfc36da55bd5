//! The Rust interface. Like the C interface it is a thin layer; failures are [`std::io::Error`]s
//! with the errno that `include/attune.h` names.
//!
//! Times are nanoseconds of CLOCK_MONOTONIC ([`now`]), timeouts are
//! [`Duration`](std::time::Duration)s.

pub mod imports;
pub mod net;
pub mod shared;
mod sync;
mod threads;
mod trace;

pub use sync::{Condvar, Mutex, MutexGuard, Semaphore};
pub use threads::{
    Builder, JoinHandle, Options, ThreadId, current, init, now, resume, scheduler_name, sleep,
    sleep_until, spawn, statistics, suspend, yield_now, yield_to,
};
pub use trace::{end_trace, trace};

use std::time::Duration;

use crate::clock::{self, NEVER};

/// None never ends.
fn deadline(timeout: Option<Duration>) -> i64 {
    timeout.map_or(NEVER, |timeout| clock::deadline(nanoseconds(timeout)))
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
