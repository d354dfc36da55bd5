//! Time as an event loop reads it.

use attune_linux::time;

pub use attune_linux::time::{NEVER, Time};

/// What an event loop reads time from; tests bring their own.
pub trait Clock {
    fn now(&self) -> Time;
    /// CPU time that the calling thread has used.
    fn cpu_time(&self) -> Time;
}

/// The kernel's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> Time {
        time::now()
    }

    fn cpu_time(&self) -> Time {
        time::thread_cpu_time()
    }
}
