//! Messages to people, on stderr, and the ends of the process that they explain.
//!
//! Every line begins with `attune: PROGRAM: `.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::io::Write as _;

use crate::scheduler::Scheduler;
use crate::table::Table;
use crate::thread::{State, ThreadRef, WaitsFor};

/// No usable scheduler, or no engine.
const EXIT_START: i32 = 2;
/// The scheduler made an error (EX_SOFTWARE).
const EXIT_SCHEDULER: i32 = 70;
/// No thread can ever run again.
const EXIT_DEADLOCK: i32 = 71;

/// Says something that needs no answer.
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

/// Ends the process: nothing that any thread waits for can come any more.
pub fn deadlock(scheduler: &Scheduler, threads: &Table) -> ! {
    let mut living: Vec<ThreadRef> =
        threads.iter().filter(|thread| thread.state.get() != State::Dead).collect();
    living.sort_by_key(|thread| thread.id);
    let ready =
        living.iter().filter(|thread| thread.state.get() == State::Ready && !thread.suspended.get()).count();
    let name = scheduler.name().to_string_lossy();
    let mut message = if ready > 0 {
        format!("stuck: the scheduler {name} dispatches none of {ready} ready threads, and no event can come")
    } else {
        "deadlock: every thread waits, and nothing that they wait for can come".to_string()
    };
    for thread in living {
        let _ = write!(message, "\n  {}, in {}", describe(thread), scheduler.container_of(thread));
    }
    note(&message);
    stop(EXIT_DEADLOCK)
}

/// `thread 3 "handler" (waiting for descriptor 5, suspended)`
pub fn describe(thread: ThreadRef) -> String {
    let name = thread.name().to_string_lossy();
    let state = match thread.state.get() {
        State::Ready => "ready".to_string(),
        State::Running => "running".into(),
        State::Dead => "ended".into(),
        State::Waiting => match thread.waits_for.get() {
            WaitsFor::Nothing => "waiting".into(),
            WaitsFor::Time => "sleeping".into(),
            WaitsFor::Join(other) => format!("waiting for the end of thread {other}"),
            WaitsFor::Mutex => "waiting for a mutex".into(),
            WaitsFor::Condition => "waiting for a condition".into(),
            WaitsFor::Semaphore => "waiting for a semaphore".into(),
            WaitsFor::Descriptors(fd, 1) => format!("waiting for descriptor {fd}"),
            WaitsFor::Descriptors(fd, n) => format!("waiting for descriptor {fd} and {} more", n - 1),
        },
    };
    let suspended = if thread.suspended.get() { ", suspended" } else { "" };
    format!("thread {} \"{name}\" ({state}{suspended})", thread.id)
}

/// The program's short name.
fn program() -> String {
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

/// Ends the process at once: what the program has printed comes out, but none of its exit handlers runs, for they
/// might wait for threads that never run again.
fn stop(status: i32) -> ! {
    // SAFETY: flushing all streams and leaving are always allowed.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status)
    }
}
