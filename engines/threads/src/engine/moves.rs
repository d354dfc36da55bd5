//! Threads that go from one worker to another, in a program that has opted in.
//!
//! ```text
//!   old worker, while a thread of its own runs    leaves(t); t sits in no container, has no timer
//!   the new worker's inbox                        t.at is the new one; no engine has t
//!   new worker                                    arrives(t); t is ready there
//! ```
//!
//! A worker without ready threads asks (board.rs), and the others answer at their library calls. A
//! worker that lastingly has two ready threads more than another sends it one. Only the worker that
//! has a thread gives it away, so instances need no locks. docs/internals/instances.md has the
//! rules, and what was tried against them.
//!
//! Invariants: only a thread that is ready, and so in no queue, goes, and never the one that ran
//! last: `current` is always here. It has no event of which its policy has not been told. A thread
//! that has ended goes home, where its block is freed. Units: nanoseconds.

use super::Engine;
use super::board;
use super::modes;
use super::ready::Ready;
use super::worker::{self, Message, Worker};
use crate::clock;
use crate::control;
use crate::diagnosis;
use crate::report;
use crate::thread::{State, ThreadId, ThreadRef};
use crate::timers::Kind;
use attune_abi::Event;

/// How long a difference in ready threads lasts before a worker evens it out by one thread.
const PERIOD: i64 = 10_000_000;
/// Ready threads more than another worker's. With a difference of one, a move would only change
/// which worker has more.
const UNEVEN: usize = 2;

#[derive(Default)]
pub struct Moves {
    ready: Ready,
    /// The thread that ran last, until it is known whether it is ready again.
    stopped: Option<ThreadRef>,
    /// Threads given to other workers.
    pub given: u64,
    /// The fewest and the most ready threads since the period began.
    least: usize,
    most: usize,
    period_ends: i64,
    /// The worker that is to have a thread because it lastingly has fewer.
    lags: Option<&'static Worker>,
}

impl Engine {
    /// Asks the scheduler for the next thread, in a program that has opted into anything.
    pub(super) fn schedule_as_opted(&mut self, now: i64) -> Option<ThreadRef> {
        let moves = modes::moves();
        if moves
            && let Some(stopped) = self.moves.stopped.take()
            && stopped.state.get() == State::Ready
            && !stopped.suspended.get()
        {
            self.moves.ready.enter(stopped);
        }
        let chosen = match modes::preemption() {
            true => self.schedule_a_stay(now),
            false => self.scheduler.schedule(now),
        };
        if let Some(chosen) = chosen.filter(|_| moves) {
            self.moves.ready.leave(chosen);
            self.moves.stopped = Some(chosen);
            board::asks_no_more(self.worker);
            self.look_at_period(now);
            self.show_ready();
        }
        chosen
    }

    /// The thread, which did not run, is ready from now on.
    #[inline]
    pub(super) fn note_ready(&mut self, thread: ThreadRef) {
        if modes::moves() {
            self.moves.ready.enter(thread);
            self.show_ready();
        }
    }

    /// The thread is not ready any more, and does not run.
    #[inline]
    pub(super) fn note_unready(&mut self, thread: ThreadRef) {
        if modes::moves() {
            self.moves.ready.leave(thread);
            self.show_ready();
        }
    }

    /// The running thread has ended.
    pub(super) fn note_end(&mut self) {
        self.moves.stopped = None;
    }

    /// Lets other workers see since when this one has a thread to give. If one asks, this worker
    /// reads its mail at its next switch, and gives then.
    fn show_ready(&mut self) {
        let first = self.moves.ready.first();
        let since = first.map_or(clock::NEVER, |first| first.times.since());
        self.worker.board.says_first_since(since);
        if first.is_some() && (board::any_asks() || self.moves.lags.is_some()) {
            self.worker.reminds_itself();
        }
    }

    /// At the end of a period: finds a worker that had fewer ready threads all the time.
    fn look_at_period(&mut self, now: i64) {
        let count = self.moves.ready.count();
        self.moves.least = self.moves.least.min(count);
        self.moves.most = self.moves.most.max(count);
        if now < self.moves.period_ends {
            return;
        }
        self.worker.board.says_most(self.moves.most);
        let others = worker::all().iter().filter(|other| other.index != self.worker.index);
        let fewest = others.min_by_key(|other| other.board.most());
        let least = self.moves.least;
        self.moves.lags =
            fewest.copied().filter(|other| least >= other.board.most().saturating_add(UNEVEN));
        (self.moves.least, self.moves.most) = (count, count);
        self.moves.period_ends = now + PERIOD;
    }

    /// Before the worker goes to sleep: asks for a thread if it has none. A policy that leaves its
    /// own ready threads alone gets no others.
    pub(super) fn ask_for_thread(&mut self) {
        self.moves.least = 0;
        if self.moves.ready.count() == 0
            && let Some(other) = board::ask(self.worker)
        {
            other.post(Message::Asks);
        }
    }

    /// At a library call of the running thread.
    pub fn give_if_asked(&mut self) {
        if self.pending.is_empty() && board::any_asks() {
            self.give_away(clock::now());
        }
    }

    /// While a thread runs, and no event is left to tell: gives threads to the workers that ask for
    /// one, and to the one that lags.
    pub(super) fn give_away(&mut self, now: i64) {
        while self.moves.ready.first().is_some()
            && let Some(to) = board::take_asking().or_else(|| self.moves.lags.take())
        {
            self.send_first(to, now);
        }
        self.moves.lags = None;
    }

    fn send_first(&mut self, to: &'static Worker, now: i64) {
        let Some(thread) = self.moves.ready.first() else { return };
        self.raise(Event::Leaves, Some(thread), now);
        self.refuse_destroyed(thread);
        self.scheduler.remove(thread);
        self.moves.ready.leave(thread);
        let alarm = self.timers.take(thread, Kind::Alarm);
        self.moves.given += 1;
        thread.moves.set(thread.moves.get().wrapping_add(1));
        self.trace_leaving(thread, now);
        self.threads.goes(thread);
        self.worker.passes_load_to(to);
        self.show_ready();
        let from = self.worker.index;
        to.receive(thread, Message::Arrives { thread, alarm, from });
    }

    /// A thread of another worker is this one's from now on.
    pub(super) fn take_in(&mut self, thread: ThreadRef, alarm: Option<i64>, from: usize) {
        let now = clock::now();
        self.threads.comes(thread);
        // What holds for all threads may have changed on the way.
        self.bindings.bind_again(&self.scheduler, thread);
        control::catch_up(&self.hints, thread);
        if let Some(at) = alarm {
            self.timers.set(thread, Kind::Alarm, at);
        }
        self.raise(Event::Arrives, Some(thread), now);
        self.refuse_destroyed(thread);
        self.note_ready(thread);
        self.trace_arrival(thread, from, now);
    }

    /// A guest has ended. Its home has its number and its stack.
    pub(super) fn send_home(&mut self, thread: ThreadRef) {
        self.threads.goes(thread);
        if let Ok(home) = worker::home_of(thread.id) {
            home.receive(thread, Message::Ended(thread));
        }
    }

    /// Where the thread of that number is to be looked for; None: here, or it is nowhere.
    pub fn whereabouts(&self, id: ThreadId) -> Option<&'static Worker> {
        if self.threads.get(id).is_some() {
            return None;
        }
        let home = worker::home_of(id).ok()?;
        if home.index != self.worker.index {
            return Some(home);
        }
        self.threads.away(id).map(worker::with)
    }

    fn refuse_destroyed(&self, thread: ThreadRef) {
        if thread.is_destroyed() {
            let name = self.scheduler.name().to_string_lossy();
            let what = diagnosis::describe(thread);
            report::scheduler_failed(&format!("{name} destroyed {what}, which has not ended"));
        }
    }
}
