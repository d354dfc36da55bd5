//! What the engine tells a trace, if there is one: each change of what a thread does, after the
//! scheduler has heard of it, so that its container is known.
//!
//! While nothing is traced, each of these functions costs one comparison.

use super::Engine;
use crate::clock;
use crate::sync;
use crate::thread::{State, ThreadRef};
use crate::trace::record::{Record, What};
use crate::trace::recorder::{MOST_TOLD, Pen, Recorder};

impl Engine {
    /// Traces from now on. What threads do already is told as of the time at which it began, but
    /// not before `start`.
    pub fn begin_trace(&mut self, pen: Pen, start: i64) {
        self.trace = Some(Box::new(Recorder::new(pen, &self.scheduler)));
        self.look_around();
        self.tell_all(|thread| thread.times.since().max(start));
    }

    pub fn end_trace(&mut self) {
        self.trace = None;
        self.look_around();
    }

    /// The thread that runs has been chosen, after the one that ran.
    #[inline]
    pub(super) fn trace_switch(&mut self, now: i64) {
        if self.trace.is_some() {
            self.tell_switch(now);
        }
    }

    #[cold]
    fn tell_switch(&mut self, now: i64) {
        let next = self.current;
        let Some(trace) = &mut self.trace else { return };
        if trace.is_over() {
            self.end_trace();
        } else if trace.may_go_on() {
            trace.goes_on(now);
            self.tell_all(|_| now);
        } else {
            if let Some(before) = trace.take_running().filter(|before| *before != next) {
                tell(trace, before, now);
            }
            trace.runs(next, now);
        }
    }

    /// No thread runs: the one that ran has stopped.
    #[inline]
    pub(super) fn trace_idle(&mut self, now: i64) {
        self.traced(|trace| {
            if let Some(before) = trace.take_running() {
                tell(trace, before, now);
            }
        });
    }

    /// Something else than running has begun for the thread.
    #[inline]
    pub(super) fn trace_state(&mut self, thread: ThreadRef, now: i64) {
        self.traced(|trace| tell(trace, thread, now));
    }

    /// The thread, which ran, has ended.
    #[inline]
    pub(super) fn trace_end_of(&mut self, thread: ThreadRef, now: i64) {
        self.traced(|trace| trace.ends(thread, now));
    }

    /// The thread leaves for another worker.
    #[inline]
    pub(super) fn trace_leaving(&mut self, thread: ThreadRef, now: i64) {
        let leaves = What::Leaves { turn: thread.moves.get() };
        self.traced(|trace| trace.tell(thread, now, leaves));
    }

    /// The thread comes from another worker, and is ready.
    #[inline]
    pub(super) fn trace_arrival(&mut self, thread: ThreadRef, from: usize, now: i64) {
        let what = What::Arrives { from: from as u32, turn: thread.moves.get() };
        self.traced(|trace| {
            trace.push(&[Record { at: now, thread: thread.id, what }]);
            // Its name may have been told to an earlier trace.
            thread.is_told.set(false);
            tell(trace, thread, now);
        });
    }

    /// The running thread, or else this worker, ends the wait of a thread of any worker.
    #[inline]
    pub(super) fn trace_wakes(&mut self, thread: ThreadRef, now: i64) {
        let (serves, current) = (self.serves, self.current);
        self.traced(|trace| {
            let running = !serves && current.state.get() == State::Running;
            let by = if running { current.id } else { 0 };
            let wakes = What::Wakes { by, turn: turn(thread) };
            trace.push(&[Record { at: now, thread: thread.id, what: wakes }]);
        });
    }

    /// Another worker has ended the thread's wait.
    #[inline]
    pub(super) fn trace_woken(&mut self, thread: ThreadRef) {
        self.traced(|trace| {
            trace.tell(thread, clock::now(), What::Woken { turn: turn(thread) });
        });
    }

    /// The user gives a thread import a value; for all threads of the worker where none is named.
    pub fn trace_hint(&mut self, thread: Option<ThreadRef>, import: usize, value: i64) {
        self.traced(|trace| {
            let (at, what) = (clock::now(), What::Hint { import: import as u32, value });
            match thread {
                Some(thread) => trace.tell(thread, at, what),
                None => {
                    trace.push(&[Record { at, thread: 0, what }]);
                }
            }
        });
    }

    /// Tells the name of each thread and what it does; where they are too many, that of the running
    /// one, and of others when they do something else.
    fn tell_all(&mut self, at: impl Fn(ThreadRef) -> i64) {
        let Some(trace) = &mut self.trace else { return };
        let all = self.threads.iter().count() as u64 <= MOST_TOLD;
        for thread in self.threads.iter() {
            thread.is_told.set(false);
            match thread.state.get() {
                State::Dead => {}
                State::Running => trace.runs(thread, at(thread)),
                State::Ready | State::Waiting if all => tell(trace, thread, at(thread)),
                State::Ready | State::Waiting => {}
            }
        }
    }

    #[inline]
    fn traced(&mut self, f: impl FnOnce(&mut Recorder)) {
        if let Some(trace) = &mut self.trace {
            apart(|| f(trace));
        }
    }
}

/// Keeps out of the way of what runs while nothing is traced.
#[cold]
#[inline(never)]
fn apart(f: impl FnOnce()) {
    f();
}

/// What a thread does that does not run.
fn tell(trace: &mut Recorder, thread: ThreadRef, at: i64) {
    let container = trace.container(thread);
    let what = match thread.state.get() {
        // Another worker may change what it waits for meanwhile.
        State::Waiting => {
            What::Waiting { container, waits_for: sync::guarded(|| thread.waits_for.get()) }
        }
        _ if thread.suspended.get() => What::Suspended { container },
        _ => What::Ready { container, outcome: thread.outcome.get() },
    };
    trace.tell(thread, at, what);
}

/// Which of its waits this is: while it waits it is not chosen.
fn turn(thread: ThreadRef) -> u32 {
    thread.chosen.get() as u32
}
