//! Waiting on a number in memory that processes may share.

use std::sync::atomic::AtomicU32;

use rustix::thread::futex;

use crate::time::{NEVER, Time, timespec};

/// Waits while the number is `expected`, until it is woken or `timeout` nanoseconds have
/// passed ([`NEVER`]: without end). May return early: look at the number again.
pub fn wait(number: &AtomicU32, expected: u32, timeout: Time) {
    let limit = (timeout != NEVER).then(|| timespec(timeout));
    // Each of its errors (another number, a signal, the time) ends the wait, and callers look
    // again.
    let _ = futex::wait(number, futex::Flags::empty(), expected, limit.as_ref());
}

/// Wakes at most `count` threads that wait on the number.
pub fn wake(number: &AtomicU32, count: u32) {
    // It fails only for memory that is not there.
    let _ = futex::wake(number, futex::Flags::empty(), count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn a_waiting_thread_is_woken_by_a_change() {
        let number = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                while number.load(SeqCst) == 0 {
                    wait(&number, 0, NEVER);
                }
            });
            number.store(1, SeqCst);
            wake(&number, 1);
            waiting.join().unwrap();
        });
    }

    #[test]
    fn a_wait_for_another_number_ends_at_once() {
        wait(&AtomicU32::new(1), 0, NEVER);
    }
}
