//! What threads are doing, in words, for the messages about a program that cannot go on.

use std::fmt::Write as _;

use crate::report;
use crate::scheduler::Scheduler;
use crate::thread::{State, ThreadId, ThreadRef, WaitsFor};
use crate::thread_table::ThreadTable;

/// A thread that has not ended, for [`deadlock`].
#[derive(Clone)]
pub struct Described {
    id: ThreadId,
    can_run: bool,
    what: String,
}

/// What the threads of one worker are doing.
pub fn threads(scheduler: &Scheduler, threads: &ThreadTable) -> Vec<Described> {
    let living = threads.iter().filter(|thread| thread.state.get() != State::Dead);
    let described = living.map(|thread| Described {
        id: thread.id,
        can_run: thread.state.get() == State::Ready && !thread.suspended.get(),
        what: format!("{}, in {}", describe(thread), scheduler.container_of(thread)),
    });
    described.collect()
}

/// Ends the process: no event can come that any of the threads waits for.
pub fn deadlock(scheduler: &Scheduler, mut living: Vec<Described>) -> ! {
    living.sort_by_key(|thread| thread.id);
    let ready = living.iter().filter(|thread| thread.can_run).count();
    let name = scheduler.name().to_string_lossy();
    let mut message = if ready > 0 {
        format!(
            "stuck: the scheduler {name} dispatches none of {ready} ready threads, and no event \
             can come"
        )
    } else {
        "deadlock: every thread waits, and nothing that they wait for can come".to_string()
    };
    for thread in living {
        let _ = write!(message, "\n  {}", thread.what);
    }
    report::stuck(&message)
}

/// `thread 3 "handler" (waiting for descriptor 5, suspended)`
pub fn describe(thread: ThreadRef) -> String {
    let name = thread.name().to_string_lossy();
    format!("thread {} \"{name}\" ({})", thread.id, state(thread))
}

/// `waiting for descriptor 5, suspended`
pub fn state(thread: ThreadRef) -> String {
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
            WaitsFor::Worker(index) => format!("waiting for worker {}", index + 1),
            WaitsFor::Answer(_) => "waiting for an answer of the cluster's manager".into(),
            WaitsFor::File(fd) => format!("waiting for the file of descriptor {fd}"),
            WaitsFor::Call => "waiting for a call that blocks".into(),
            WaitsFor::Descriptors(fd, 1) => format!("waiting for descriptor {fd}"),
            WaitsFor::Descriptors(fd, n) => {
                format!("waiting for descriptor {fd} and {} more", n - 1)
            }
        },
    };
    let suspended = if thread.suspended.get() { ", suspended" } else { "" };
    state + suspended
}
