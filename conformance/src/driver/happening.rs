//! What may happen to threads, when it is possible, and which handlers it calls.

use attune_language::engine::event::{Event, Parameter};
use attune_simulator::scheduler::{CpuSet, ThreadId, Value};

use super::subject::{Ending, Step, Subject};
use super::{ProtocolDriver, State, Thread};

/// What may happen, with its weight.
const HAPPENINGS: [(Happening, u32); 18] = [
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
    (Happening::Move, 20),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
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
    /// A thread that does not run goes over to another instance, perhaps as it wakes.
    Move,
}

impl ProtocolDriver {
    /// Chosen among what is possible now.
    pub(super) fn happening(
        &self,
        step: Step,
        cpu: u32,
        subject: &dyn Subject,
    ) -> Option<Happening> {
        let possible =
            |&&(happening, _): &&(Happening, u32)| self.is_possible(happening, cpu, subject);
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
            Happening::SliceUsedUp => {
                self.setting.preemptive && running.is_some_and(|(_, bounded)| bounded)
            }
            Happening::YieldTo => {
                running.is_some()
                    && subject.handles(Event::SetNextThread)
                    && any(&|thread| self.is_ready_near(thread, cpu))
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
            Happening::Query => {
                Event::ALL.iter().any(|&event| event.is_query() && subject.handles(event))
            }
            Happening::WriteThreadImport => {
                self.setting.imports && thread_imports > 0 && !self.threads.is_empty()
            }
            Happening::WriteGlobalImport => self.setting.imports && global_imports > 0,
            Happening::SetAffinity => {
                self.setting.pinning && self.setting.cpus > 1 && !self.threads.is_empty()
            }
            Happening::Pass => true,
            Happening::Kill => self.setting.killing && !self.threads.is_empty(),
            Happening::Move => {
                self.setting.instances > 1 && subject.handles(Event::Arrives) && any(&does_not_run)
            }
        }
    }

    /// Makes it happen. False if idle CPUs need not ask again.
    pub(super) fn happen(
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
                self.stop(
                    cpu,
                    running.map(|thread| (Event::QuantumExpired, thread)),
                    State::Ready,
                    subject,
                )?;
            }
            Happening::YieldTo => {
                let next = self.pick(step, |thread| self.is_ready_near(thread, cpu));
                self.stop(
                    cpu,
                    next.map(|next| (Event::SetNextThread, next)),
                    State::Ready,
                    subject,
                )?;
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
                    self.call(subject, Event::SuspendThread, Some(thread), self.near(cpu, thread))?;
                }
            }
            Happening::Resume => {
                if let Some(thread) = self.pick(step, |thread| thread.suspended) {
                    self.change(thread, |thread| thread.suspended = false);
                    self.call(subject, Event::ResumeThread, Some(thread), self.near(cpu, thread))?;
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
                if let Some(thread) = self.pick(step, does_not_run) {
                    let affinity = affinity(step.amount, cpus);
                    self.change(thread, |thread| thread.affinity = affinity);
                    self.note(|| format!("thread {thread} may run on {affinity:?}"));
                    subject.set_affinity(thread, &affinity);
                }
            }
            Happening::Pass => {}
            Happening::Kill => self.kill(step, cpu, subject)?,
            Happening::Move => self.move_over(step, cpu, subject)?,
        }
        Ok(true)
    }

    fn spawn(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let free = (0..).map(ThreadId).find(|id| !self.threads.contains_key(id));
        let Some(thread) = free else { return Ok(()) };
        let pinned = self.setting.pinning && self.setting.cpus > 1 && step.who.is_multiple_of(4);
        let affinity = if pinned { affinity(step.who / 4, self.setting.cpus) } else { CpuSet::ALL };
        let instance = cpu / self.setting.cpus;
        let new = Thread { instance, state: State::Ready, suspended: false, affinity };
        self.threads.insert(thread, new);
        self.note(|| format!("thread {thread} is made"));
        subject.create(instance, thread, &affinity, self.now)?;
        self.call(subject, Event::NewThread, Some(thread), cpu)
    }

    /// The event that tells the policy that the running thread blocks. As for wake-ups, the usual
    /// one is called also where it is nothing but aspects: so says the protocol.
    fn blocks(&self, subject: &dyn Subject) -> Option<Event> {
        let known = |event: &Event| subject.handles(*event);
        [Event::SetWaiting, Event::SuspendThread].into_iter().find(known)
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
        self.call(subject, Event::SetDead, Some(thread), self.near(cpu, thread))?;
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
        let Some(thread) = self.pick(step, |thread| thread.state == State::Waiting) else {
            return Ok(());
        };
        self.wake_on(thread, self.near(cpu, thread), subject)
    }

    fn wake_on(
        &mut self,
        thread: ThreadId,
        cpu: u32,
        subject: &mut dyn Subject,
    ) -> Result<(), Ending> {
        self.change(thread, |thread| thread.state = State::Ready);
        let usual = subject.handles(Event::EventRaised);
        let event = if usual { Event::EventRaised } else { Event::ResumeThread };
        self.call(subject, event, Some(thread), cpu)
    }

    /// A thread that does not run goes to the instance of that CPU, or to the next one. One that
    /// waits may wake there at once.
    fn move_over(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let Some(thread) = self.pick(step, does_not_run) else { return Ok(()) };
        let (from, cpus) = (self.near(cpu, thread), self.setting.cpus);
        let to = if from == cpu { (cpu + cpus) % self.cpus() } else { cpu };
        self.call(subject, Event::Leaves, Some(thread), from)?;
        if !subject.is_stored(thread) {
            return Err(Ending::Refused(format!("leaves has destroyed thread {thread}")));
        }
        self.change(thread, |thread| {
            thread.instance = to / cpus;
            if thread.affinity != CpuSet::ALL {
                thread.affinity = affinity(step.amount, cpus);
            }
        });
        let Some(moved) = self.threads.get(&thread).cloned() else { return Ok(()) };
        self.note(|| format!("thread {thread} goes over to instance {}", moved.instance));
        subject.move_thread(thread, moved.instance, &moved.affinity);
        self.moves += 1;
        self.call(subject, Event::Arrives, Some(thread), to)?;
        if moved.state == State::Waiting && step.amount.is_multiple_of(2) {
            self.wake_on(thread, to, subject)?;
        }
        Ok(())
    }

    fn is_ready_near(&self, thread: &Thread, cpu: u32) -> bool {
        thread.is_ready() && thread.instance == cpu / self.setting.cpus
    }

    fn alarm(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let due: Vec<(ThreadId, i64)> =
            self.alarms.iter().map(|(&thread, &at)| (thread, at)).collect();
        let Some(&(thread, at)) = due.get(step.who as usize % due.len().max(1)) else {
            return Ok(());
        };
        // What lies too far ahead never comes.
        if at > self.now.saturating_add(50_000_000) {
            return Ok(());
        }
        self.now = self.now.max(at);
        self.alarms.remove(&thread);
        self.call(subject, Event::Alarm, Some(thread), self.near(cpu, thread))
    }

    fn query(&mut self, step: Step, cpu: u32, subject: &mut dyn Subject) -> Result<(), Ending> {
        let handled: Vec<Event> = Event::ALL
            .into_iter()
            .filter(|&event| event.is_query() && subject.handles(event))
            .collect();
        let Some(&query) = handled.get(step.amount as usize % handled.len().max(1)) else {
            return Ok(());
        };
        let thread = match query.parameter() {
            Parameter::None => None,
            _ => match self.pick(step, |_| true) {
                Some(thread) => Some(thread),
                None => return Ok(()),
            },
        };
        let cpu = thread.map_or(cpu, |thread| self.near(cpu, thread));
        self.call(subject, query, thread, cpu)
    }
}

/// Another thread than the running ones, not suspended yet.
fn may_be_suspended(thread: &Thread) -> bool {
    !thread.suspended && does_not_run(thread)
}

fn does_not_run(thread: &Thread) -> bool {
    !matches!(thread.state, State::Running(_))
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
