//! The switch: the running thread stops, the scheduler chooses, the next one runs.

use super::modes;
use super::{Engine, Event, Leave, State, ThreadRef, WaitsFor};
use crate::cluster::Cluster;
use crate::diagnosis;
use crate::errno::{Errno, Result};
use crate::prefetch;
use crate::report;

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

    /// The running thread yields, apart from what else stops one, since nothing else is done as
    /// often: it costs no more than it must. Returns the thread that runs next.
    #[inline]
    pub fn switch_by_yield(&mut self) -> Option<ThreadRef> {
        let me = self.current;
        if me.suspend_next.get() || modes::any() || self.scheduler.cluster().is_some() {
            return self.switch(Leave::Yield);
        }
        let now = self.time();
        self.stops(me, now);
        let chosen = self.scheduler.change(me, now);
        self.take_alarms();
        self.check_is_there(me);
        let next = self.run_or_idle(chosen, now);
        self.fetch_ahead(me);
        Some(next)
    }

    /// Stops the running thread and returns the one that runs next. None: there is no thread left.
    #[inline(never)]
    pub fn switch(&mut self, leave: Leave) -> Option<ThreadRef> {
        let me = self.current;
        let now = self.time();
        self.stops(me, now);
        self.tell_why(me, leave, now);
        self.raise(Event::SwitchOut, Some(me), now);
        if !matches!(leave, Leave::Exit) {
            self.check_is_there(me);
        } else if self.ends(me, now) {
            return None;
        }
        Some(self.choose(now))
    }

    #[inline]
    fn stops(&mut self, me: ThreadRef, now: i64) {
        me.state.set(State::Ready);
        if self.time.of_every_switch {
            me.times.stops(now);
        }
    }

    #[inline]
    fn check_is_there(&self, thread: ThreadRef) {
        if thread.is_destroyed() {
            self.fail_for_destroying(thread);
        }
    }

    /// Tells the scheduler why the running thread stops.
    #[inline(never)]
    fn tell_why(&mut self, me: ThreadRef, leave: Leave, now: i64) {
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
    }

    /// Fetches early what the next two switches need of memory, as it is to be expected: a thread
    /// that has yielded stands in line again, and the first ones there run next.
    #[inline]
    fn fetch_ahead(&self, thread: ThreadRef) {
        if let Some((first, behind)) = self.scheduler.next_in_line(thread) {
            prefetch::two_lines(first.sp.get());
            prefetch::two_lines(ThreadRef::hot_part(behind));
        }
    }

    /// The thread has ended. True: it was the last one of the process.
    #[inline(never)]
    fn ends(&mut self, thread: ThreadRef, now: i64) -> bool {
        self.trace_end_of(thread, now);
        self.retire(thread);
        self.worker.count_out(self.living)
    }

    /// Lets the scheduler choose until a thread runs.
    #[inline]
    pub(super) fn choose(&mut self, now: i64) -> ThreadRef {
        let chosen = self.ask_for_next(now);
        self.run_or_idle(chosen, now)
    }

    #[inline]
    fn run_or_idle(&mut self, chosen: Option<ThreadRef>, now: i64) -> ThreadRef {
        match chosen {
            Some(next) => self.run(next, now),
            None => self.choose_after_idling(now),
        }
    }

    #[inline]
    fn ask_for_next(&mut self, now: i64) -> Option<ThreadRef> {
        // Threads wait until the nodes have come that the cluster expects.
        if !self.scheduler.cluster().is_none_or(Cluster::has_started) {
            return None;
        }
        let chosen = match modes::any() {
            true => self.schedule_as_opted(now),
            false => self.scheduler.schedule(now),
        };
        self.take_alarms();
        chosen
    }

    #[inline(never)]
    fn choose_after_idling(&mut self, mut now: i64) -> ThreadRef {
        loop {
            now = self.idle(now);
            if let Some(next) = self.ask_for_next(now) {
                return self.run(next, now);
            }
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
