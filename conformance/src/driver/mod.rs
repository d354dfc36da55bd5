//! An engine reduced to its protocol: threads that start, run, block, wake and end at random, and
//! the handler calls that this makes, in the order of ARCHITECTURE's "Life of a thread".
//!
//! `subject` says what is driven, `happening` what may happen to threads.
//!
//! With several instances, instance i has the CPUs from i * cpus on; a handler about a thread runs
//! on a CPU of the thread's instance.
//!
//! Invariants: what happens next depends on the steps and on the decisions made so far, so the same
//! steps make the same calls on every subject that decides the same. The driver never makes a call
//! that the protocol does not allow. Times are nanoseconds.

mod happening;
mod subject;

use std::collections::BTreeMap;

use attune_language::engine::event::Event;
use attune_simulator::scheduler::{Call, CpuSet, Decision, Dispatch, ThreadId};

pub use subject::{Ending, Setting, Step, Subject, steps};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Running(u32),
    Waiting,
}

#[derive(Clone, Debug)]
struct Thread {
    instance: u32,
    state: State,
    suspended: bool,
    affinity: CpuSet,
}

impl Thread {
    fn is_ready(&self) -> bool {
        self.state == State::Ready && !self.suspended
    }
}

pub struct ProtocolDriver {
    setting: Setting,
    now: i64,
    threads: BTreeMap<ThreadId, Thread>,
    /// By CPU: the thread that runs, and whether its slice is bounded.
    running: Vec<Option<(ThreadId, bool)>>,
    alarms: BTreeMap<ThreadId, i64>,
    preempted: Vec<u32>,
    /// By CPU: from when on it is to choose again, if it has not chosen since.
    preempt_at: Vec<Option<i64>>,
    decision: Decision,
    /// Handlers called so far.
    pub calls: u64,
    /// Times that a thread went to another instance.
    pub moves: u64,
    /// In words, if it is kept.
    pub history: Option<Vec<String>>,
}

impl ProtocolDriver {
    pub fn new(setting: Setting) -> ProtocolDriver {
        ProtocolDriver {
            setting,
            now: 0,
            threads: BTreeMap::new(),
            running: vec![None; (setting.instances * setting.cpus) as usize],
            alarms: BTreeMap::new(),
            preempted: Vec::new(),
            preempt_at: vec![None; (setting.instances * setting.cpus) as usize],
            decision: Decision::default(),
            calls: 0,
            moves: 0,
            history: None,
        }
    }

    /// From `init` on, until the steps or the scheduler end.
    pub fn run(&mut self, steps: &[Step], subject: &mut dyn Subject) -> Result<(), Ending> {
        for instance in 0..self.setting.instances {
            self.call(subject, Event::Init, None, instance * self.setting.cpus)?;
        }
        self.settle(subject)?;
        for &step in steps {
            self.step(step, subject)?;
        }
        Ok(())
    }

    /// How many CPUs all instances have.
    fn cpus(&self) -> u32 {
        self.setting.instances * self.setting.cpus
    }

    /// That CPU, or its counterpart in the instance of the thread.
    fn near(&self, cpu: u32, thread: ThreadId) -> u32 {
        let instance = self.threads.get(&thread).map_or(0, |thread| thread.instance);
        instance * self.setting.cpus + cpu % self.setting.cpus
    }

    fn step(&mut self, step: Step, subject: &mut dyn Subject) -> Result<(), Ending> {
        self.now += i64::from(step.amount % 5_000_000);
        let cpu = step.amount % self.cpus();
        let Some(happening) = self.happening(step, cpu, subject) else { return Ok(()) };
        if self.happen(happening, step, cpu, subject)? {
            self.settle(subject)?;
        }
        Ok(())
    }

    /// The running thread stops: `told` is called first, then `switch_out`, then `schedule`.
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

    /// Obeys `preempt`, then lets idle CPUs ask until nothing more can run; then everything is
    /// looked at.
    fn settle(&mut self, subject: &mut dyn Subject) -> Result<(), Ending> {
        for cpu in 0..self.cpus() {
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
            for cpu in 0..self.cpus() {
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
        let refused = |why: &str| {
            Err(Ending::Refused(format!("thread {thread} was dispatched, which {why}")))
        };
        match self.threads.get_mut(&thread) {
            None => refused("does not live"),
            Some(dispatched) if !dispatched.is_ready() => refused("is not ready"),
            Some(dispatched) if dispatched.instance != cpu / self.setting.cpus => {
                refused("is in another instance")
            }
            Some(dispatched) if !dispatched.affinity.contains(cpu % self.setting.cpus) => {
                refused("may not run there")
            }
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
        let cpus = self.setting.cpus;
        let instance = cpu / cpus;
        let call = Call { event, thread, now: self.now, cpu: cpu % cpus, cpus };
        self.calls += 1;
        let about = thread.map_or(String::new(), |thread| format!("({thread})"));
        let now = self.now;
        self.note(|| format!("{event}{about} on CPU {cpu} at {now}"));
        subject.call(instance, &call, &mut self.decision)?;
        for &(thread, at) in &self.decision.alarms {
            if at > 0 {
                self.alarms.insert(thread, at);
            } else {
                self.alarms.remove(&thread);
            }
        }
        if self.setting.preemptive {
            for (cpu, at) in std::mem::take(&mut self.decision.preempt) {
                let Some(cpu) = u32::try_from(cpu).ok().filter(|&cpu| cpu < cpus) else {
                    continue;
                };
                let cpu = instance * cpus + cpu;
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

    /// Asking twice is asking once; a `schedule` that asks in a loop would otherwise double the
    /// work with each round.
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
