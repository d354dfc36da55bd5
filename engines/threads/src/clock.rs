//! The engine's clock: CLOCK_MONOTONIC in nanoseconds, read without entering the kernel.

/// A timeout that never ends.
pub const FOREVER: i64 = -1;

/// The deadline that never comes.
pub const NEVER: i64 = i64::MAX;

pub fn now() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// The time of a clock that every Linux has, in nanoseconds.
#[inline]
pub fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place; the clock exists, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// When a relative timeout ends: negative never does.
pub fn deadline(timeout: i64) -> i64 {
    if timeout < 0 { NEVER } else { now().saturating_add(timeout) }
}
