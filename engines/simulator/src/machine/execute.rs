//! Runs the programs of threads: operations that take no time one after another, until the thread
//! computes or stops.

use super::thread::Job;
use super::*;
use crate::workload::program::Target;

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// A CPU's timer: its thread has computed what it had to, or its stay is over.
    pub(super) fn cpu_timer(&mut self, cpu: u32) -> Result<()> {
        let Some(slot) = self.cpus[cpu as usize].running else { return Ok(()) };
        self.actor = cpu;
        self.account(cpu);
        if self.threads[slot as usize].remaining > 0 {
            self.stay_over(slot)
        } else {
            self.execute(slot)
        }
    }

    /// Runs a thread's program from its next operation. A thread outside takes its time without a
    /// CPU.
    pub(super) fn execute(&mut self, slot: u32) -> Result<()> {
        let workload = self.workload;
        let thread = &self.threads[slot as usize];
        let stay = (thread.serial, thread.stays);
        self.acting = (!thread.outside).then_some(thread.serial);
        loop {
            self.count_step(slot)?;
            let thread = &mut self.threads[slot as usize];
            let address = thread.next;
            thread.next += 1;
            let outside = thread.outside;
            match self.perform(slot, &workload.operations[address as usize])? {
                Flow::Stopped => return Ok(()),
                Flow::Next => {
                    let thread = &self.threads[slot as usize];
                    // Preempted meanwhile, and perhaps dispatched again: then its CPU's timer goes
                    // on with it.
                    if thread.state != State::Running || (thread.serial, thread.stays) != stay {
                        return Ok(());
                    }
                }
                Flow::Computes(0) => {}
                Flow::Computes(amount) if outside => {
                    self.threads[slot as usize].state = State::Waiting;
                    self.queue.set(self.thread_key(slot), self.now + amount);
                    return Ok(());
                }
                Flow::Computes(amount) => {
                    let thread = &mut self.threads[slot as usize];
                    thread.remaining = amount;
                    let cpu = thread.cpu;
                    let end = self.cpus[cpu as usize].end();
                    if end <= self.now {
                        return self.stay_over(slot);
                    }
                    self.queue.set(cpu, (self.now + amount).min(end));
                    return Ok(());
                }
            }
        }
    }

    /// Counts what happens without time going by.
    pub(super) fn count_step(&mut self, slot: u32) -> Result<()> {
        self.steps_at_once += 1;
        if self.steps_at_once <= MAX_STEPS_AT_ONCE {
            return Ok(());
        }
        let thread = &self.threads[slot as usize];
        Err(Diagnostic::new(format!(
            "time stands still at {}: {MAX_STEPS_AT_ONCE} steps without any time going by, the \
                last by `{}`",
            duration(self.now),
            self.name(slot)
        ))
        .at(self.workload.locate(thread.next.saturating_sub(1)))
        .hint(
            "a loop here never computes or sleeps, or the scheduler preempts or sets alarms in \
            circles",
        ))
    }

    fn perform(&mut self, slot: u32, operation: &Operation) -> Result<Flow> {
        match operation {
            Operation::Compute(amount) => {
                let amount = to_time(self.evaluate(amount, slot));
                return Ok(Flow::Computes(amount));
            }
            Operation::Sleep(amount) => {
                let until = self.now + to_time(self.evaluate(amount, slot));
                return self.sleep(slot, until, Wait::Time);
            }
            Operation::Io(amount) => {
                let until = self.now + to_time(self.evaluate(amount, slot));
                return self.sleep(slot, until, Wait::Io);
            }
            Operation::SleepUntil(until) => {
                // Not before it: a loop that asks `now >= x` after sleeping until x = 1s / 24 would
                // find that it is not.
                let until = to_time(self.evaluate(until, slot).ceil());
                if until > self.now {
                    return self.sleep(slot, until, Wait::Time);
                }
            }
            Operation::Set(variable, value) => {
                let value = self.evaluate(value, slot);
                self.store(slot, *variable, value);
            }
            Operation::SetAll(assignments) => self.set_all(slot, assignments),
            Operation::Jump(aim) => self.threads[slot as usize].next = *aim,
            Operation::JumpUnless(condition, aim) => {
                if self.evaluate(condition, slot) == 0.0 {
                    self.threads[slot as usize].next = *aim;
                }
            }
            Operation::JobBegin { release, deadline } => {
                let release = match release {
                    Some(release) => to_time(self.evaluate(release, slot)),
                    None => self.now,
                };
                self.threads[slot as usize].job = Some(Job { release, deadline: None });
                // The deadline may be said in terms of the release.
                if let Some(deadline) = deadline {
                    let deadline = to_time(self.evaluate(deadline, slot));
                    self.threads[slot as usize].job =
                        Some(Job { release, deadline: Some(deadline) });
                }
            }
            Operation::JobEnd => self.end_job(slot, false),
            Operation::NextRelease { release, period, skip } => {
                self.next_release(slot, *release, period, *skip);
            }
            Operation::Yield => {
                if !self.outside(slot) {
                    self.give_way(slot, None)?;
                    return Ok(Flow::Stopped);
                }
            }
            Operation::YieldTo(target) => return self.yield_to(slot, target),
            Operation::Suspend(None) => {
                if !self.outside(slot) {
                    self.suspend(slot)?;
                    return Ok(Flow::Stopped);
                }
            }
            Operation::Suspend(Some(target)) => {
                if let Some(other) = self.target(slot, target) {
                    self.suspend(other)?;
                }
            }
            Operation::Resume(target) => {
                if let Some(other) = self.target(slot, target) {
                    self.resume(other)?;
                }
            }
            Operation::Kill(target) => {
                if let Some(other) = self.target(slot, target) {
                    self.end_thread(other)?;
                }
            }
            Operation::Park => {
                if !std::mem::take(&mut self.threads[slot as usize].woken) {
                    self.block(slot, Wait::Wake)?;
                    return Ok(Flow::Stopped);
                }
            }
            Operation::Wake(target) => {
                if let Some(other) = self.target(slot, target) {
                    if self.threads[other as usize].wait == Wait::Wake {
                        self.wake(other)?;
                        self.dispatch_all()?;
                    } else {
                        self.threads[other as usize].woken = true;
                    }
                }
            }
            Operation::Spawn { template, count, arguments } => {
                let count = self.evaluate(count, slot);
                self.spawn(slot, self.here(slot), *template, count, arguments)?;
            }
            Operation::Join => {
                if self.threads[slot as usize].children > 0 {
                    self.block(slot, Wait::Children)?;
                    return Ok(Flow::Stopped);
                }
            }
            Operation::Affinity(cpus) => return self.change_affinity(slot, cpus),
            Operation::End => {
                self.end_thread(slot)?;
                return Ok(Flow::Stopped);
            }
            _ => return self.synchronise(slot, operation),
        }
        Ok(Flow::Next)
    }

    /// The CPU near which a thread puts those that it makes.
    fn here(&self, slot: u32) -> u32 {
        match self.threads[slot as usize].cpu {
            NOWHERE => 0,
            cpu => cpu,
        }
    }

    fn outside(&self, slot: u32) -> bool {
        self.threads[slot as usize].outside
    }

    fn sleep(&mut self, slot: u32, until: Time, wait: Wait) -> Result<Flow> {
        self.queue.set(self.thread_key(slot), until);
        self.block(slot, wait)?;
        Ok(Flow::Stopped)
    }

    fn set_all(&mut self, slot: u32, assignments: &[(Variable, Expression)]) {
        if let [(variable, expression)] = assignments {
            let value = self.evaluate(expression, slot);
            return self.store(slot, *variable, value);
        }
        let values: Vec<f64> =
            assignments.iter().map(|(_, expression)| self.evaluate(expression, slot)).collect();
        for ((variable, _), value) in assignments.iter().zip(values) {
            self.store(slot, *variable, value);
        }
    }

    /// A job is done. A life that is a job is done when the thread ends.
    pub(super) fn end_job(&mut self, slot: u32, ends: bool) {
        let thread = &mut self.threads[slot as usize];
        let life = self.workload.templates[thread.template as usize].life_is_job;
        if ends != life {
            return;
        }
        let Some(job) = thread.job.take() else { return };
        let response = self.now - job.release;
        let tardiness = job.deadline.map(|deadline| (self.now - deadline).max(0));
        self.metrics.update(self.who(slot), |tally| {
            tally.jobs += 1;
            tally.response.record(response);
            if let Some(tardiness) = tardiness {
                tally.missed += u64::from(tardiness > 0);
                tally.tardiness.record(tardiness);
            }
        });
        self.record(slot, What::Job { late: tardiness.is_some_and(|tardiness| tardiness > 0) });
    }

    fn next_release(&mut self, slot: u32, release: u16, period: &Expression, skip: bool) {
        let period = to_time(self.evaluate(period, slot)).max(1);
        let at = slot as usize * self.workload.variables.len() + release as usize;
        let mut next = to_time(self.variables[at]) + period;
        if skip && next < self.now {
            let missed = (self.now - next + period - 1) / period;
            next += missed * period;
            self.metrics.update(self.who(slot), |tally| tally.skipped += missed as u64);
        }
        self.variables[at] = next as f64;
    }

    /// The living thread that is meant, or None if it has ended or never was.
    fn target(&mut self, slot: u32, target: &Target) -> Option<u32> {
        let index = self.evaluate(&target.index, slot);
        let numbered = &self.numbered[target.template as usize];
        let other = *numbered.get(index as usize).filter(|_| index >= 0.0)?;
        (other != NO_SLOT && self.threads[other as usize].alive()).then_some(other)
    }

    fn yield_to(&mut self, slot: u32, target: &Target) -> Result<Flow> {
        let other =
            self.target(slot, target).filter(|&other| self.threads[other as usize].can_run());
        // An instance knows no other's threads.
        let here = self.threads[slot as usize].instance;
        let other = other.filter(|&other| self.threads[other as usize].instance == here);
        let first = other.map(|other| (Event::SetNextThread, other));
        if self.outside(slot) {
            return Ok(Flow::Next);
        }
        self.give_way(slot, first)?;
        Ok(Flow::Stopped)
    }

    fn spawn(
        &mut self,
        slot: u32,
        cpu: u32,
        template: u16,
        count: f64,
        arguments: &[(Variable, Expression)],
    ) -> Result<()> {
        let parent = Reference { slot, serial: self.threads[slot as usize].serial };
        for _ in 0..(count.max(0.0) as u64) {
            let values: Vec<(Variable, f64)> = arguments
                .iter()
                .map(|(variable, expression)| (*variable, self.evaluate(expression, slot)))
                .collect();
            self.count_step(slot)?;
            let address = self.threads[slot as usize].next - 1;
            let child = self.allocate(template, Some(parent)).map_err(|error| Diagnostic {
                location: Some(self.workload.locate(address)),
                ..error
            })?;
            self.threads[slot as usize].children += 1;
            self.birth_with(child, Some(cpu), &values)?;
        }
        Ok(())
    }

    fn change_affinity(&mut self, slot: u32, cpus: &CpuSet) -> Result<Flow> {
        if self.outside(slot) {
            return Ok(Flow::Next);
        }
        if cpus.next_from(0).is_none_or(|first| first as usize >= self.cpus.len()) {
            let address = self.threads[slot as usize].next - 1;
            return Err(Diagnostic::new(format!(
                "`{}` is to run only on the CPUs {cpus:?}, and the machine has {}",
                self.name(slot),
                self.cpus.len()
            ))
            .at(self.workload.locate(address)));
        }
        self.affinities[slot as usize] = *cpus;
        let local = self.local_affinity(slot, self.threads[slot as usize].instance);
        self.policy_of(slot).set_affinity(ThreadId(slot), &local);
        if cpus.contains(self.threads[slot as usize].cpu) {
            return Ok(Flow::Next);
        }
        self.give_way(slot, None)?;
        Ok(Flow::Stopped)
    }
}
