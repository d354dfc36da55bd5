//! Messages to people, on stderr, and the ends of the process that they explain.
//!
//! Every line begins with `attune: PROGRAM: `.

use std::ffi::CStr;
use std::io::Write as _;
use std::sync::OnceLock;

/// No usable scheduler, or no engine.
const EXIT_START: i32 = 2;
/// The scheduler made an error (EX_SOFTWARE of sysexits.h).
const EXIT_SCHEDULER: i32 = 70;
/// No thread can ever run again.
const EXIT_DEADLOCK: i32 = 71;

/// Writes one message.
pub fn note(message: &str) {
    // A message that cannot be written has no other way out.
    let _ = writeln!(std::io::stderr().lock(), "attune: {}: {message}", program());
}

/// Ends the process: the scheduler cannot be used.
pub fn cannot_start(message: &str) -> ! {
    note(message);
    stop(EXIT_START)
}

/// Ends the process: the scheduler made an error.
pub fn scheduler_failed(message: &str) -> ! {
    note(&format!("the scheduler failed: {message}"));
    stop(EXIT_SCHEDULER)
}

/// Ends the process: no thread can ever run again.
pub fn stuck(message: &str) -> ! {
    note(message);
    stop(EXIT_DEADLOCK)
}

/// The program's short name.
pub fn program() -> String {
    unsafe extern "C" {
        static program_invocation_short_name: *const std::ffi::c_char;
    }
    // SAFETY: set by the C library before main.
    unsafe {
        if program_invocation_short_name.is_null() {
            return "?".into();
        }
        CStr::from_ptr(program_invocation_short_name).to_string_lossy().into_owned()
    }
}

static AT_THE_END: OnceLock<extern "C" fn()> = OnceLock::new();

/// Calls `f` before the process ends by one of the functions above.
pub fn at_the_end(f: extern "C" fn()) {
    // It is the same each time.
    let _ = AT_THE_END.set(f);
}

/// Ends the process at once: what the program has printed comes out, but none of its exit handlers
/// runs, since they might wait for threads that never run again.
fn stop(status: i32) -> ! {
    if let Some(last) = AT_THE_END.get() {
        last();
    }
    // SAFETY: flushing all streams and leaving are always allowed.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status)
    }
}
