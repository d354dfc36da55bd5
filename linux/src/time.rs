//! Time: unsigned nanoseconds of CLOCK_MONOTONIC, which no time step moves and which stands still
//! while the machine is suspended.
//!
//! [`Time`] is a plain number, and serves for points in time and for lengths. Times cross memory
//! that C programs, BPF programs and other processes share, and text files; there they are plain
//! numbers anyway. `std::time::Instant` cannot be made from such a number.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::ClockId;
use rustix::time::Timespec;

/// A point in time, or a length of it, in nanoseconds.
pub type Time = u64;

/// Later than everything.
pub const NEVER: Time = Time::MAX;

pub const MICROSECOND: Time = 1_000;
pub const MILLISECOND: Time = 1_000_000;
pub const SECOND: Time = 1_000_000_000;

/// CLOCK_MONOTONIC.
pub fn now() -> Time {
    nanoseconds(rustix::time::clock_gettime(ClockId::Monotonic))
}

/// CPU time that the calling thread has used.
pub fn thread_cpu_time() -> Time {
    nanoseconds(rustix::time::clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time that a process has used. Fails when the process has ended and was waited for.
pub fn process_cpu_time(process: u32) -> io::Result<Time> {
    let process = crate::number::pid(process)?.as_raw_nonzero().get();
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one clock number.
    let error = unsafe { libc::clock_getcpuclockid(process, &mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: writes one timespec.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Ok(time.tv_sec as Time * SECOND + time.tv_nsec as Time),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sleeps until `time`, through all signals.
pub fn sleep_until(time: Time) {
    let until = timespec(time);
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err_and(|error| {
        // A time that the kernel refuses would be refused again.
        error == rustix::io::Errno::INTR
    }) {}
}

/// The kernel may let timers of the calling thread expire this many nanoseconds late, to serve
/// several at once (50 000 unless another value was set).
pub fn timer_slack() -> Time {
    rustix::thread::current_timer_slack().unwrap_or(0)
}

/// Sets the calling thread's [`timer_slack`]; the least is 1 ns. None: as it was when the thread
/// began.
pub fn set_timer_slack(slack: Option<Time>) {
    // PR_SET_TIMERSLACK of a number fails on no kernel.
    let _ = rustix::thread::set_current_timer_slack(
        slack.and_then(|slack| NonZeroU64::new(slack.max(1))),
    );
}

pub(crate) fn timespec(time: Time) -> Timespec {
    Timespec { tv_sec: (time / SECOND) as i64, tv_nsec: (time % SECOND) as _ }
}

fn nanoseconds(time: Timespec) -> Time {
    time.tv_sec as Time * SECOND + time.tv_nsec as Time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_time_or_later() {
        let until = now() + 3 * MILLISECOND;
        sleep_until(until);
        assert!(now() >= until);
        sleep_until(until);
    }

    #[test]
    fn a_sleeping_thread_uses_less_cpu_time_than_passes() {
        let (began, used) = (now(), thread_cpu_time());
        sleep_until(began + 20 * MILLISECOND);
        assert!(thread_cpu_time() - used < now() - began);
    }

    #[test]
    fn cpu_time_of_this_process_includes_that_of_this_thread() {
        let of_thread = thread_cpu_time();
        let of_process = process_cpu_time(std::process::id()).unwrap();
        assert!(of_process >= of_thread, "{of_process} {of_thread}");
    }

    #[test]
    fn a_process_that_is_gone_has_no_cpu_time() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(process_cpu_time(child.id()).is_err());
    }

    #[test]
    fn the_timer_slack_is_what_was_set_last() {
        std::thread::spawn(|| {
            let before = timer_slack();
            set_timer_slack(Some(0));
            assert_eq!(timer_slack(), 1);
            set_timer_slack(Some(70_000));
            assert_eq!(timer_slack(), 70_000);
            set_timer_slack(None);
            assert_eq!(timer_slack(), before);
        })
        .join()
        .unwrap();
    }
}
