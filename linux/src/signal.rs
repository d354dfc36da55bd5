//! Signals that are sent, ignored or kept away from a thread.

use std::mem::MaybeUninit;

pub use rustix::process::Signal;

/// Asks a process to end.
pub const TERMINATE: Signal = Signal::TERM;
/// Ctrl-C.
pub const INTERRUPT: Signal = Signal::INT;
/// The terminal was closed.
pub const HANG_UP: Signal = Signal::HUP;
/// Ends a process at once.
pub const KILL: Signal = Signal::KILL;

/// From now on this process ignores these signals. Programs that it starts ignore them too.
pub fn ignore(signals: &[Signal]) {
    for signal in signals {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(signal.as_raw(), libc::SIG_IGN) };
    }
}

/// Calls `start` with all signals blocked in the calling thread, so that a thread that it starts
/// never gets one of the program's signals. Then the calling thread's mask is as before.
pub fn while_blocked<T>(start: impl FnOnce() -> T) -> T {
    /// Puts the mask back, also when `start` panics.
    struct Before(libc::sigset_t);
    impl Drop for Before {
        fn drop(&mut self) {
            // SAFETY: the set is initialised.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }
    let (mut all, mut own) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the first call fills `all`, the second one `own`.
    let _before = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), own.as_mut_ptr());
        Before(own.assume_init())
    };
    start()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find(|line| line.starts_with("SigBlk")).unwrap().to_owned()
    }

    #[test]
    fn a_thread_started_while_signals_are_blocked_never_gets_one() {
        let before = blocked();
        let theirs = while_blocked(|| std::thread::spawn(blocked)).join().unwrap();
        assert_ne!(theirs, before);
        assert_eq!(blocked(), before);
    }

    #[test]
    fn an_ignored_signal_does_not_end_the_process() {
        ignore(&[Signal::USR1]);
        crate::process::signal(std::process::id(), Signal::USR1).unwrap();
    }
}
