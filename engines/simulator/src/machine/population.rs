//! Creates and removes threads: their slots, names and first values.
//!
//! Invariant: a slot is in `free` exactly if its thread's state is Free; a serial number is never
//! given twice.

use super::*;

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// Makes a thread that has not started yet.
    pub(super) fn allocate(
        &mut self,
        template_number: u16,
        parent: Option<Reference>,
    ) -> Result<u32> {
        let template = &self.workload.templates[template_number as usize];
        let alive = self.threads.len() - self.free.len();
        if alive >= self.workload.max_threads as usize {
            return Err(Diagnostic::new(format!("more than {alive} threads at once"))
                .at(self.workload.source.locate(&template.place))
                .hint("spawn fewer of them, let them end, or raise `max_threads`"));
        }
        let serial = self.next_serial;
        self.next_serial =
            serial.checked_add(1).ok_or_else(|| Diagnostic::new("too many threads in all"))?;
        let numbered = &mut self.numbered[template_number as usize];
        let index = numbered.len() as u32;
        let thread = Thread {
            state: State::Unborn,
            suspended: false,
            outside: template.outside,
            cpu: NOWHERE,
            seat: NOWHERE,
            instance: 0,
            template: template_number,
            group: template.group,
            index,
            serial,
            stays: 0,
            next: template.entry,
            remaining: 0,
            ready_since: 0,
            wait: Wait::Nothing,
            into: None,
            woken: false,
            message: None,
            job: None,
            load: 0,
            lag: 0,
            service: 0,
            runnable: 0,
            runnable_from: 0,
            parent,
            children: 0,
            locks_held: 0,
            random: Random::new(self.options.seed, u64::from(serial)),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.threads[slot as usize] = thread;
                self.affinities[slot as usize] = template.affinity;
                let width = self.workload.variables.len();
                self.variables[slot as usize * width..][..width].fill(0.0);
                slot
            }
            None => {
                self.threads.push(thread);
                self.affinities.push(template.affinity);
                self.variables.resize(self.threads.len() * self.workload.variables.len(), 0.0);
                self.queue.grow(self.cpus.len() + 2 + 2 * self.threads.len());
                self.threads.len() as u32 - 1
            }
        };
        numbered.push(slot);
        self.inside += u32::from(!template.outside);
        self.metrics.enlist(
            Who { serial, group: template.group },
            || thread_name(&template.name, template.count, index),
            template.outside,
        );
        let recorded = Recorded {
            template: template_number,
            group: template.group,
            index,
            outside: template.outside,
        };
        self.recorder.enlist(self.now, recorded);
        Ok(slot)
    }

    /// The thread starts. `spawner` is the CPU that its parent runs on.
    pub(super) fn birth(&mut self, slot: u32, spawner: Option<u32>) -> Result<()> {
        self.birth_with(slot, spawner, &[])
    }

    pub(super) fn birth_with(
        &mut self,
        slot: u32,
        spawner: Option<u32>,
        arguments: &[(Variable, f64)],
    ) -> Result<()> {
        let workload = self.workload;
        let thread = &mut self.threads[slot as usize];
        let template = &workload.templates[thread.template as usize];
        let outside = thread.outside;
        if template.life_is_job {
            thread.job = Some(thread::Job { release: self.now, deadline: None });
        }
        thread.ready_since = self.now;
        thread.state = if outside { State::Waiting } else { State::Ready };
        self.metrics.created(self.who(slot), self.now);
        self.record(slot, What::Created);
        if outside {
            self.initialise(slot, arguments);
            // Not at once: programs run only from the queue.
            self.queue.set(self.thread_key(slot), self.now);
            return Ok(());
        }
        let near = spawner.unwrap_or_else(|| self.home(slot));
        let cpu = self.choose_first_cpu(slot, near);
        let instance = self.instance_of(cpu);
        self.threads[slot as usize].seat = cpu;
        self.threads[slot as usize].instance = instance;
        let affinity = self.local_affinity(slot, instance);
        self.policy_of(slot).thread_created(ThreadId(slot), &affinity);
        self.tell_birth(slot);
        self.initialise(slot, arguments);
        self.enter_ready(slot);
        self.note_runnable(slot);
        self.record(slot, What::Ready);
        self.chosen = Some(cpu);
        self.call(Event::NewThread, Some(slot), cpu)?;
        self.dispatch_all()
    }

    pub(super) fn initialise(&mut self, slot: u32, arguments: &[(Variable, f64)]) {
        let workload = self.workload;
        let template = self.threads[slot as usize].template;
        for (variable, expression) in &workload.templates[template as usize].initial {
            let value = self.evaluate(expression, slot);
            self.store(slot, *variable, value);
        }
        for &(variable, value) in arguments {
            self.store(slot, variable, value);
        }
    }

    /// Frees the slot of a thread that nothing refers to any more.
    pub(super) fn release(&mut self, slot: u32) {
        self.queue.cancel(self.thread_key(slot));
        self.queue.cancel(self.alarm_key(slot));
        let who = self.who(slot);
        self.metrics.ended(who, self.now);
        self.record(slot, What::Ended);
        let thread = &mut self.threads[slot as usize];
        thread.state = State::Free;
        self.note_runnable(slot);
        if !self.threads[slot as usize].outside {
            self.inside -= 1;
            self.policy_of(slot).thread_removed(ThreadId(slot));
        }
        let thread = &self.threads[slot as usize];
        self.numbered[thread.template as usize][thread.index as usize] = NO_SLOT;
        self.free.push(slot);
    }
}
