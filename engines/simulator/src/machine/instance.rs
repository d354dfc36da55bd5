//! An instance: CPUs that one running copy of the scheduler schedules, with its ready threads and
//! its lock. docs/internals/instances.md is the design.
//!
//! Invariants, between events: a thread inside is in exactly one instance; `ready` holds exactly
//! the instance's threads that could be dispatched, if the machine has several instances; `load` is
//! the sum of its threads' `load`.

use std::collections::BTreeSet;
use std::ops::Range;

use super::thread::{State, Thread};
use super::*;

/// A ready thread in the order in which idle CPUs of other instances pull: when it became ready,
/// its serial number, its slot.
type Waiting = (Time, u32, u32);

pub struct Instance {
    pub cpus: Range<u32>,
    /// Threads that could be dispatched.
    pub ready: BTreeSet<Waiting>,
    /// Weight of the threads that run or are ready.
    pub load: i64,
    /// The smallest and the largest lag of its threads in the last period; (0, 0) without any.
    pub lags: (Time, Time),
    /// It takes no part in balancing before this time.
    pub rests_until: Time,
    pub lock: Lock,
}

/// The lock under which an instance's handlers run.
#[derive(Default)]
pub struct Lock {
    pub free_at: Time,
    /// The CPU that had it last.
    pub holder: Option<u32>,
}

impl Instance {
    pub fn new(cpus: Range<u32>) -> Instance {
        Instance {
            cpus,
            ready: BTreeSet::new(),
            load: 0,
            lags: (0, 0),
            rests_until: 0,
            lock: Lock::default(),
        }
    }

    /// Weight for each CPU, in a form that compares without rounding.
    pub fn pressure(&self, extra: i64) -> Pressure {
        Pressure { load: self.load + extra, cpus: self.cpus.len() as i64 }
    }
}

/// A weight divided by a number of CPUs.
#[derive(Clone, Copy)]
pub struct Pressure {
    load: i64,
    cpus: i64,
}

impl Pressure {
    pub fn below(self, other: Pressure) -> bool {
        self.load * other.cpus < other.load * self.cpus
    }
}

fn waiting(thread: &Thread, slot: u32) -> Waiting {
    (thread.ready_since, thread.serial, slot)
}

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// Several instances run, so threads may move.
    pub(super) fn is_split(&self) -> bool {
        self.instances.len() > 1
    }

    pub(super) fn instance_of(&self, cpu: u32) -> u32 {
        self.cpus[cpu as usize].instance
    }

    /// The policy of the thread's instance.
    pub(super) fn policy_of(&mut self, slot: u32) -> &mut P {
        &mut *self.policies[self.threads[slot as usize].instance as usize]
    }

    /// The CPUs of an instance on which the thread may run, as the instance counts them.
    pub(super) fn local_affinity(&self, slot: u32, instance: u32) -> CpuSet {
        if !self.is_split() {
            return self.affinities[slot as usize];
        }
        let cpus = &self.instances[instance as usize].cpus;
        let allowed = &self.affinities[slot as usize];
        cpus.clone().filter(|&cpu| allowed.contains(cpu)).map(|cpu| cpu - cpus.start).collect()
    }

    /// The thread can be dispatched from now on.
    pub(super) fn enter_ready(&mut self, slot: u32) {
        self.ready += 1;
        if self.is_split() {
            let thread = &self.threads[slot as usize];
            let entry = waiting(thread, slot);
            self.instances[thread.instance as usize].ready.insert(entry);
        }
    }

    /// The thread can be dispatched no longer; its state may have changed already, but not the time
    /// at which it became ready.
    pub(super) fn leave_ready(&mut self, slot: u32) {
        self.ready -= 1;
        if self.is_split() {
            let thread = &self.threads[slot as usize];
            let entry = waiting(thread, slot);
            let was_there = self.instances[thread.instance as usize].ready.remove(&entry);
            debug_assert!(was_there, "a ready thread that its instance does not know");
        }
    }

    /// The thread's state has changed: it runs or is ready, or it is not.
    pub(super) fn note_runnable(&mut self, slot: u32) {
        if !self.is_split() {
            return;
        }
        let thread = &self.threads[slot as usize];
        let runnable = !thread.outside
            && match thread.state {
                State::Running => true,
                State::Ready => !thread.suspended,
                State::Unborn | State::Waiting | State::Free => false,
            };
        if runnable == (thread.load > 0) {
            return;
        }
        let load = if runnable { self.weight(slot) } else { 0 };
        let now = self.now;
        let thread = &mut self.threads[slot as usize];
        self.instances[thread.instance as usize].load += load - thread.load;
        thread.load = load;
        if runnable {
            thread.runnable_from = now;
        } else {
            thread.runnable += now - thread.runnable_from;
        }
    }

    /// The thread's weight: its import `weight` if the policy has one.
    pub(super) fn weight(&mut self, slot: u32) -> i64 {
        const HEAVIEST: i64 = 1 << 20;
        let Some(import) = self.weight_import else { return 1024 };
        match self.policy_of(slot).get_thread_import(ThreadId(slot), import) {
            Value::Int(weight) => weight.clamp(1, HEAVIEST),
            Value::Float(weight) => (weight as i64).clamp(1, HEAVIEST),
        }
    }

    /// Moves a thread that does not run to a CPU of another instance.
    pub(super) fn move_thread(&mut self, slot: u32, cpu: u32) -> Result<()> {
        let old = self.threads[slot as usize].instance;
        let new = self.instance_of(cpu);
        if old == new {
            self.threads[slot as usize].seat = cpu;
            return Ok(());
        }
        debug_assert_ne!(self.threads[slot as usize].state, State::Running);
        self.call(Event::Leaves, Some(slot), self.home(slot))?;
        let attributes = self.policies[old as usize].thread_leaves(ThreadId(slot));
        let ready = self.threads[slot as usize].can_run();
        if ready {
            self.leave_ready(slot);
        }
        let thread = &mut self.threads[slot as usize];
        thread.instance = new;
        thread.seat = cpu;
        let load = thread.load;
        self.instances[old as usize].load -= load;
        self.instances[new as usize].load += load;
        if ready {
            self.enter_ready(slot);
        }
        let affinity = self.local_affinity(slot, new);
        self.policies[new as usize].thread_arrives(ThreadId(slot), &affinity, &attributes);
        self.metrics.update(self.who(slot), |tally| tally.moves += 1);
        self.record(slot, What::Moved { from: old, to: new });
        self.call(Event::Arrives, Some(slot), cpu)
    }

    /// The invariants of this file, after every event of every test.
    #[cfg(test)]
    pub(super) fn check_instances(&self) {
        if !self.is_split() {
            return;
        }
        for (number, instance) in self.instances.iter().enumerate() {
            let here = |slot: &u32| {
                let thread = &self.threads[*slot as usize];
                thread.alive() && !thread.outside && thread.instance == number as u32
            };
            let slots: Vec<u32> = (0..self.threads.len() as u32).filter(here).collect();
            let thread = |slot: u32| &self.threads[slot as usize];
            let mut ready: Vec<u32> =
                slots.iter().copied().filter(|&slot| thread(slot).can_run()).collect();
            let mut known: Vec<u32> = instance.ready.iter().map(|&(_, _, slot)| slot).collect();
            ready.sort();
            known.sort();
            assert_eq!(ready, known, "instance {number} at {}", self.now);
            let load: i64 = slots.iter().map(|&slot| thread(slot).load).sum();
            assert_eq!(instance.load, load, "instance {number} at {}", self.now);
            for slot in slots {
                assert!(instance.cpus.contains(&thread(slot).seat));
                if thread(slot).state == State::Running {
                    assert!(self.affinities[slot as usize].contains(thread(slot).cpu));
                    let runs = self.cpus[thread(slot).cpu as usize].running;
                    assert_eq!(runs, Some(slot));
                }
            }
        }
        let all: usize = self.instances.iter().map(|instance| instance.ready.len()).sum();
        assert_eq!(all, self.ready as usize);
    }
}
