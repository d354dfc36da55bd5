//! The engine's core: which thread runs, and in which order the scheduler hears of what happens.
//!
//! The order is that of "Life of a thread" in ARCHITECTURE.md. One reading of the clock serves the handlers of one
//! scheduling point (why the thread stops, `switch_out`, `schedule`). Events that come from outside (descriptors, timers)
//! are told one at a time: while a thread counts as running, just after it was chosen; or on the idle processor, and
//! then `schedule` follows each. So nothing ever stands between `switch_out` and `schedule`.
//!
//! Invariants: exactly one thread is Running, except inside [`Engine::switch`]; a Waiting thread is in one of: a
//! queue, the timers, the descriptors' waiters, another thread's `joiner`, or `due`.
//!
//! What the engine does not do: it never takes the processor away from a thread, so `dispatch t for d` does not bound the
//! stay, `quantum_expired` never comes and `preempt` asks for nothing.

use std::collections::VecDeque;
use std::ffi::{CStr, c_void};

use crate::clock::{self, NEVER};
use crate::descriptors::{Descriptors, Waiter};
use crate::errno::{Errno, Result};
use crate::links::Links;
use crate::overflow;
use crate::report;
use crate::scheduler::Scheduler;
use crate::stack::StackPool;
use crate::sync;
use crate::table::Table;
use crate::thread::{Body, Leave, State, ThreadId, ThreadRef, WaitsFor};
use crate::timers::{Kind, Timers};
use attune_abi::Event;

/// How long threads may go on before the kernel is asked about descriptors again: bounds the cost of asking (about
/// half a microsecond) to about one per cent, and the delay of what came to this or to one thread's turn. Nanoseconds.
const LOOK_EVERY: i64 = 50_000;
/// How often descriptors closed behind our back are looked for, and how many at a time while threads run.
const SWEEP_EVERY: i64 = 1_000_000_000;
const SWEEP_SOME: usize = 64;
const SWEEP_SOME_EVERY: i64 = 10_000_000;

/// Something to tell the scheduler.
enum Due {
    /// The thread's wait has ended.
    Ready(ThreadRef),
    Alarm(ThreadRef),
}

pub struct Engine {
    pub scheduler: Scheduler,
    pub threads: Table,
    pub stacks: StackPool,
    pub links: Links,
    pub descriptors: Descriptors,
    timers: Timers,
    current: ThreadRef,
    due: VecDeque<Due>,
    /// Scratch for what descriptors report.
    reported: Vec<ThreadRef>,
    next_look: i64,
    next_sweep: i64,
    /// Threads ran since all descriptors were swept, so some may have been closed.
    unswept: bool,
    living: u64,
    created: u64,
    switches: u64,
}

impl Engine {
    /// Starts the scheduler with the program as its first thread, and lets it choose that.
    pub fn start(scheduler: Scheduler, stacks: StackPool, ignore_unknown_imports: bool) -> Result<Engine> {
        let mut threads = Table::new();
        let size = scheduler.record_size();
        let main = ThreadRef::allocate(threads.next_id(), c"main", std::ptr::null_mut(), size);
        threads.insert(main);
        let mut engine = Engine {
            links: Links::new(ignore_unknown_imports),
            scheduler,
            threads,
            stacks,
            descriptors: Descriptors::new()?,
            timers: Timers::default(),
            current: main,
            due: VecDeque::new(),
            reported: Vec::new(),
            next_look: 0,
            next_sweep: 0,
            unswept: false,
            living: 1,
            created: 1,
            switches: 0,
        };
        let now = clock::now();
        engine.raise(Event::Init, None, now);
        engine.scheduler.init_thread(main, now);
        engine.raise(Event::NewThread, Some(main), now);
        engine.choose(now);
        Ok(engine)
    }

    /// The running thread.
    #[inline]
    pub fn current(&self) -> ThreadRef {
        self.current
    }

    /// The thread of that number, 0 meaning the running one. ESRCH.
    pub fn thread(&self, id: ThreadId) -> Result<ThreadRef> {
        if id == 0 {
            return Ok(self.current);
        }
        self.threads.get(id).ok_or(Errno(libc::ESRCH))
    }

    /// As [`Engine::thread`], of threads that have not ended.
    pub fn living_thread(&self, id: ThreadId) -> Result<ThreadRef> {
        self.thread(id).and_then(|thread| {
            if thread.state.get() == State::Dead { Err(Errno(libc::ESRCH)) } else { Ok(thread) }
        })
    }

    /// A new thread, ready to be chosen. EAGAIN, EINVAL: no such stack.
    pub fn create(
        &mut self,
        name: &CStr,
        stack_size: usize,
        userdata: *mut c_void,
        body: Body,
    ) -> Result<ThreadRef> {
        let stack = self.stacks.take(stack_size)?;
        let id = self.threads.next_id();
        let thread = ThreadRef::allocate(id, name, userdata, self.scheduler.record_size());
        thread.body.set(Some(body));
        thread.stack.set(Some(stack.extent()));
        let fiber = crate::process::fiber(stack, thread);
        // SAFETY: nothing runs on the fiber yet.
        unsafe { *thread.fiber.get() = Some(fiber) };
        self.threads.insert(thread);
        self.living += 1;
        self.created += 1;
        let now = clock::now();
        self.scheduler.init_thread(thread, now);
        self.links.link_thread(thread);
        self.raise(Event::NewThread, Some(thread), now);
        Ok(thread)
    }

    /// The running thread is about to wait. Its place in a queue or the like is set up already.
    pub fn prepare_wait(&mut self, waits_for: WaitsFor, deadline: i64) {
        let me = self.current;
        me.waits_for.set(waits_for);
        me.outcome.set(0);
        if deadline != NEVER {
            self.timers.set(me, Kind::Wake, deadline);
        }
    }

    /// A timeout that was set with [`Engine::prepare_wait`] does not happen any more.
    pub fn end_timeout(&mut self, thread: ThreadRef) {
        self.timers.cancel(thread, Kind::Wake);
    }

    /// What the thread waits for has come, or will not (an errno).
    pub fn wake(&mut self, thread: ThreadRef, outcome: i32) {
        self.settle(thread, outcome);
        self.tell_ready(thread, clock::now());
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

    /// Another thread does not run until it is resumed. EALREADY, ENOTSUP.
    pub fn suspend_other(&mut self, thread: ThreadRef) -> Result<()> {
        self.may_suspend(thread)?;
        thread.suspended.set(true);
        // Where blocking is told as suspending, the scheduler has heard of it already.
        if thread.state.get() != State::Waiting || !self.waits_by_suspending() {
            self.raise(Event::SuspendThread, Some(thread), clock::now());
        }
        Ok(())
    }

    pub fn may_suspend(&self, thread: ThreadRef) -> Result<()> {
        if !self.scheduler.has(Event::SuspendThread) || !self.scheduler.has(Event::ResumeThread) {
            return Err(Errno(libc::ENOTSUP));
        }
        if thread.suspended.get() { Err(Errno(libc::EALREADY)) } else { Ok(()) }
    }

    /// EINVAL: it is not suspended.
    pub fn resume(&mut self, thread: ThreadRef) -> Result<()> {
        if !thread.suspended.replace(false) {
            return Err(Errno(libc::EINVAL));
        }
        if thread.state.get() != State::Waiting || !self.wakes_by_resuming() {
            self.raise(Event::ResumeThread, Some(thread), clock::now());
        }
        Ok(())
    }

    /// EAGAIN: the thread could not run next.
    pub fn may_yield_to(&mut self, thread: ThreadRef) -> Result<()> {
        let runnable = thread.state.get() == State::Ready && !thread.suspended.get();
        let now = clock::now();
        if runnable && self.scheduler.allows(Event::CanSwitchTo, thread, now) {
            Ok(())
        } else {
            Err(Errno(libc::EAGAIN))
        }
    }

    /// The running thread stops; which one runs next. None: there is no thread left.
    pub fn switch(&mut self, leave: Leave) -> Option<ThreadRef> {
        let me = self.current;
        let now = clock::now();
        me.state.set(State::Ready);
        match leave {
            Leave::Yield => {}
            Leave::YieldTo(other) => self.raise(Event::SetNextThread, Some(other), now),
            Leave::Wait => {
                me.state.set(State::Waiting);
                let suspends = self.waits_by_suspending();
                self.raise(if suspends { Event::SuspendThread } else { Event::SetWaiting }, Some(me), now);
            }
            Leave::Suspend => {
                me.suspended.set(true);
                self.raise(Event::SuspendThread, Some(me), now);
            }
            Leave::Exit => {
                if let Some(joiner) = me.joiner.get() {
                    me.state.set(State::Running);
                    self.wake(joiner, 0);
                }
                me.state.set(State::Dead);
                self.raise(Event::SetDead, Some(me), now);
            }
        }
        self.raise(Event::SwitchOut, Some(me), now);
        if me.is_destroyed() && !matches!(leave, Leave::Exit) {
            let name = self.scheduler.name().to_string_lossy();
            report::scheduler_failed(&format!(
                "{name} destroyed {}, which has not ended",
                report::describe(me)
            ));
        }
        if matches!(leave, Leave::Exit) {
            self.bury(me);
            if self.living == 0 {
                return None;
            }
        }
        Some(self.choose(now))
    }

    /// Takes a thread that has been joined, or that nobody will join, out of the world.
    pub fn forget(&mut self, thread: ThreadRef) {
        self.threads.remove(thread);
        // SAFETY: it is dead, so in no queue, and the table was the last to hold it.
        unsafe { thread.free() };
    }

    /// Numbers for attune_stats.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            created: self.created,
            living: self.living,
            switches: self.switches,
            ..Counts::default()
        };
        for thread in self.threads.iter() {
            match thread.state.get() {
                State::Ready => counts.ready += 1,
                State::Waiting => counts.waiting += 1,
                State::Running | State::Dead => continue,
            }
            counts.suspended += u64::from(thread.suspended.get());
        }
        counts
    }

    /// Lets the scheduler choose until a thread runs.
    fn choose(&mut self, mut now: i64) -> ThreadRef {
        let next = loop {
            let chosen = self.scheduler.schedule(now);
            self.take_alarms();
            if let Some(next) = chosen {
                break next;
            }
            now = self.idle();
        };
        if next.state.get() != State::Ready || next.suspended.get() {
            let name = self.scheduler.name().to_string_lossy();
            let container = self.scheduler.container_of(next);
            let what = report::describe(next);
            report::scheduler_failed(&format!(
                "{name} dispatched {what}, which cannot run; it is in {container}"
            ));
        }
        next.state.set(State::Running);
        next.waits_for.set(WaitsFor::Nothing);
        self.current = next;
        self.switches += 1;
        self.look(now);
        next
    }

    /// Waits until one event has been told to the scheduler; returns the time.
    fn idle(&mut self) -> i64 {
        let mut now = clock::now();
        loop {
            self.expire_timers(now);
            if self.tell_one(now) {
                return now;
            }
            let waiting = self.descriptors.waiting() > 0;
            let mut timeout = match self.timers.next() {
                Some(at) => at.saturating_sub(now).max(0),
                None if waiting => clock::FOREVER,
                None => report::deadlock(&self.scheduler, &self.threads),
            };
            let sweep = waiting && self.unswept && !(0..SWEEP_EVERY).contains(&timeout);
            if sweep {
                timeout = SWEEP_EVERY;
            }
            let heard = self.ask(timeout);
            if sweep && !heard {
                self.sweep(usize::MAX);
                self.unswept = false;
            }
            now = clock::now();
        }
    }

    /// Tells what has come meanwhile, while a thread counts as running. Costs next to nothing most of the time.
    #[inline]
    fn look(&mut self, now: i64) {
        self.unswept = true;
        if self.timers.next().is_some_and(|at| at <= now) {
            self.expire_timers(now);
        }
        if now >= self.next_look && self.descriptors.waiting() > 0 {
            self.next_look = now + LOOK_EVERY;
            self.ask(0);
            if now >= self.next_sweep {
                self.next_sweep = now + SWEEP_SOME_EVERY;
                self.sweep(SWEEP_SOME);
            }
        }
        while !self.due.is_empty() {
            self.tell_one(now);
        }
    }

    fn ask(&mut self, timeout: i64) -> bool {
        let mut reported = std::mem::take(&mut self.reported);
        let heard = self.descriptors.poll(timeout, &mut reported);
        self.settle_all(&mut reported, 0);
        self.reported = reported;
        heard
    }

    fn sweep(&mut self, count: usize) {
        let mut lost = Vec::new();
        self.descriptors.sweep(count, &mut lost);
        self.settle_all(&mut lost, libc::EBADF);
    }

    fn settle_all(&mut self, threads: &mut Vec<ThreadRef>, outcome: i32) {
        for thread in threads.drain(..) {
            // Two of its descriptors may have reported.
            if matches!(thread.waits_for.get(), WaitsFor::Descriptors(..)) {
                self.settle(thread, outcome);
                self.due.push_back(Due::Ready(thread));
            }
        }
    }

    fn expire_timers(&mut self, now: i64) {
        while let Some((thread, kind)) = self.timers.expire(now) {
            match kind {
                Kind::Alarm => self.due.push_back(Due::Alarm(thread)),
                Kind::Wake => self.end_wait_by_time(thread),
            }
        }
    }

    fn end_wait_by_time(&mut self, thread: ThreadRef) {
        let outcome = if thread.waits_for.get() == WaitsFor::Time { 0 } else { libc::ETIMEDOUT };
        // SAFETY: a waiter for a condition names its mutex, which outlives the wait.
        if let Some(mutex) = unsafe { thread.retakes.get().as_ref() } {
            sync::unlink(thread);
            if !mutex.retake(thread, outcome) {
                return;
            }
        }
        self.settle(thread, outcome);
        self.due.push_back(Due::Ready(thread));
    }

    /// The wait is over, whatever it was; the scheduler does not know yet.
    fn settle(&mut self, thread: ThreadRef, outcome: i32) {
        self.timers.cancel(thread, Kind::Wake);
        sync::unlink(thread);
        // SAFETY: the slice lies on the stack of the thread, which is still blocked.
        for waiter in unsafe { &*thread.waiters.replace(&[] as *const [Waiter]) } {
            self.descriptors.remove(waiter);
        }
        thread.waits_for.set(WaitsFor::Nothing);
        thread.outcome.set(outcome);
    }

    fn tell_one(&mut self, now: i64) -> bool {
        match self.due.pop_front() {
            Some(Due::Ready(thread)) => self.tell_ready(thread, now),
            Some(Due::Alarm(thread)) => self.raise(Event::Alarm, Some(thread), now),
            None => return false,
        }
        true
    }

    fn tell_ready(&mut self, thread: ThreadRef, now: i64) {
        thread.state.set(State::Ready);
        if !self.wakes_by_resuming() {
            self.raise(Event::EventRaised, Some(thread), now);
        } else if !thread.suspended.get() {
            self.raise(Event::ResumeThread, Some(thread), now);
        }
    }

    fn bury(&mut self, thread: ThreadRef) {
        self.scheduler.remove(thread);
        self.timers.cancel(thread, Kind::Alarm);
        self.due.retain(|due| !matches!(due, Due::Alarm(other) if *other == thread));
        // SAFETY: it has left its stack for the last time.
        if let Some(mut fiber) = unsafe { (*thread.fiber.get()).take() } {
            // SAFETY: nothing is resumed on it again; a thread that called attune_exit gives up what lies there.
            unsafe { fiber.force_reset() };
            self.stacks.give_back(fiber.into_stack());
        }
        thread.stack.set(None);
        overflow::runs(None);
        self.living -= 1;
        if thread.detached.get() {
            self.forget(thread);
        }
    }

    #[inline]
    fn raise(&mut self, event: Event, thread: Option<ThreadRef>, now: i64) {
        self.scheduler.raise(event, thread, now);
        self.take_alarms();
    }

    #[inline]
    fn take_alarms(&mut self) {
        if !self.scheduler.wants_alarms() {
            return;
        }
        for (thread, at) in self.scheduler.take_alarms() {
            if at <= 0 {
                self.timers.cancel(thread, Kind::Alarm);
            } else {
                self.timers.set(thread, Kind::Alarm, at);
            }
        }
    }

    /// Blocking is told with `suspend_thread`.
    fn waits_by_suspending(&self) -> bool {
        !self.scheduler.has(Event::SetWaiting) && !self.scheduler.has(Event::EventRaised)
    }

    /// Waking is told with `resume_thread`.
    fn wakes_by_resuming(&self) -> bool {
        !self.scheduler.has(Event::EventRaised)
    }
}

/// See `struct attune_statistics`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub created: u64,
    pub living: u64,
    pub ready: u64,
    pub waiting: u64,
    pub suspended: u64,
    pub switches: u64,
}
