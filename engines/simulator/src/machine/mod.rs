//! The machine: threads of a workload on CPUs in virtual time, switched by a policy.
//!
//! One event is taken from the queue at a time; it may run handlers and move threads, and ends with
//! every request of the policy served: CPUs that it preempted choose again, and idle CPUs are asked
//! in ascending order until nothing more can run (see [`dispatch`]). Programs of threads run only
//! from an event of their CPU, never from inside a handler, so nothing here recurses.
//!
//! The CPUs are divided among instances of the policy (see [`instance`]); one has them all unless
//! [`Options::per`] says otherwise.
//!
//! Invariants, between events: a thread is Running exactly if one CPU's `running` names it; `ready`
//! counts the threads that could be dispatched; a CPU is in `idle` exactly if nothing runs there;
//! every Running thread that computes has its CPU's timer set.

mod balance;
mod cpu;
mod dispatch;
mod event_queue;
mod execute;
mod instance;
mod known;
mod lock;
mod placement;
mod population;
mod remote;
mod stall;
mod sync;
mod sync_operations;
#[cfg(test)]
mod tests;
mod thread;
mod topology;
mod unfinished;
mod values;

use std::collections::VecDeque;

use attune_language::engine::event::Event;

use crate::diagnostic::Diagnostic;
use crate::duration::duration;
use crate::metrics::{Metrics, Who};
use crate::outcome::{Ending, Figures, Outcome};
use crate::recorder::{Recorded, Recorder, What};
use crate::scheduler::{
    Call, CpuSet, Decision, ImportId, MAX_CPUS, Scheduler, ThreadId, Time, Value,
};
use crate::workload::distribution::Random;
use crate::workload::expression::{Environment, Expression, LONGEST, Name, to_time};
use crate::workload::program::{Operation, Variable};
use crate::workload::{Workload, thread_name};
use cpu::Cpu;
use event_queue::{EventQueue, Key};
use instance::Instance;
use known::Known;
pub use remote::{Parcel, Part, Reading};
use sync::SyncObjects;
use thread::{Flow, NOWHERE, Reference, State, Thread, Wait};
pub use topology::Per;
use topology::Topology;

/// How a workload is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPUs, 1 to [`MAX_CPUS`]; None: as the workload says, or 1.
    pub cpus: Option<u32>,
    /// What one instance of the policy schedules.
    pub per: Per,
    pub seed: u64,
    /// None: as the workload says.
    pub duration: Option<Time>,
    /// None: as the workload says.
    pub context_switch: Option<Time>,
    /// None: as the workload says.
    pub migration: Option<Time>,
    /// The run ends after so many events of the machine.
    pub max_events: u64,
    /// Records the whole run for a trace, not only the beginning.
    pub trace: bool,
    /// How much of the beginning the report's timeline shows.
    pub timeline: Time,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cpus: None,
            per: Per::Machine,
            seed: 1,
            duration: None,
            context_switch: None,
            migration: None,
            max_events: 1_000_000_000,
            trace: false,
            timeline: 200_000_000,
        }
    }
}

/// Runs the workload under one instance of the policy. An error is the workload's (deadlock, too
/// many threads) or the policy's (a failed check, a thread dispatched that cannot run).
pub fn simulate<P: Scheduler + ?Sized>(
    policy: &mut P,
    workload: &Workload,
    options: &Options,
) -> Result<Outcome, Diagnostic> {
    run(vec![policy], workload, &Options { per: Per::Machine, ..options.clone() })
}

/// Runs the workload under as many instances of the policy as `options.per` asks for; `make` makes
/// one. The policy must handle `arrives` if there are several.
pub fn simulate_instances<P: Scheduler>(
    make: impl FnMut() -> P,
    workload: &Workload,
    options: &Options,
) -> Result<Outcome, Diagnostic> {
    let count = topology(workload, options)?.instances(options.per).len();
    let mut policies: Vec<P> = std::iter::repeat_with(make).take(count).collect();
    run(policies.iter_mut().collect(), workload, options)
}

fn run<P: Scheduler + ?Sized>(
    policies: Vec<&mut P>,
    workload: &Workload,
    options: &Options,
) -> Result<Outcome, Diagnostic> {
    let mut machine = Machine::new(policies, workload, options)?;
    machine.start()?;
    let ending = machine.run()?;
    Ok(machine.finish(ending))
}

fn topology(workload: &Workload, options: &Options) -> Result<Topology, Diagnostic> {
    let cpus = options.cpus.or(workload.cpus).unwrap_or(1);
    if !(1..=MAX_CPUS).contains(&cpus) {
        return Err(Diagnostic::new(format!("a machine of {cpus} CPUs"))
            .hint(format!("it may have 1 to {MAX_CPUS}")));
    }
    Ok(Topology::new(cpus, workload.cpus_per_cache))
}

/// Steps at one instant after which the workload or the policy is going round in circles.
const MAX_STEPS_AT_ONCE: u64 = 2_000_000;
/// Dispatches in a row on one CPU, each for no time, after which the policy is.
const MAX_IN_VAIN: u32 = 100_000;

/// The step from the seed of one instance to that of the next.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The slot of no thread, in [`Machine::numbered`].
const NO_SLOT: u32 = u32::MAX;

struct Machine<'a, P: Scheduler + ?Sized> {
    /// By instance.
    policies: Vec<&'a mut P>,
    instances: Vec<Instance>,
    topology: Topology,
    /// The policy's import `weight`.
    weight_import: Option<ImportId>,
    /// Its imports that the machine supplies.
    known: Known,
    workload: &'a Workload,
    options: &'a Options,
    handles: [bool; Event::ALL.len()],
    /// The policy knows blocking only as suspending.
    blocks_by_suspending: bool,
    context_switch: Time,
    migration: Time,
    end: Time,

    now: Time,
    queue: EventQueue,
    cpus: Vec<Cpu>,
    idle: CpuSet,
    idle_count: u32,
    /// CPUs whose `preempt` is set, in the order of the requests.
    preempts: VecDeque<u32>,
    decision: Decision,
    /// The CPU whose thread or interrupt calls handlers now; [`NOWHERE`]: the world outside.
    actor: u32,
    /// Serial number of the thread whose program runs now, on a CPU.
    acting: Option<u32>,
    /// CPUs that had the lock in this event.
    charged: Vec<u32>,
    /// The idle CPU that was chosen for a thread, and is asked first.
    chosen: Option<u32>,

    threads: Vec<Thread>,
    affinities: Vec<CpuSet>,
    free: Vec<u32>,
    /// `threads x workload.variables`.
    variables: Vec<f64>,
    globals: Vec<f64>,
    thread_imports: Vec<Option<ImportId>>,
    global_imports: Vec<Option<ImportId>>,
    /// By template, the slot of the thread of each number, or [`NO_SLOT`].
    numbered: Vec<Vec<u32>>,
    sync: SyncObjects,
    /// What left the machine, for the cluster around it.
    parcels: Vec<Parcel>,
    next_change: usize,
    world: Random,

    ready: u32,
    /// Threads inside that exist, also those that have not started.
    inside: u32,
    /// Threads outside may make new ones inside.
    outside_spawns: bool,
    next_serial: u32,
    steps_at_once: u64,
    events: u64,
    calls: u64,
    metrics: Metrics,
    recorder: Recorder,
    warnings: Vec<Diagnostic>,
}

type Result<T, E = Diagnostic> = std::result::Result<T, E>;

impl<'a, P: Scheduler + ?Sized> Machine<'a, P> {
    fn new(
        mut policies: Vec<&'a mut P>,
        workload: &'a Workload,
        options: &'a Options,
    ) -> Result<Machine<'a, P>> {
        let topology = topology(workload, options)?;
        let cpus = topology.cpus;
        let ranges = topology.instances(options.per);
        for (number, (policy, range)) in policies.iter_mut().zip(&ranges).enumerate() {
            // Instances that draw the same numbers would move in step.
            let seed = options.seed.wrapping_add((number as u64).wrapping_mul(SEED_STEP));
            policy.start(range.len() as u32, seed);
        }
        let Some(policy) = policies.first() else {
            return Err(Diagnostic::new("a machine without an instance of the policy"));
        };
        if ranges.len() > 1 && !policy.handles(Event::Arrives) {
            return Err(Diagnostic::new(format!(
                "the scheduler `{}` has no `event arrives`, so it runs as one instance only",
                policy.name()
            ))
            .hint("leave out --per, or let the scheduler extend `lifecycle`"));
        }
        let handles = Event::ALL.map(|event| policy.handles(event));
        let handled = |event: Event| handles[event as usize];
        let thread_imports: Vec<_> = workload
            .variables
            .iter()
            .map(|variable| policy.thread_import(&variable.name))
            .collect();
        let global_imports: Vec<_> =
            workload.globals.iter().map(|global| policy.global_import(&global.name)).collect();
        let time =
            |option: Option<Time>, workload: Time| option.unwrap_or(workload).clamp(0, LONGEST);
        let end = time(options.duration.or(workload.duration), LONGEST);
        let weight_import = policy.thread_import("weight");
        let known = Known::of(&**policy);
        let instance_of = |cpu: u32| ranges.iter().position(|range| range.contains(&cpu));
        let all_cpus =
            (0..cpus).map(|cpu| Cpu::new(instance_of(cpu).unwrap_or(0) as u32)).collect();
        let mut machine = Machine {
            blocks_by_suspending: !handled(Event::SetWaiting)
                && !handled(Event::EventRaised)
                && handled(Event::SuspendThread)
                && handled(Event::ResumeThread),
            handles,
            policies,
            instances: ranges.iter().cloned().map(Instance::new).collect(),
            topology,
            weight_import,
            known,
            workload,
            options,
            context_switch: time(options.context_switch, workload.context_switch),
            migration: time(options.migration, workload.migration),
            end,
            now: 0,
            queue: EventQueue::default(),
            cpus: all_cpus,
            idle: (0..cpus).collect(),
            idle_count: cpus,
            preempts: VecDeque::new(),
            decision: Decision::default(),
            actor: NOWHERE,
            acting: None,
            charged: Vec::new(),
            chosen: None,
            threads: Vec::new(),
            affinities: Vec::new(),
            free: Vec::new(),
            variables: Vec::new(),
            globals: workload.globals.iter().map(|global| global.initial).collect(),
            thread_imports,
            global_imports,
            numbered: vec![Vec::new(); workload.templates.len()],
            sync: SyncObjects::new(workload),
            parcels: Vec::new(),
            next_change: 0,
            world: Random::new(options.seed, u64::MAX),
            ready: 0,
            inside: 0,
            outside_spawns: workload.outside_spawns(),
            next_serial: 0,
            steps_at_once: 0,
            events: 0,
            calls: 0,
            metrics: Metrics::new(&workload.groups),
            recorder: Recorder::new(if options.trace { Time::MAX } else { options.timeline }),
            warnings: workload.notes.clone(),
        };
        machine.check_fit()?;
        Ok(machine)
    }

    /// Whether the policy has the handlers that the workload needs, and the machine the CPUs.
    fn check_fit(&mut self) -> Result<()> {
        let needs = |operation: &Operation| match operation {
            Operation::Suspend(_) => Some(Event::SuspendThread),
            Operation::Resume(_) => Some(Event::ResumeThread),
            _ => None,
        };
        for (address, operation) in self.workload.operations.iter().enumerate() {
            if let Some(event) = needs(operation)
                && !self.handles[event as usize]
            {
                return Err(Diagnostic::new(format!(
                    "the workload needs `event {event}`, which the scheduler `{}` does not have",
                    self.policy_name()
                ))
                .at(self.workload.locate(address as u32)));
            }
        }
        let cpus = self.cpus.len() as u32;
        for template in &self.workload.templates {
            if template.affinity.next_from(0).is_none_or(|first| first >= cpus) {
                return Err(Diagnostic::new(format!(
                    "`{}` may run only on the CPUs {:?}, and the machine has {cpus}",
                    template.name, template.affinity
                ))
                .at(self.workload.source.locate(&template.place))
                .hint(
                    "CPUs are counted from 0; give the machine more of them, or the thread others",
                ));
            }
        }
        self.note_imports();
        Ok(())
    }

    /// Says which values of the workload do not reach the scheduler. That is no error: one workload
    /// serves many.
    fn note_imports(&mut self) {
        let mut ignored = Vec::new();
        for (number, variable) in self.workload.variables.iter().enumerate() {
            let name = &variable.name;
            if self.thread_imports[number].is_some() {
                continue;
            }
            if self.policies[0].global_import(name).is_some() {
                self.warnings.push(
                    Diagnostic::new(format!(
                        "`{name}` is an import of the whole scheduler, and the workload has it per \
                            thread"
                    ))
                    .hint(format!("declare it: [globals] {name} = ...")),
                );
            } else if variable.only_set {
                ignored.push(format!("`{name}`"));
            }
        }
        if !ignored.is_empty() {
            let (names, policy) = (ignored.join(", "), self.policy_name());
            self.warnings
                .push(Diagnostic::new(format!("the scheduler `{policy}` does not import {names}")));
        }
    }

    fn start(&mut self) -> Result<()> {
        for number in 0..self.globals.len() {
            self.publish_global(number as u16);
        }
        self.queue.grow(self.cpus.len() + 2);
        for number in 0..self.instances.len() {
            self.call(Event::Init, None, self.instances[number].cpus.start)?;
        }
        if self.is_split() {
            let key = self.balance_key();
            self.queue.set(key, balance::PERIOD);
        }
        for outside in [false, true] {
            for (number, template) in self.workload.templates.iter().enumerate() {
                for _ in 0..if template.outside == outside { template.count } else { 0 } {
                    let slot = self.allocate(number as u16, None)?;
                    let start = to_time(self.evaluate(&template.start, slot));
                    self.queue.set(self.thread_key(slot), start);
                }
            }
        }
        self.schedule_change();
        self.dispatch_all()
    }

    fn run(&mut self) -> Result<Ending> {
        while let Some((time, key)) = self.queue.pop(self.end) {
            self.step(time, key)?;
            if self.inside == 0 && !self.outside_spawns {
                return Ok(Ending::AllEnded);
            }
            if self.events >= self.options.max_events {
                return Ok(Ending::EventLimit);
            }
        }
        if self.queue.is_empty() {
            return self.stalled();
        }
        self.now = self.end;
        Ok(Ending::Duration)
    }

    /// One event of the queue and all that follows from it at that time.
    fn step(&mut self, time: Time, key: Key) -> Result<()> {
        self.begin(time);
        self.events += 1;
        self.take(key)?;
        self.charge_locks();
        #[cfg(test)]
        self.check_instances();
        Ok(())
    }

    /// It is that time now, and the world outside acts.
    fn begin(&mut self, time: Time) {
        if time != self.now {
            self.now = time;
            self.steps_at_once = 0;
        }
        self.actor = NOWHERE;
        self.acting = None;
    }

    /// An event of the queue.
    fn take(&mut self, key: Key) -> Result<()> {
        let cpus = self.cpus.len() as u32;
        if key < cpus {
            return self.cpu_timer(key);
        }
        if key == cpus {
            return self.change_globals();
        }
        if key == self.balance_key() {
            return self.balance();
        }
        let slot = (key - cpus - 2) / 2;
        if (key - cpus - 2) % 2 == 1 {
            return self.alarm(slot);
        }
        match (self.threads[slot as usize].state, self.threads[slot as usize].outside) {
            (State::Unborn, _) => self.birth(slot, None),
            (_, true) => {
                self.threads[slot as usize].state = State::Running;
                self.execute(slot)
            }
            (_, false) => {
                self.wake(slot)?;
                self.dispatch_all()
            }
        }
    }

    fn balance_key(&self) -> Key {
        self.cpus.len() as u32 + 1
    }

    fn thread_key(&self, slot: u32) -> Key {
        self.cpus.len() as u32 + 2 + 2 * slot
    }

    fn alarm_key(&self, slot: u32) -> Key {
        self.thread_key(slot) + 1
    }

    /// The CPU for which handlers about a thread run: where it runs or ran last, or the one that
    /// was chosen for it since. In its instance.
    fn home(&self, slot: u32) -> u32 {
        match self.threads[slot as usize].seat {
            NOWHERE => self.affinities[slot as usize].next_from(0).unwrap_or(0),
            seat => seat,
        }
    }

    fn policy_name(&self) -> &str {
        self.policies[0].name()
    }

    fn who(&self, slot: u32) -> Who {
        let thread = &self.threads[slot as usize];
        Who { serial: thread.serial, group: thread.group }
    }

    fn name(&self, slot: u32) -> String {
        let thread = &self.threads[slot as usize];
        let template = &self.workload.templates[thread.template as usize];
        thread_name(&template.name, template.count, thread.index)
    }

    fn record(&mut self, slot: u32, what: What) {
        self.recorder.record(self.now, self.threads[slot as usize].serial, what);
    }

    fn finish(mut self, ending: Ending) -> Outcome {
        for cpu in 0..self.cpus.len() as u32 {
            if self.cpus[cpu as usize].running.is_some() {
                self.account(cpu);
                self.account_overhead(cpu);
            }
        }
        self.account_unfinished();
        let lost = self
            .sync
            .channels
            .iter()
            .zip(&self.workload.channels)
            .filter(|(channel, _)| channel.capacity.is_some())
            .map(|(channel, declared)| (declared.name.clone(), channel.lost))
            .collect();
        Outcome::new(Figures {
            policy: self.policy_name().to_string(),
            workload: self.workload.name.clone(),
            seed: self.options.seed,
            ending,
            elapsed: self.now,
            events: self.events,
            calls: self.calls,
            context_switch: self.context_switch,
            migration: self.migration,
            timeline: self.options.timeline,
            cpus: self.cpus.iter().map(|cpu| cpu.usage).collect(),
            instances: self.instances.iter().map(|instance| instance.cpus.clone()).collect(),
            metrics: self.metrics,
            recorder: self.recorder,
            names: self.workload.templates.iter().map(|t| (t.name.clone(), t.count)).collect(),
            lost,
            warnings: self.warnings,
        })
    }
}
