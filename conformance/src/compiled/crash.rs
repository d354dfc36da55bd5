//! A compiled scheduler that crashes or does not end must not take the tests with it: signals
//! raised inside one of its calls come back as the call's answer.
//!
//! Invariant: `CRASH` is set exactly while this thread runs compiled code; a signal at any other
//! time has its usual effect.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::Once;

use super::shim::Crash;

thread_local! {
    static CRASH: Cell<Option<Crash>> = const { Cell::new(None) };
}

const SIGNALS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGXCPU];

/// Runs compiled code. `crash` is the library's way out of its calls.
pub fn guarded<T>(crash: Crash, run: impl FnOnce() -> T) -> T {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(install);
    CRASH.with(|cell| cell.set(Some(crash)));
    let result = run();
    CRASH.with(|cell| cell.set(None));
    result
}

/// How long one run of compiled code may take, in seconds of this thread's processor time. Dropped
/// when the run is over.
pub struct Limit {
    timer: Option<libc::timer_t>,
}

impl Limit {
    pub fn new(seconds: i64) -> Limit {
        // Safety: zeroed structures of plain numbers are valid; the timer tells this very thread.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGXCPU;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            if libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) != 0 {
                // Without a timer the process that waits finds a scheduler that does not end.
                return Limit { timer: None };
            }
            let mut when: libc::itimerspec = std::mem::zeroed();
            when.it_value.tv_sec = seconds;
            when.it_interval.tv_sec = 1;
            libc::timer_settime(timer, 0, &when, std::ptr::null_mut());
            Limit { timer: Some(timer) }
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            // Safety: made by `new`, deleted once.
            unsafe { libc::timer_delete(timer) };
        }
    }
}

fn install() {
    for signal in SIGNALS {
        // Safety: the handler only reads a thread-local cell and leaves the compiled code, which
        // owns nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

extern "C" fn handler(signal: c_int) {
    if let Some(crash) = CRASH.with(Cell::take) {
        // Safety: this thread is inside a call of that library, which set the place to come back
        // to.
        unsafe { crash(signal) };
    } else if signal != libc::SIGXCPU {
        // Not ours: once more, with its usual effect.
        // Safety: plain calls of libc.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}
