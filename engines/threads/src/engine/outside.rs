//! Events from outside: timers that expire, descriptors that become ready or were closed, and the
//! waits that end by them. They queue up as [`Pending`] and are raised one at a time.

use super::{Engine, Pending};
use crate::clock;
use crate::cluster::Cluster;
use crate::diagnosis;
use crate::engine::{modes, worker};
use crate::sync;
use crate::thread::{self, State, ThreadRef, Waiter, WaitsFor};
use crate::timers::Kind;
use attune_abi::Event;

/// How long threads run before the engine polls descriptors again. A poll takes about half a
/// microsecond, so polling costs about one per cent; an event waits this long or for one thread's
/// turn. Nanoseconds.
const POLL_EVERY: i64 = 50_000;
/// How often the engine looks for descriptors that were closed without attune_close, and at how
/// many at a time while threads run. Nanoseconds.
const SWEEP_EVERY: i64 = 1_000_000_000;
const SWEEP_SOME: usize = 64;
const SWEEP_SOME_EVERY: i64 = 10_000_000;

impl Engine {
    /// Waits until one event has been raised; returns the time. No thread runs since `stopped`.
    pub(super) fn idle(&mut self, stopped: i64) -> i64 {
        self.trace_idle(stopped);
        let mut now = clock::now();
        loop {
            self.expire_timers(now);
            let news = self.exchange(now);
            if self.raise_next(now) || news {
                return now;
            }
            match self.read_one_message() {
                Some(true) => return now,
                Some(false) => continue,
                None => {}
            }
            if self.stacks.lend_some_memory() {
                self.poll_descriptors(0);
                now = clock::now();
                continue;
            }
            let waiting = self.descriptors.waiting() > 0;
            let next = self.timers.next();
            let hopeless = next.is_none() && !waiting && self.calls == 0 && !self.news_may_help();
            if hopeless && !worker::several() {
                let threads = diagnosis::threads(&self.scheduler, &self.threads);
                diagnosis::deadlock(&self.scheduler, threads);
            }
            let look = self.scheduler.cluster().and_then(Cluster::next);
            let next = next.into_iter().chain(look).min();
            let mut timeout = next.map_or(clock::FOREVER, |at| at.saturating_sub(now).max(0));
            let sweep = waiting && self.unswept && !(0..SWEEP_EVERY).contains(&timeout);
            if sweep {
                timeout = SWEEP_EVERY;
            }
            if modes::moves() {
                self.ask_for_thread();
            }
            let heard = self.sleep(timeout, hopeless);
            if sweep && !heard {
                self.sweep(usize::MAX);
                self.unswept = false;
            }
            now = clock::now();
        }
    }

    /// Raises the events that have come meanwhile, while a thread counts as running: just after it
    /// was chosen, and at its safe points.
    #[inline]
    pub(super) fn raise_pending(&mut self, now: i64) {
        self.unswept = true;
        if self.may_hear() || !self.pending.is_empty() {
            self.hear(now);
        }
    }

    #[inline(never)]
    fn hear(&mut self, now: i64) {
        if self.timers.next().is_some_and(|at| at <= now) {
            self.expire_timers(now);
        }
        let polls = self.descriptors.waiting() > 0 || self.scheduler.cluster().is_some();
        if now >= self.next_poll && polls {
            self.next_poll = now + POLL_EVERY;
            self.poll_descriptors(0);
            self.exchange(now);
            if now >= self.next_sweep {
                self.next_sweep = now + SWEEP_SOME_EVERY;
                self.sweep(SWEEP_SOME);
            }
        }
        while !self.pending.is_empty() {
            self.raise_next(now);
        }
        if self.worker.has_mail() {
            self.read_mail(now);
        }
    }

    /// Whether [`Engine::raise_pending`] may find anything.
    #[inline]
    pub(super) fn may_hear(&self) -> bool {
        self.timers.next().is_some()
            || self.descriptors.waiting() > 0
            || self.worker.has_mail()
            || self.scheduler.cluster().is_some()
    }

    pub(super) fn poll_descriptors(&mut self, timeout: i64) -> bool {
        let mut reported = std::mem::take(&mut self.reported);
        let heard = self.descriptors.poll(timeout, &mut reported);
        self.end_waits(&mut reported, 0);
        self.reported = reported;
        heard
    }

    pub(super) fn sweep(&mut self, count: usize) {
        let mut lost = Vec::new();
        self.descriptors.sweep(count, &mut lost);
        self.end_waits(&mut lost, libc::EBADF);
    }

    pub(super) fn end_waits(&mut self, threads: &mut Vec<ThreadRef>, outcome: i32) {
        for thread in threads.drain(..) {
            // Two of its descriptors may have reported, or its transfer has ended before it waits.
            if matches!(thread.waits_for.get(), WaitsFor::Descriptors(..) | WaitsFor::File(_)) {
                self.end_wait(thread, outcome);
                self.pending.push_back(Pending::Ready(thread));
            }
        }
    }

    pub(super) fn expire_timers(&mut self, now: i64) {
        while let Some((thread, kind)) = self.timers.expire(now) {
            match kind {
                Kind::Alarm => self.pending.push_back(Pending::Alarm(thread)),
                Kind::Wake => self.end_wait_by_time(thread),
            }
        }
    }

    pub(super) fn end_wait_by_time(&mut self, thread: ThreadRef) {
        if let Some(outcome) = sync::guarded(|| timed_out(thread)) {
            self.end_wait(thread, outcome);
            self.pending.push_back(Pending::Ready(thread));
        }
    }

    /// Ends a wait, whatever it was for; the scheduler is not told yet.
    pub(super) fn end_wait(&mut self, thread: ThreadRef, outcome: i32) {
        self.timers.cancel(thread, Kind::Wake);
        // SAFETY: the slice lies on the stack of the thread, which is still blocked.
        for waiter in unsafe { &*thread.waiters.replace(&[] as *const [Waiter]) } {
            self.descriptors.remove(waiter);
        }
        thread.waits_for.set(WaitsFor::Nothing);
        thread.outcome.set(outcome);
    }

    pub(super) fn raise_next(&mut self, now: i64) -> bool {
        match self.pending.pop_front() {
            Some(Pending::Ready(thread)) => self.raise_ready(thread, now),
            Some(Pending::Alarm(thread)) => self.raise(Event::Alarm, Some(thread), now),
            None => return false,
        }
        true
    }

    pub(super) fn raise_ready(&mut self, thread: ThreadRef, now: i64) {
        thread.state.set(State::Ready);
        if self.time.of_every_switch {
            thread.times.begins(now);
        }
        if !self.wakes_by_resuming() {
            self.raise(Event::EventRaised, Some(thread), now);
        } else if !thread.suspended.get() {
            self.raise(Event::ResumeThread, Some(thread), now);
        }
        if !thread.suspended.get() {
            self.note_ready(thread);
        }
        self.trace_state(thread, now);
    }
}

/// How the wait of a thread whose time has come ends; None: it goes on. The thread is in no queue
/// of an object any more if its wait ends.
fn timed_out(thread: ThreadRef) -> Option<i32> {
    let waits_for = thread.waits_for.get();
    let in_queue = matches!(waits_for, WaitsFor::Mutex | WaitsFor::Condition | WaitsFor::Semaphore);
    if in_queue && (thread.queue.get().is_null() || thread.untimed.get()) {
        // Another worker was faster, and its message is on the way.
        return None;
    }
    let outcome = if waits_for == WaitsFor::Time { 0 } else { libc::ETIMEDOUT };
    thread::unlink(thread);
    // SAFETY: a waiter for a condition names its mutex, which outlives the wait.
    let mutex = unsafe { thread.retakes.get().as_ref() };
    mutex.is_none_or(|mutex| mutex.retake(thread, outcome)).then_some(outcome)
}
