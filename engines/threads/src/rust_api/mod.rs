//! The Rust interface. Like the C interface it is a thin layer; failures are [`std::io::Error`]s
//! with the errno that `include/attune.h` names.
//!
//! Times are nanoseconds of CLOCK_MONOTONIC ([`now`]), timeouts are
//! [`Duration`](std::time::Duration)s.
//!
//! # Threads do not move
//!
//! A thread stays on the worker on which it was created: that of its creator ([`spawn`]), or
//! another one if its closure and its result are `Send` ([`spawn_on`]). In C a ready thread may go
//! to another worker. Here it may not, since each call would then be a place where a thread changes
//! its OS thread: it may hold an `Rc`, a guard or a reference to a thread-local across the call,
//! which no bound on its closure can see. An `unsafe` promise would not help: the compiler itself
//! keeps addresses of thread-locals across calls, those of std's too.

mod files;
pub mod imports;
pub mod net;
pub mod shared;
mod sync;
mod threads;
mod trace;

pub use files::{Poller, blocking, poller, read_at, write_at};
pub use sync::{Condvar, Mutex, MutexGuard, Semaphore};
pub use threads::{
    Builder, JoinHandle, Options, ThreadId, Worker, check, current, init, now, resume,
    scheduler_name, sleep, sleep_until, spawn, spawn_on, statistics, suspend, timeslice_left,
    worker, workers, yield_now, yield_to,
};
pub use trace::{end_trace, trace};

pub use crate::load::CompiledScheduler;

use std::time::Duration;

use crate::clock::{self, NEVER};

/// The scheduler of that name, which the program's build script has compiled into it by
/// `attune_threads_build::compile`.
#[macro_export]
macro_rules! compiled_scheduler {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"))
    };
}

/// None never ends.
fn deadline(timeout: Option<Duration>) -> i64 {
    timeout.map_or(NEVER, |timeout| clock::deadline(nanoseconds(timeout)))
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
