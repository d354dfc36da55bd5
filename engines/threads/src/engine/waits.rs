//! Begins and ends waits: for a time, an object, another thread, a descriptor or a call.
//!
//! Invariant: a waiting thread is woken once, by whichever of these comes first. Another worker's
//! thread is woken by a message to its worker.

use super::Engine;
use super::worker::{self, Message};
use crate::clock::NEVER;
use crate::thread::{ThreadRef, WaitsFor};
use crate::timers::Kind;

impl Engine {
    /// The running thread is about to wait. Its place in a queue or the like is set up already.
    pub fn prepare_wait(&mut self, waits_for: WaitsFor, deadline: i64) {
        let me = self.current;
        me.waits_for.set(waits_for);
        me.outcome.set(0);
        me.untimed.set(false);
        if deadline != NEVER {
            self.timers.set(me, Kind::Wake, deadline);
        }
    }

    /// A timeout that was set with [`Engine::prepare_wait`] does not happen any more. The timer of
    /// a thread of another worker stays, and `untimed` makes it harmless.
    pub fn end_timeout(&mut self, thread: ThreadRef) {
        if self.worker.has(thread) {
            self.timers.cancel(thread, Kind::Wake);
        }
    }

    /// Ends the thread's wait: what it waits for has come (0), or will not (an errno).
    pub fn wake(&mut self, thread: ThreadRef, outcome: i32) {
        let now = self.time();
        self.wake_at(thread, outcome, now);
    }

    pub(super) fn wake_at(&mut self, thread: ThreadRef, outcome: i32, now: i64) {
        self.trace_wakes(thread, now);
        if self.worker.has(thread) {
            self.end_wait(thread, outcome);
            self.raise_ready(thread, now);
        } else {
            worker::with(thread).post(Message::Wake(thread, outcome));
        }
    }

    /// Descriptors that a thread waited for are gone.
    pub fn fail_waits(&mut self, threads: Vec<ThreadRef>) {
        for thread in threads {
            // One that waits for two of them is woken once.
            if matches!(thread.waits_for.get(), WaitsFor::Descriptors(..)) {
                self.wake(thread, libc::EBADF);
            }
        }
    }
}
