//! Time: unsigned nanoseconds of CLOCK_MONOTONIC, which no time step moves and which stands still while the machine is suspended.

/// A point in time, or a length of it, in nanoseconds.
pub type Time = u64;

/// Later than everything.
pub const NEVER: Time = Time::MAX;

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
        read(libc::CLOCK_MONOTONIC)
    }

    fn cpu_time(&self) -> Time {
        read(libc::CLOCK_THREAD_CPUTIME_ID)
    }
}

fn read(clock: libc::clockid_t) -> Time {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec. The two clocks exist on every Linux, so it cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as Time * 1_000_000_000 + time.tv_nsec as Time
}

/// For ppoll: how long it is from `now` to `time`; None: for ever.
pub(crate) fn timeout(now: Time, time: Time) -> Option<libc::timespec> {
    (time != NEVER).then(|| {
        let left = time.saturating_sub(now).min(i64::MAX as Time);
        libc::timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ }
    })
}

/// Timers of the calling thread go off within this many nanoseconds (50 000 unless said otherwise).
pub(crate) fn timer_slack() -> u64 {
    // SAFETY: asks for a number.
    unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) as u64 }
}

pub(crate) fn set_timer_slack(nanoseconds: u64) {
    // SAFETY: sets a number; 0 would mean the default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds.max(1)) };
}
