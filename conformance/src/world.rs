//! An engine reduced to its protocol: threads that come, run, block, wake and end at random, and the calls of handlers that
//! this makes, in the order of ARCHITECTURE's "Life of a thread".
//!
//! Invariants: what happens next depends on the steps and on the decisions made so far, so the same steps make the same
//! calls on every subject that decides the same. A call that the protocol does not allow is never made. Times are
//! nanoseconds.

use std::collections::BTreeMap;

use attune_language::event::{Event, Parameter};
use attune_simulator::policy::{Call, CpuSet, Decision, Dispatch, ThreadId, Value};

use crate::random::Random;

/// One turn of chance: what happens, to whom, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub what: u32,
    pub who: u32,
    pub amount: u32,
}

pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut step =
        || Step { what: random.draw() as u32, who: random.draw() as u32, amount: random.draw() as u32 };
    (0..count).map(|_| step()).collect()
}

/// What the world is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub cpus: u32,
    /// Threads may be allowed on some CPUs only.
    pub pinning: bool,
    /// Slices expire, `preempt` is obeyed.
    pub preemptive: bool,
    /// A thread may be taken away whatever it does, as the kernel can.
    pub killing: bool,
    pub max_threads: u32,
    /// The application has registered the imports, and writes them.
    pub imports: bool,
}

/// Whoever runs the scheduler.
pub trait Subject {
    fn handles(&self, event: Event) -> bool;
    /// How many imports there are: per thread, global.
    fn imports(&self) -> (usize, usize);
    fn create(&mut self, thread: ThreadId, affinity: &CpuSet, now: i64) -> Result<(), Ending>;
    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet);
    fn remove(&mut self, thread: ThreadId);
    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value);
    fn write_global_import(&mut self, import: usize, value: Value);
    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Ending>;
    /// Whether the thread sits in a container.
    fn is_stored(&self, thread: ThreadId) -> bool;
    /// Everything has come to rest: the subject may look at itself.
    fn settled(&mut self) -> Result<(), Ending>;
}

/// Why a run ended before its steps did.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// A check failed: its number, and the message.
    Trapped { check: Option<u32>, message: String },
    /// The scheduler decided what no engine accepts.
    Refused(String),
    /// Two engines differ.
    Differs(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Running(u32),
    Waiting,
}

#[derive(Clone, Debug)]
struct Thread {
    state: State,
    suspended: bool,
    affinity: CpuSet,
}

impl Thread {
    fn is_ready(&self) -> bool {
        self.state == State::Ready && !self.suspended
    }
}

pub struct World {
    setting: Setting,
    now: i64,
    threads: BTreeMap<ThreadId, Thread>,
    /// By CPU: who runs, and whether its slice is bounded.
    running: Vec<Option<(ThreadId, bool)>>,
    alarms: BTreeMap<ThreadId, i64>,
    preempted: Vec<u32>,
    /// By CPU: from when on it is to choose again, if it has not chosen since.
    preempt_at: Vec<Option<i64>>,
    decision: Decision,
    /// Handlers called so far.
    pub calls: u64,
    /// In words, if it is kept.
    pub history: Option<Vec<String>>,
}

/// What may happen, with its weight.
const HAPPENINGS: [(Happening, u32); 17] = [
    (Happening::Spawn, 14),
    (Happening::Yield, 22),
    (Happening::SliceUsedUp, 10),
    (Happening::YieldTo, 8),
    (Happening::Block, 20),
    (Happening::SuspendItself, 4),
    (Happening::End, 5),
    (Happening::Wake, 24),
    (Happening::Suspend, 5),
    (Happening::Resume, 8),
    (Happening::Alarm, 10),
    (Happening::Query, 8),
    (Happening::WriteThreadImport, 8),
    (Happening::WriteGlobalImport, 5),
    (Happening::SetAffinity, 4),
    (Happening::Pass, 4),
    (Happening::Kill, 4),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happening {
    Spawn,
    Yield,
    SliceUsedUp,
    YieldTo,
    Block,
    SuspendItself,
    End,
    Wake,
    Suspend,
    Resume,
    Alarm,
    Query,
    WriteThreadImport,
    WriteGlobalImport,
    SetAffinity,
    /// Time goes by, and idle CPUs ask again.
    Pass,
    Kill,
}

impl World {
    pub fn new(setting: Setting) -> World {
        World {
            setting,
            now: 0,
            threads: BTreeMap::new(),
            running: vec![None; setting.cpus as usize],
            alarms: BTreeMap::new(),
            preempted: Vec::new(),
            preempt_at: vec![None; setting.cpus as usize],
            decision: Decision::default(),
            calls: 0,
            history: None,
        }
    }

    /// From `init` on, until the steps or the scheduler end.
    pub fn run(&mut self, steps: &[Step], subject: &mut dyn Subject) -> Result<(), Ending> {
        self.call(subject, Event::Init, None, 0)?;
        self.settle(subject)?;
        for &step in steps {
            self.step(step, subject)?;
        }
        Ok(())
    }

    fn step(&mut self, step: Step, subject: &mut dyn Subject) -> Result<(), Ending> {
        self.now += i64::from(step.amount % 5_000_000);
        let cpu = step.amount % self.setting.cpus;
        let Some(happening) = self.happening(step, cpu, subject) else { return Ok(()) };
        if self.happen(happening, step, cpu, subject)? {
            self.settle(subject)?;
        }
        Ok(())
    }

    /// Chosen among what is possible now.
    fn happening(&self, step: Step, cpu: u32, subject: &dyn Subject) -> Option<Happening> {
        let possible = |&&(happening, _): &&(Happening, u32)| self.is_possible(happening, cpu, subject);
        let sum: u32 = HAPPENINGS.iter().filter(possible).map(|(_, weight)| weight).sum();
        let mut at = step.what % sum.max(1);
        for &(happening, weight) in HAPPENINGS.iter().filter(possible) {
            if at < weight {
                return Some(happening);
            }
            at -= weight;
        }
        None
    }

    fn is_possible(&self, happening: Happening, cpu: u32, subject: &dyn Subject) -> bool {
        let running = self.running[cpu as usize];
        let any = |wanted: &dyn Fn(&Thread) -> bool| self.threads.values().any(wanted);
        let (thread_imports, global_imports) = subject.imports();
        match happening {
            Happening::Spawn => (self.threads.len() as u32) < self.setting.max_threads,
            Happening::Yield | Happening::End => running.is_some(),
            Happening::Block => running.is_some() && self.blocks(subject).is_some(),
            Happening::SliceUsedUp => self.setting.preemptive && running.is_some_and(|(_, bounded)| bounded),
            Happening::YieldTo => {
                running.is_some() && subject.handles(Event::SetNextThread) && any(&Thread::is_ready)
            }
            Happening::SuspendItself => {
                running.is_some()
                    && subject.handles(Event::SuspendThread)
                    && subject.handles(Event::ResumeThread)
            }
            Happening::Wake => any(&|thread| thread.state == State::Waiting),
            Happening::Suspend => {
                subject.handles(Event::SuspendThread)
                    && subject.handles(Event::ResumeThread)
                    && any(&may_be_suspended)
            }
            Happening::Resume => any(&|thread| thread.suspended),
            Happening::Alarm => subject.handles(Event::Alarm) && !self.alarms.is_empty(),
            Happening::Query => Event::ALL.iter().any(|&event| event.is_query() && subject.handles(event)),
            Happening::WriteThreadImport => {
                self.setting.imports && thread_imports > 0 && !self.threads.is_empty()
            }
            Happening::WriteGlobalImport => self.setting.imports && global_imports > 0,
            Happening::SetAffinity => {
                self.setting.pinning && self.setting.cpus > 1 && !self.threads.is_empty()
            }
            Happening::Pass => true,
            Happening::Kill => self.setting.killing && !self.threads.is_empty(),
        }
    }

    /// Makes it happen. False if idle CPUs need not ask again.
    fn happen(
        &mut self,
        happening: Happening,
        step: Step,
        cpu: u32,
        subject: &mut dyn Subject,
    ) -> Result<bool, Ending> {
        match happening {
            Happening::Spawn => self.spawn(step, cpu, subject)?,
            Happening::Yield => self.stop(cpu, None, State::Ready, subject)?,
            Happening::SliceUsedUp => {
                let running = self.running[cpu as usize].map(|(thread, _)| thread);
                self.stop(cpu, running.map(|thread| (Event::QuantumExpired, thread)), State::Ready, subject)?;
            }
            Happening::YieldTo => {
                let next = self.pick(step, Thread::is_ready);
                self.stop(cpu, next.map(|next| (Event::SetNextThread, next)), State::Ready, subject)?;
            }
            Happening::Block => {
                let running = self.running[cpu as usize].map(|(thread, _)| thread);
                let told = running.zip(self.blocks(subject)).map(|(thread, event)| (event, thread));
                self.stop(cpu, told, State::Waiting, subject)?;
            }
            Happening::SuspendItself => {
                let Some((thread, _)) = self.running[cpu as usize] else { return Ok(false) };
                if let Some(suspended) = self.threads.get_mut(&thread) {
                    suspended.suspended = true;
                }
                self.stop(cpu, Some((Event::SuspendThread, thread)), State::Ready, subject)?;
            }
            Happening::End => self.end(cpu, subject)?,
            Happening::Wake => self.wake(step, cpu, subject)?,
            Happening::Suspend => {
                if let Some(thread) = self.pick(step, may_be_suspended) {
                    self.change(thread, |thread| thread.suspended = true);
                    self.call(subject, Event::SuspendThread, Some(thread), cpu)?;
                }
            }
            Happening::Resume => {
                if let Some(thread) = self.pick(step, |thread| thread.suspended) {
                    self.change(thread, |thread| thread.suspended = false);
                    self.call(subject, Event::ResumeThread, Some(thread), cpu)?;
                }
            }
            Happening::Alarm => self.alarm(step, cpu, subject)?,
            Happening::Query => {
                self.query(step, cpu, subject)?;
                return Ok(false);
            }
            Happening::WriteThreadImport => {
                let import = step.amount as usize % subject.imports().0;
                if let Some(thread) = self.pick(step, |_| true) {
                    let value = imported(step);
                    self.note(|| format!("thread import {import} of {thread} := {value:?}"));
                    subject.write_thread_import(thread, import, value);
                }
                return Ok(false);
            }
            Happening::WriteGlobalImport => {
                let import = step.who as usize % subject.imports().1;
                let value = imported(step);
                self.note(|| format!("global import {import} := {value:?}"));
                subject.write_global_import(import, value);
                return Ok(false);
            }
            Happening::SetAffinity => {
                let cpus = self.setting.cpus;
                if let Some(thread) = self.pick(step, |thread| !matches!(thread.state, State::Running(_))) {
                    let affinity = affinity(step.amount, cpus);
                    self.change(thread, |thread| thread.affinity = affinity);
                    self.note(|| format!("thread {thread} may run on {affinity:?}"));
                    subject.set_affinity(thread, &affinity);
                }
            }
            Happening::Pass => {}
            Happening::Kill => self.kill(step, cpu, subject)?,
        }
        Ok(true)
    }

    fn spawn(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let free = (0..).map(ThreadId).find(|id| !self.threads.contains_key(id));
        let Some(thread) = free else { return Ok(()) };
        let pinned = self.setting.pinning && self.setting.cpus > 1 && step.who.is_multiple_of(4);
        let affinity = if pinned { affinity(step.who / 4, self.setting.cpus) } else { CpuSet::ALL };
        self.threads.insert(thread, Thread { state: State::Ready, suspended: false, affinity });
        self.note(|| format!("thread {thread} is made"));
        subject.create(thread, &affinity, self.now)?;
        self.call(subject, Event::NewThread, Some(thread), cpu)
    }

    /// The event that tells the policy that the running thread blocks.
    fn blocks(&self, subject: &dyn Subject) -> Option<Event> {
        if subject.handles(Event::SetWaiting) && subject.handles(Event::EventRaised) {
            Some(Event::SetWaiting)
        } else if subject.handles(Event::SuspendThread) && subject.handles(Event::ResumeThread) {
            Some(Event::SuspendThread)
        } else {
            None
        }
    }

    /// The running thread stops: whatever is told first, then `switch_out`, then `schedule`.
    fn stop(
        &mut self,
        cpu: u32,
        told: Option<(Event, ThreadId)>,
        next: State,
        subject: &mut dyn Subject,
    ) -> Result<(), Ending> {
        let Some((thread, _)) = self.running[cpu as usize] else { return Ok(()) };
        if let Some((event, about)) = told {
            self.call(subject, event, Some(about), cpu)?;
        }
        self.call(subject, Event::SwitchOut, Some(thread), cpu)?;
        self.running[cpu as usize] = None;
        self.change(thread, |thread| thread.state = next);
        self.schedule(cpu, subject).map(|_| ())
    }

    fn end(&mut self, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let Some((thread, _)) = self.running[cpu as usize] else { return Ok(()) };
        self.call(subject, Event::SetDead, Some(thread), cpu)?;
        self.call(subject, Event::SwitchOut, Some(thread), cpu)?;
        self.running[cpu as usize] = None;
        self.forget(thread, subject);
        self.schedule(cpu, subject).map(|_| ())
    }

    /// A thread is taken away, perhaps by another CPU than its own: no `switch_out` follows.
    fn kill(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let Some(thread) = self.pick(step, |_| true) else { return Ok(()) };
        self.call(subject, Event::SetDead, Some(thread), cpu)?;
        for running in &mut self.running {
            running.take_if(|(running, _)| *running == thread);
        }
        self.forget(thread, subject);
        Ok(())
    }

    fn forget(&mut self, thread: ThreadId, subject: &mut dyn Subject) {
        self.threads.remove(&thread);
        self.alarms.remove(&thread);
        self.note(|| format!("thread {thread} is removed"));
        subject.remove(thread);
    }

    fn wake(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let Some(thread) = self.pick(step, |thread| thread.state == State::Waiting) else { return Ok(()) };
        self.change(thread, |thread| thread.state = State::Ready);
        let usual = subject.handles(Event::SetWaiting) && subject.handles(Event::EventRaised);
        let event = if usual { Event::EventRaised } else { Event::ResumeThread };
        self.call(subject, event, Some(thread), cpu)
    }

    fn alarm(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let due: Vec<(ThreadId, i64)> = self.alarms.iter().map(|(&thread, &at)| (thread, at)).collect();
        let Some(&(thread, at)) = due.get(step.who as usize % due.len().max(1)) else { return Ok(()) };
        // What lies too far ahead never comes.
        if at > self.now.saturating_add(50_000_000) {
            return Ok(());
        }
        self.now = self.now.max(at);
        self.alarms.remove(&thread);
        self.call(subject, Event::Alarm, Some(thread), cpu)
    }

    fn query(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let handled: Vec<Event> =
            Event::ALL.into_iter().filter(|&event| event.is_query() && subject.handles(event)).collect();
        let Some(&query) = handled.get(step.amount as usize % handled.len().max(1)) else { return Ok(()) };
        let thread = match query.parameter() {
            Parameter::None => None,
            _ => match self.pick(step, |_| true) {
                Some(thread) => Some(thread),
                None => return Ok(()),
            },
        };
        self.call(subject, query, thread, cpu)
    }

    /// Obeys `preempt`, then lets idle CPUs ask until nothing more can run; then everything is looked at.
    fn settle(&mut self, subject: &mut dyn Subject) -> Result<(), Ending> {
        for cpu in 0..self.setting.cpus {
            if self.preempt_at[cpu as usize].is_some_and(|at| at <= self.now) {
                self.preempt(cpu);
            }
        }
        for _ in 0..4 {
            let preempted = std::mem::take(&mut self.preempted);
            for cpu in preempted {
                self.stop(cpu, None, State::Ready, subject)?;
            }
        }
        self.preempted.clear();
        let mut dispatched = true;
        while dispatched {
            dispatched = false;
            for cpu in 0..self.setting.cpus {
                if self.running[cpu as usize].is_none() {
                    dispatched |= self.schedule(cpu, subject)?;
                }
            }
        }
        self.preempted.clear();
        if let Some(lost) = self.threads.keys().find(|&&thread| !subject.is_stored(thread)) {
            return Err(Ending::Refused(format!("thread {lost} lives and is in no container")));
        }
        subject.settled()
    }

    /// Whether a thread was dispatched.
    fn schedule(&mut self, cpu: u32, subject: &mut dyn Subject) -> Result<bool, Ending> {
        self.preempt_at[cpu as usize] = None;
        self.call(subject, Event::Schedule, None, cpu)?;
        let Some(Dispatch { thread, slice }) = self.decision.dispatch else { return Ok(false) };
        let refused =
            |why: &str| Err(Ending::Refused(format!("thread {thread} was dispatched, which {why}")));
        match self.threads.get_mut(&thread) {
            None => refused("does not live"),
            Some(dispatched) if !dispatched.is_ready() => refused("is not ready"),
            Some(dispatched) if !dispatched.affinity.contains(cpu) => refused("may not run there"),
            Some(dispatched) => {
                dispatched.state = State::Running(cpu);
                self.running[cpu as usize] = Some((thread, slice.is_some_and(|slice| slice >= 0)));
                Ok(true)
            }
        }
    }

    fn call(
        &mut self,
        subject: &mut dyn Subject,
        event: Event,
        thread: Option<ThreadId>,
        cpu: u32,
    ) -> Result<(), Ending> {
        self.decision.clear();
        if !subject.handles(event) {
            return Ok(());
        }
        let call = Call { event, thread, now: self.now, cpu, cpus: self.setting.cpus };
        self.calls += 1;
        let about = thread.map_or(String::new(), |thread| format!("({thread})"));
        let now = self.now;
        self.note(|| format!("{event}{about} on CPU {cpu} at {now}"));
        subject.call(&call, &mut self.decision)?;
        for &(thread, at) in &self.decision.alarms {
            if at > 0 {
                self.alarms.insert(thread, at);
            } else {
                self.alarms.remove(&thread);
            }
        }
        if self.setting.preemptive {
            for (cpu, at) in std::mem::take(&mut self.decision.preempt) {
                let Some(cpu) = u32::try_from(cpu).ok().filter(|&cpu| cpu < self.setting.cpus) else {
                    continue;
                };
                if at <= self.now {
                    self.preempt(cpu);
                } else if self.running[cpu as usize].is_some() {
                    let asked = &mut self.preempt_at[cpu as usize];
                    *asked = Some(asked.map_or(at, |earlier| earlier.min(at)));
                }
            }
        }
        Ok(())
    }

    /// Asking twice is asking once; a `schedule` that asks in a loop would otherwise double the work with each round.
    fn preempt(&mut self, cpu: u32) {
        if !self.preempted.contains(&cpu) {
            self.preempted.push(cpu);
        }
    }

    fn pick(&self, step: Step, wanted: impl Fn(&Thread) -> bool) -> Option<ThreadId> {
        let found: Vec<ThreadId> =
            self.threads.iter().filter(|(_, thread)| wanted(thread)).map(|(&id, _)| id).collect();
        found.get(step.who as usize % found.len().max(1)).copied()
    }

    fn change(&mut self, thread: ThreadId, change: impl FnOnce(&mut Thread)) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            change(thread);
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            history.push(line());
        }
    }
}

/// Another thread than the running ones, not suspended yet.
fn may_be_suspended(thread: &Thread) -> bool {
    !thread.suspended && !matches!(thread.state, State::Running(_))
}

/// Some CPUs, at least one.
fn affinity(chance: u32, cpus: u32) -> CpuSet {
    let mut set: CpuSet = (0..cpus).filter(|cpu| chance >> (cpu % 16) & 1 == 1).collect();
    if set.is_empty() {
        set.insert(chance % cpus);
    }
    set
}

fn imported(step: Step) -> Value {
    match step.what % 5 {
        0 => Value::Float(f64::from(step.amount) / 1000.0 - 500_000.0),
        1 => Value::Int(i64::from(step.amount) - (1 << 31)),
        2 => Value::Int(0),
        _ => Value::Int(i64::from(step.amount % 20)),
    }
}
