//! The engine's core: which thread runs, and in which order the scheduler hears of events.
//!
//! The order is that of "The life of a thread" in docs/internals/decisions.md. One reading of the
//! clock serves the handlers of one scheduling point (why the thread stops, `switch_out`,
//! `schedule`). Events that come from outside (descriptors, timers) are raised one at a time: while
//! a thread counts as running, just after it was chosen; or on the idle processor, and then
//! `schedule` follows each. So no event ever comes between `switch_out` and `schedule`.
//!
//! Invariants: exactly one thread is Running, except inside [`Engine::switch`]; a Waiting thread is
//! in one of: a queue, the timers, the descriptors' waiters, another thread's `joiner`, `asking`,
//! `pending`; or a transfer or call of its own is under way.
//!
//! The engine takes the processor away from a thread only at a safe point, and only in a program
//! that has opted in (stay.rs). In others `dispatch t for d` does not bound the stay,
//! `quantum_expired` never comes and `preempt` has no effect.

pub mod board;
mod calls;
mod mail;
pub mod modes;
mod moves;
mod node;
mod outside;
mod ready;
mod stay;
mod suspending;
mod switching;
mod time;
mod traced;
mod waits;
pub mod worker;

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, c_void};
use std::sync::atomic::Ordering::Relaxed;

use crate::clock;
use crate::control::{self, Hint};
use crate::errno::{Errno, Result};
use crate::fiber;
use crate::import_bindings::ImportBindings;
use crate::io::Descriptors;
use crate::scheduler::Scheduler;
use crate::stack::{Extent, StackPool};
use crate::thread::{BlockPool, Body, Leave, State, ThreadId, ThreadRef, WaitsFor};
use crate::thread_table::ThreadTable;
use crate::timers::{Kind, Timers};
use crate::trace::recorder::Recorder;
use attune_abi::{Event, Variable};
use moves::Moves;
use node::Asking;
use stay::Stay;
use time::Time;
use worker::{Message, Worker};

/// A thread that is to be.
pub struct New<'a> {
    pub name: &'a CStr,
    /// 0: the default.
    pub stack_size: usize,
    pub userdata: *mut c_void,
    pub detached: bool,
    /// As if it had pinned itself.
    pub pinned: bool,
    pub body: Body,
}

/// An event that the scheduler has not been told of.
enum Pending {
    /// The thread's wait has ended.
    Ready(ThreadRef),
    Alarm(ThreadRef),
}

pub struct Engine {
    worker: &'static Worker,
    /// Messages of other workers that have been taken from the inbox.
    mail: VecDeque<Message>,
    pub scheduler: Scheduler,
    pub threads: ThreadTable,
    pub stacks: StackPool,
    blocks: BlockPool,
    pub bindings: ImportBindings,
    /// Values that the user gives for all threads.
    pub hints: Vec<Hint>,
    pub descriptors: Descriptors,
    timers: Timers,
    time: Time,
    current: ThreadRef,
    /// The running thread's.
    stay: Stay,
    moves: Moves,
    /// None: nothing is traced.
    trace: Option<Box<Recorder>>,
    /// A call of another worker runs, and not the current thread.
    serves: bool,
    pending: VecDeque<Pending>,
    /// By the number of a request, the thread that waits for its answer.
    asking: HashMap<u64, Asking>,
    /// Calls that helpers make for threads of this worker.
    calls: usize,
    /// Scratch for what descriptors report.
    reported: Vec<ThreadRef>,
    next_poll: i64,
    next_sweep: i64,
    /// Threads ran since all descriptors were swept, so some may have been closed.
    unswept: bool,
    /// Threads that were created here and have not ended.
    living: u64,
    created: u64,
    switches: u64,
}

impl Engine {
    /// Starts the scheduler. The first worker's has the program as its first thread, and chooses
    /// that; the others' have no thread yet. `is_watched`: somebody may ask for threads' times.
    pub fn start(
        worker: &'static Worker,
        scheduler: Scheduler,
        stacks: StackPool,
        ignore_unknown_imports: bool,
        is_watched: bool,
    ) -> Result<Engine> {
        let mut threads = ThreadTable::new(worker.index, worker::number_bits());
        let size = scheduler.record_size();
        let runs_program = worker.index == 0;
        let id = if runs_program { threads.next_id() } else { 0 };
        // Elsewhere it stands for the OS thread until the first thread runs: no handler sees it.
        let main = ThreadRef::allocate(id, c"main", std::ptr::null_mut(), size);
        // It runs on the stack of the worker's OS thread.
        main.stays.set(true);
        let mut descriptors = Descriptors::new()?;
        if let Some(bell) = worker.bell() {
            descriptors.watch_bell(bell);
        }
        let mut engine = Engine {
            worker,
            mail: VecDeque::new(),
            bindings: ImportBindings::new(runs_program, ignore_unknown_imports),
            hints: Vec::new(),
            scheduler,
            threads,
            stacks,
            blocks: BlockPool::new(size),
            descriptors,
            timers: Timers::default(),
            time: Time::new(is_watched, clock::now()),
            current: main,
            stay: Stay::ENDLESS,
            moves: Moves::default(),
            trace: None,
            serves: false,
            pending: VecDeque::new(),
            asking: HashMap::new(),
            calls: 0,
            reported: Vec::new(),
            next_poll: 0,
            next_sweep: 0,
            unswept: false,
            living: runs_program.into(),
            created: runs_program.into(),
            switches: 0,
        };
        worker.view.starts(&engine.scheduler);
        engine.look_around();
        let now = engine.time();
        engine.raise(Event::Init, None, now);
        if runs_program {
            engine.insert(main, now);
            engine.scheduler.init_thread(main, now);
            engine.raise(Event::NewThread, Some(main), now);
            engine.note_ready(main);
            engine.choose(now);
        }
        Ok(engine)
    }

    /// Waits for the first thread of a worker that began without one.
    pub fn begin(&mut self) -> ThreadRef {
        let stand_in = self.current;
        let first = self.choose(clock::now());
        // SAFETY: it never ran and is in no table or container; `current` was all that named it.
        unsafe { stand_in.free() };
        first
    }

    #[inline]
    pub fn worker(&self) -> &'static Worker {
        self.worker
    }

    /// Whether the thread, which waits or which this engine has, is this engine's.
    pub fn has(&self, thread: ThreadRef) -> bool {
        self.worker.has(thread)
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
    pub fn create(&mut self, new: New) -> Result<ThreadRef> {
        let New { name, stack_size, userdata, detached, pinned, body } = new;
        let stack = self.stacks.take(stack_size)?;
        let id = self.threads.next_id();
        let thread = self.blocks.create(id, name, userdata);
        thread.detached.set(detached);
        // What a Rust thread holds from one call to the next need not be Send.
        thread.stays.set(matches!(body, Body::Rust(_)));
        thread.pins.set(pinned.into());
        thread.body.set(Some(body));
        fiber::prepare(thread, stack);
        let now = self.time();
        self.insert(thread, now);
        self.living += 1;
        self.created += 1;
        self.worker.count_in();
        self.scheduler.init_thread(thread, now);
        self.bindings.bind_thread_imports(thread);
        control::catch_up(&self.hints, thread);
        self.raise(Event::NewThread, Some(thread), now);
        self.note_ready(thread);
        self.trace_state(thread, now);
        Ok(thread)
    }

    /// The value of a thread import for which neither the program nor its user supplies one.
    pub fn default_of(&mut self, import: &Variable) -> i64 {
        let size = self.scheduler.record_size();
        let fresh = ThreadRef::allocate(0, c"", std::ptr::null_mut(), size);
        self.scheduler.init_thread(fresh, clock::now());
        let value = control::read(&self.scheduler, import, fresh);
        // SAFETY: it never was a thread: nothing else has heard of it.
        unsafe { fresh.free() };
        value
    }

    fn insert(&mut self, thread: ThreadRef, now: i64) {
        thread.at.store(self.worker.index, Relaxed);
        self.threads.insert(thread);
        self.worker.view.has_threads(self.threads.slots());
        if self.time.of_every_switch {
            thread.times.begins(now);
        }
    }

    /// Frees a thread that has been joined, or that no thread will join.
    pub fn forget(&mut self, thread: ThreadRef) {
        self.threads.remove(thread);
        // SAFETY: it is dead, so in no queue, and the table was the last to hold it.
        unsafe { self.blocks.forget(thread) };
    }

    /// Numbers for attune_stats.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            created: self.created,
            living: self.living,
            moves: self.moves.given,
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

    fn retire(&mut self, thread: ThreadRef) {
        self.scheduler.remove(thread);
        self.timers.cancel(thread, Kind::Alarm);
        self.pending
            .retain(|pending| !matches!(pending, Pending::Alarm(other) if *other == thread));
        self.worker.runs(None);
        if modes::moves() {
            self.note_end();
            if self.threads.is_guest(thread) {
                return self.send_home(thread);
            }
        }
        self.bury(thread);
    }

    /// Keeps the stack of a thread that has ended and was created here.
    fn bury(&mut self, thread: ThreadRef) {
        // It has left its stack for the last time; if it called attune_exit, it gave up what lies
        // there.
        if let Some(stack) = thread.memory.take() {
            self.stacks.give_back(stack);
            thread.side.ends();
        }
        thread.stack.set(Extent::NONE);
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
        if self.scheduler.wants_alarms() {
            self.set_alarms();
        }
    }

    #[cold]
    fn set_alarms(&mut self) {
        for (thread, at) in self.scheduler.take_alarms() {
            if at <= 0 {
                self.timers.cancel(thread, Kind::Alarm);
            } else {
                self.timers.set(thread, Kind::Alarm, at);
            }
        }
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
    pub moves: u64,
}
