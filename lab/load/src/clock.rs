//! Clocks, in nanoseconds.

use std::io;

fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Time since some moment in the past.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CPU time of a process. Err: it is gone and was waited for.
pub fn cpu_time(pid: libc::pid_t) -> io::Result<u64> {
    let mut clock = 0;
    // SAFETY: writes one number.
    match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
        0 => read(clock),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// This process's timers expire when they should, and not up to 50 us later.
pub fn without_slack() {
    // SAFETY: a number alone is passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Sleeps until `time` on the clock of [`now`].
pub fn sleep_until(time: u64) {
    let until =
        libc::timespec { tv_sec: (time / 1_000_000_000) as i64, tv_nsec: (time % 1_000_000_000) as i64 };
    // SAFETY: a valid timespec; the rest is not asked for.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

/// Computes for that long of its own CPU time, and not of the time when others run.
pub fn compute(nanoseconds: u64) {
    let start = read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0);
    while read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(u64::MAX) < start + nanoseconds {
        spin();
    }
}

/// About a microsecond.
pub fn spin() {
    for turn in 0..1000u32 {
        std::hint::black_box(turn);
    }
}
