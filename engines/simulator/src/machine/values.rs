//! Variables of the workload and imports of the scheduler: two names of one thing where the
//! scheduler has the import.
//!
//! Invariant: what the scheduler imports lives in the scheduler, so that what it writes is read
//! here too.

use super::*;

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    pub(super) fn evaluate(&mut self, expression: &Expression, slot: u32) -> f64 {
        match expression {
            Expression::Constant(value) => *value,
            _ => expression.evaluate(&mut ThreadView { machine: self, slot }),
        }
    }

    pub(super) fn load(&self, slot: u32, name: Name) -> f64 {
        let thread = &self.threads[slot as usize];
        match name {
            Name::Thread(number) => match self.thread_imports[number as usize] {
                Some(import) if !thread.outside => number_of(
                    self.policies[thread.instance as usize]
                        .get_thread_import(ThreadId(slot), import),
                ),
                _ => {
                    self.variables[slot as usize * self.workload.variables.len() + number as usize]
                }
            },
            Name::Global(number) => match self.global_imports[number as usize] {
                Some(import) => number_of(self.policies[0].get_global_import(import)),
                None => self.globals[number as usize],
            },
            Name::Now => self.now as f64,
            Name::Release => thread.job.map_or(self.now, |job| job.release) as f64,
            Name::Sent => thread.message.map_or(self.now, |message| message.sent) as f64,
            Name::Index => f64::from(thread.index),
            Name::QueueLength(channel) => {
                self.sync.channels[channel as usize].messages.len() as f64
            }
        }
    }

    pub(super) fn store(&mut self, slot: u32, variable: Variable, value: f64) {
        match variable {
            Variable::Thread(number) => match self.thread_imports[number as usize] {
                Some(import) if !self.threads[slot as usize].outside => {
                    self.policy_of(slot).set_thread_import(ThreadId(slot), import, value_of(value));
                }
                _ => {
                    let width = self.workload.variables.len();
                    self.variables[slot as usize * width + number as usize] = value;
                }
            },
            Variable::Global(number) => {
                self.globals[number as usize] = value;
                self.publish_global(number);
            }
        }
    }

    pub(super) fn publish_global(&mut self, number: u16) {
        if let Some(import) = self.global_imports[number as usize] {
            let value = value_of(self.globals[number as usize]);
            for policy in &mut self.policies {
                policy.set_global_import(import, value);
            }
        }
    }

    /// What an instance wrote into an import of the whole scheduler reaches the others before their
    /// next handler.
    pub(super) fn share_globals(&mut self, writer: u32) {
        if !self.is_split() {
            return;
        }
        for number in 0..self.globals.len() {
            let Some(import) = self.global_imports[number] else { continue };
            let value = self.policies[writer as usize].get_global_import(import);
            if number_of(value) != self.globals[number] {
                self.globals[number] = number_of(value);
                for policy in &mut self.policies {
                    policy.set_global_import(import, value);
                }
            }
        }
    }

    pub(super) fn schedule_change(&mut self) {
        if let Some(change) = self.workload.changes.get(self.next_change) {
            self.queue.set(self.cpus.len() as u32, change.at);
        }
    }

    pub(super) fn change_globals(&mut self) -> Result<()> {
        let workload = self.workload;
        let change = &workload.changes[self.next_change];
        let mut values = Vec::with_capacity(change.set.len());
        for (_, expression) in &change.set {
            values.push(expression.evaluate(&mut WorldView { machine: self }));
        }
        for ((variable, _), value) in change.set.iter().zip(values) {
            // Changes name globals only, so that no thread is meant.
            self.store(0, *variable, value);
        }
        self.next_change += 1;
        self.schedule_change();
        self.dispatch_all()
    }
}

fn number_of(value: Value) -> f64 {
    match value {
        Value::Int(value) => value as f64,
        Value::Float(value) => value,
    }
}

fn value_of(value: f64) -> Value {
    if value.fract() == 0.0 { Value::Int(value as i64) } else { Value::Float(value) }
}

/// What an expression of a thread sees.
struct ThreadView<'m, 'a, P: Scheduler + ?Sized> {
    machine: &'m mut Machine<'a, P>,
    slot: u32,
}

impl<P: Scheduler + ?Sized> Environment for ThreadView<'_, '_, P> {
    fn load(&mut self, name: Name) -> f64 {
        self.machine.load(self.slot, name)
    }
    fn random(&mut self) -> &mut Random {
        &mut self.machine.threads[self.slot as usize].random
    }
}

/// What an expression of no thread sees.
struct WorldView<'m, 'a, P: Scheduler + ?Sized> {
    machine: &'m mut Machine<'a, P>,
}

impl<P: Scheduler + ?Sized> Environment for WorldView<'_, '_, P> {
    fn load(&mut self, name: Name) -> f64 {
        match name {
            Name::Global(_) | Name::QueueLength(_) => self.machine.load(0, name),
            Name::Now | Name::Release | Name::Sent => self.machine.now as f64,
            Name::Thread(_) | Name::Index => 0.0,
        }
    }
    fn random(&mut self) -> &mut Random {
        &mut self.machine.world
    }
}
