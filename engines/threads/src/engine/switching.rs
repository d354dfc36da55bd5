//! The switch: the running thread stops, the scheduler chooses, the next one runs.

use super::modes;
use super::{Engine, Event, Leave, State, ThreadRef, WaitsFor};
use crate::cluster::Cluster;
use crate::diagnosis;
use crate::errno::{Errno, Result};
use crate::report;

/// What is left to do for a thread that gives up the processor.
#[derive(Clone, Copy)]
pub enum Turn {
    /// All of it.
    Leave(Leave),
    /// It has stopped, and at that time the scheduler had no thread to run.
    Choose { now: i64 },
    /// This thread runs already, as far as the engine is concerned.
    Run(ThreadRef),
}

impl Engine {
    /// EAGAIN: the thread could not run next.
    pub fn may_yield_to(&mut self, thread: ThreadRef) -> Result<()> {
        let runnable = thread.state.get() == State::Ready && !thread.suspended.get();
        let now = self.time();
        if runnable && self.scheduler.allows(Event::CanSwitchTo, thread, now) {
            Ok(())
        } else {
            Err(Errno(libc::EAGAIN))
        }
    }

    /// Goes on with a turn, and returns the thread that runs next. None: there is none left.
    pub fn take(&mut self, turn: Turn) -> Option<ThreadRef> {
        match turn {
            Turn::Leave(leave) => self.switch(leave),
            Turn::Choose { now } => {
                let now = self.idle(now);
                Some(self.choose(now))
            }
            Turn::Run(next) => Some(next),
        }
    }

    /// The running thread yields: what [`Engine::switch`] does, as far as that may be done on the
    /// thread's own stack.
    #[inline]
    pub fn yield_in_place(&mut self) -> Turn {
        let me = self.current;
        if !self.is_bare || me.suspend_next.get() {
            return Turn::Leave(Leave::Yield);
        }
        let now = self.time();
        me.state.set(State::Ready);
        if self.time.of_every_switch {
            me.times.stops(now);
        }
        self.raise(Event::SwitchOut, Some(me), now);
        if me.is_destroyed() {
            self.fail_for_destroying(me);
        }
        let chosen = self.scheduler.schedule(now);
        self.take_alarms();
        match chosen {
            Some(next) => Turn::Run(self.run(next, now)),
            None => Turn::Choose { now },
        }
    }

    /// Stops the running thread and returns the one that runs next. None: there is no thread left.
    pub fn switch(&mut self, leave: Leave) -> Option<ThreadRef> {
        let me = self.current;
        let now = self.time();
        me.state.set(State::Ready);
        if self.time.of_every_switch {
            me.times.stops(now);
        }
        let yields = matches!(leave, Leave::Yield | Leave::YieldTo(_));
        let leave = if yields && me.suspend_next.take() { Leave::Suspend } else { leave };
        match leave {
            Leave::Yield => {
                if self.stay.is_used_up(now) {
                    self.raise(Event::QuantumExpired, Some(me), now);
                }
            }
            Leave::YieldTo(other) => self.raise(Event::SetNextThread, Some(other), now),
            Leave::Wait => {
                me.state.set(State::Waiting);
                let suspends = self.waits_by_suspending();
                self.raise(
                    if suspends { Event::SuspendThread } else { Event::SetWaiting },
                    Some(me),
                    now,
                );
            }
            Leave::Suspend => {
                me.suspended.set(true);
                self.raise(Event::SuspendThread, Some(me), now);
            }
            Leave::Exit => {
                if let Some(joiner) = me.joiner.get() {
                    me.state.set(State::Running);
                    self.wake_at(joiner, 0, now);
                }
                me.state.set(State::Dead);
                self.raise(Event::SetDead, Some(me), now);
            }
        }
        self.raise(Event::SwitchOut, Some(me), now);
        if me.is_destroyed() && !matches!(leave, Leave::Exit) {
            self.fail_for_destroying(me);
        }
        if matches!(leave, Leave::Exit) {
            self.trace_end_of(me, now);
            self.retire(me);
            if self.worker.count_out(self.living) {
                return None;
            }
        }
        Some(self.choose(now))
    }

    /// Lets the scheduler choose until a thread runs.
    pub(super) fn choose(&mut self, mut now: i64) -> ThreadRef {
        loop {
            // Threads wait until the nodes have come that the cluster expects.
            if !self.scheduler.cluster().is_none_or(Cluster::has_started) {
                now = self.idle(now);
                continue;
            }
            let chosen = match modes::any() {
                true => self.schedule_as_opted(now),
                false => self.scheduler.schedule(now),
            };
            self.take_alarms();
            if let Some(next) = chosen {
                return self.run(next, now);
            }
            now = self.idle(now);
        }
    }

    /// The scheduler has chosen the thread, which runs from now on.
    #[inline]
    fn run(&mut self, next: ThreadRef, now: i64) -> ThreadRef {
        if next.state.get() != State::Ready || next.suspended.get() {
            self.fail_for_dispatching(next);
        }
        debug_assert_eq!(next.waits_for.get(), WaitsFor::Nothing, "its wait has ended");
        next.state.set(State::Running);
        next.chosen.set(next.chosen.get() + 1);
        if self.time.of_every_switch {
            next.times.runs(now);
        }
        self.current = next;
        self.switches += 1;
        self.trace_switch(now);
        self.raise_pending(now);
        next
    }

    #[cold]
    fn fail_for_dispatching(&self, thread: ThreadRef) -> ! {
        let name = self.scheduler.name().to_string_lossy();
        let container = self.scheduler.container_of(thread);
        let what = diagnosis::describe(thread);
        report::scheduler_failed(&format!(
            "{name} dispatched {what}, which cannot run; it is in {container}"
        ))
    }

    #[cold]
    fn fail_for_destroying(&self, thread: ThreadRef) -> ! {
        let name = self.scheduler.name().to_string_lossy();
        let what = diagnosis::describe(thread);
        report::scheduler_failed(&format!("{name} destroyed {what}, which has not ended"))
    }
}
