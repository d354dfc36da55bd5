//! Calls the policy's handlers in the order that the life of a thread prescribes, and serves the
//! requests in their answers.
//!
//! ```text
//!   schedule                          nothing runs on this CPU; dispatch, or leave it idle
//!   switch_out(t)                     t yields or is preempted
//!   quantum_expired(t), switch_out(t)
//!   set_next_thread(u), switch_out(t)
//!   set_waiting(t), switch_out(t)     later event_raised(t)
//!   suspend_thread(t), switch_out(t)  later resume_thread(t)
//!   set_dead(t), switch_out(t)        then t is removed
//! ```
//! After `switch_out` comes `schedule` on that CPU. After each event idle CPUs are asked again in
//! ascending order, as long as some thread is ready: without one there is nothing that an idle CPU
//! could run.

use std::ops::Range;

use super::*;

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// Calls a handler and takes up what it asks for; what `schedule` dispatched stays in
    /// `decision`.
    pub(super) fn call(&mut self, event: Event, slot: Option<u32>, cpu: u32) -> Result<()> {
        self.decision.clear();
        if !self.handles[event as usize] {
            return Ok(());
        }
        self.calls += 1;
        let instance = self.instance_of(cpu);
        self.take_lock(instance, cpu);
        let Range { start: first, end } = self.instances[instance as usize].cpus;
        let cpus = end - first;
        let call =
            Call { event, thread: slot.map(ThreadId), now: self.now, cpu: cpu - first, cpus };
        let policy = &mut *self.policies[instance as usize];
        if let Err(trap) = policy.call(&call, &mut self.decision) {
            return Err(self.trapped(&call, trap, cpu));
        }
        self.share_globals(instance);
        for index in 0..self.decision.alarms.len() {
            let (ThreadId(slot), at) = self.decision.alarms[index];
            match self.threads.get(slot as usize) {
                Some(thread) if thread.alive() && at > 0 => {
                    self.queue.set(self.alarm_key(slot), at.max(self.now));
                }
                Some(_) => self.queue.cancel(self.alarm_key(slot)),
                None => {}
            }
        }
        for index in 0..self.decision.preempt.len() {
            let (cpu, at) = self.decision.preempt[index];
            if (0..i64::from(cpus)).contains(&cpu) {
                self.ask_to_choose(first + cpu as u32, at);
            }
        }
        Ok(())
    }

    /// `preempt cpu at T`.
    fn ask_to_choose(&mut self, cpu: u32, at: Time) {
        let asked = &mut self.cpus[cpu as usize];
        if at > self.now {
            if asked.running.is_some() && at < asked.preempt_at {
                asked.preempt_at = at;
                // Sooner than what the CPU's timer is set for, if it is set.
                self.queue.advance(cpu, at);
            }
        } else if !asked.preempt {
            asked.preempt = true;
            self.preempts.push_back(cpu);
        }
    }

    fn trapped(&self, call: &Call, trap: crate::scheduler::Trap, cpu: u32) -> Diagnostic {
        let about =
            call.thread.map_or(String::new(), |thread| format!("({})", self.name(thread.0)));
        let place = trap.place.map_or(String::new(), |place| format!("{place}: "));
        Diagnostic::new(format!(
            "the scheduler `{}` failed a check: {place}{}\n  in {}{about} on CPU {} at {}",
            self.policy_name(),
            trap.message,
            call.event,
            cpu,
            duration(self.now)
        ))
    }

    /// Serves preemptions and asks idle CPUs, until nothing more can run.
    pub(super) fn dispatch_all(&mut self) -> Result<()> {
        let actor = self.actor;
        let result = self.dispatch_until_stable();
        self.actor = actor;
        result
    }

    fn dispatch_until_stable(&mut self) -> Result<()> {
        loop {
            while let Some(cpu) = self.preempts.pop_front() {
                self.actor = cpu;
                self.preempt(cpu)?;
            }
            if self.ready == 0 || self.idle_count == 0 {
                self.chosen = None;
                return Ok(());
            }
            if !self.ask_idle()? && self.preempts.is_empty() {
                return Ok(());
            }
        }
    }

    /// Asks idle CPUs: the one that was chosen for a thread, then those whose instance has ready
    /// threads, then those that may pull one from another instance. True if one has a thread now.
    fn ask_idle(&mut self) -> Result<bool> {
        let mut dispatched = false;
        let chosen = self.chosen.take().filter(|&cpu| self.idle.contains(cpu));
        if let Some(cpu) = chosen {
            self.actor = cpu;
            dispatched |= self.schedule(cpu)?;
        }
        let split = self.is_split();
        let mut next = self.idle.next_from(0);
        while let Some(cpu) = next.filter(|_| self.ready > 0) {
            let own = self.instance_of(cpu);
            if !split || !self.instances[own as usize].ready.is_empty() {
                self.actor = cpu;
                dispatched |= self.schedule(cpu)?;
            }
            next = self.idle.next_from(cpu + 1);
        }
        let mut next = if split { self.idle.next_from(0) } else { None };
        while let Some(cpu) = next.filter(|_| self.ready > 0) {
            self.actor = cpu;
            if self.pull(cpu)? {
                dispatched |= self.schedule(cpu)?;
            }
            next = self.idle.next_from(cpu + 1);
        }
        Ok(dispatched)
    }

    fn preempt(&mut self, cpu: u32) -> Result<()> {
        // Served meanwhile if the CPU has chosen since.
        if !std::mem::take(&mut self.cpus[cpu as usize].preempt) {
            return Ok(());
        }
        let Some(slot) = self.cpus[cpu as usize].running else { return Ok(()) };
        self.count_step(slot)?;
        self.account(cpu);
        self.metrics.update(self.who(slot), |tally| tally.preemptions += 1);
        self.make_ready(slot);
        self.leave(cpu, slot)?;
        self.schedule(cpu)?;
        Ok(())
    }

    /// Asks a CPU on which nothing runs for its next thread. True if it has one now.
    pub(super) fn schedule(&mut self, cpu: u32) -> Result<bool> {
        let chooses = &mut self.cpus[cpu as usize];
        chooses.preempt = false;
        chooses.preempt_at = Time::MAX;
        self.call(Event::Schedule, None, cpu)?;
        match self.decision.dispatch {
            Some(dispatch) => self.dispatch(cpu, dispatch.thread.0, dispatch.slice).map(|()| true),
            None => Ok(false),
        }
    }

    fn dispatch(&mut self, cpu: u32, slot: u32, slice: Option<Time>) -> Result<()> {
        let instance = self.instance_of(cpu);
        let allowed = self
            .threads
            .get(slot as usize)
            .is_some_and(|thread| thread.can_run() && thread.instance == instance)
            && self.affinities[slot as usize].contains(cpu);
        if !allowed {
            return Err(self.wrong_dispatch(cpu, slot));
        }
        self.count_in_vain(cpu, slot, slice)?;
        self.leave_ready(slot);
        let now = self.now;
        let thread = &mut self.threads[slot as usize];
        let runner = &mut self.cpus[cpu as usize];
        let switched = runner.last != Some(thread.serial);
        let migrated = thread.cpu != cpu && thread.cpu != NOWHERE;
        let cost = if switched {
            self.context_switch + if migrated { self.migration } else { 0 }
        } else {
            0
        };
        let begins = runner.busy_until.max(now) + cost;
        let latency = begins - thread.ready_since;
        thread.state = State::Running;
        thread.cpu = cpu;
        thread.seat = cpu;
        thread.stays = thread.stays.wrapping_add(1);
        runner.running = Some(slot);
        runner.last = Some(thread.serial);
        runner.usage.switches += u64::from(switched);
        runner.dispatched = now;
        runner.begins = begins;
        runner.accounted = begins;
        // A slice that leaves no time at all would never let the thread move.
        runner.slice_end = slice.map_or(Time::MAX, |slice| begins.saturating_add(slice.max(1)));
        let done = begins + thread.remaining;
        self.queue.set(cpu, done.min(self.cpus[cpu as usize].end()));
        self.idle.remove(cpu);
        self.idle_count -= 1;
        self.metrics.update(self.who(slot), |tally| {
            tally.dispatches += 1;
            tally.switches += u64::from(switched);
            tally.migrations += u64::from(migrated);
            tally.latency.record(latency);
            tally.longest_wait = tally.longest_wait.max(latency);
        });
        self.record(slot, What::Running(cpu));
        Ok(())
    }

    /// Slices without time keep virtual time from going by, all but a nanosecond each: as good as a
    /// loop without an end.
    fn count_in_vain(&mut self, cpu: u32, slot: u32, slice: Option<Time>) -> Result<()> {
        let runner = &mut self.cpus[cpu as usize];
        runner.in_vain = if slice.is_some_and(|slice| slice <= 0) { runner.in_vain + 1 } else { 0 };
        if runner.in_vain < MAX_IN_VAIN {
            return Ok(());
        }
        Err(Diagnostic::new(format!(
            "the scheduler `{}` dispatches for no time, {MAX_IN_VAIN} times in a row on CPU {cpu}, \
                the last `{}`, at {}",
            self.policy_name(),
            self.name(slot),
            duration(self.now)
        ))
        .hint("`dispatch .. for` a time above 0, or dispatch another thread"))
    }

    fn wrong_dispatch(&self, cpu: u32, slot: u32) -> Diagnostic {
        let policy = self.policy_name();
        let Some(thread) = self.threads.get(slot as usize) else {
            return Diagnostic::new(format!(
                "the scheduler `{policy}` dispatched thread {slot}, which never was"
            ));
        };
        let state = if thread.instance != self.instance_of(cpu) {
            "belongs to another instance".to_string()
        } else if thread.can_run() {
            format!("may run only on {:?}", self.affinities[slot as usize])
        } else {
            thread.describe_state().to_string()
        };
        let elsewhere = match thread.state {
            State::Running => format!(" on CPU {}", thread.cpu),
            _ => String::new(),
        };
        let container = match self.policies[thread.instance as usize].where_is(ThreadId(slot)) {
            Some(container) => format!("it sits in `{container}`"),
            None => "it sits in no container".to_string(),
        };
        Diagnostic::new(format!(
            "the scheduler `{policy}` dispatched `{}` on CPU {cpu}, which {state}{elsewhere}; \
                {container}; at {}",
            self.name(slot),
            duration(self.now)
        ))
        .hint(
            "dispatch only threads that are ready, not running elsewhere, and allowed on this \
            CPU",
        )
    }

    // ---- the running thread stops ----

    /// The thread may be dispatched again from now on.
    pub(super) fn make_ready(&mut self, slot: u32) {
        let thread = &mut self.threads[slot as usize];
        thread.state = State::Ready;
        thread.ready_since = self.now;
        if !thread.suspended {
            self.enter_ready(slot);
        }
        self.note_runnable(slot);
        self.record(slot, What::Ready);
    }

    /// The second half of every pair: `switch_out`. The thread's new state is set already.
    pub(super) fn leave(&mut self, cpu: u32, slot: u32) -> Result<()> {
        self.account_overhead(cpu);
        self.queue.cancel(cpu);
        self.call(Event::SwitchOut, Some(slot), cpu)?;
        self.cpus[cpu as usize].running = None;
        self.idle.insert(cpu);
        self.idle_count += 1;
        Ok(())
    }

    /// `first` about `about`, then the running thread is switched out, ready as before.
    pub(super) fn give_way(&mut self, slot: u32, first: Option<(Event, u32)>) -> Result<()> {
        let cpu = self.threads[slot as usize].cpu;
        if let Some((event, about)) = first {
            self.call(event, Some(about), cpu)?;
        }
        self.make_ready(slot);
        self.leave(cpu, slot)?;
        self.leave_excluded(slot)?;
        self.schedule(cpu)?;
        self.dispatch_all()
    }

    /// A ready thread that may run on no CPU of its instance any more goes to another one.
    fn leave_excluded(&mut self, slot: u32) -> Result<()> {
        let thread = &self.threads[slot as usize];
        if self.is_split() && self.allowed_in(slot, thread.instance, thread.seat).is_none() {
            let cpu = self.choose_cpu(slot);
            self.move_thread(slot, cpu)?;
            self.chosen = Some(cpu);
        }
        Ok(())
    }

    /// The running thread's time on its CPU is over: its slice is used up, or the policy wants to
    /// choose again.
    pub(super) fn stay_over(&mut self, slot: u32) -> Result<()> {
        let expired = self.cpus[self.threads[slot as usize].cpu as usize].slice_end <= self.now;
        self.metrics.update(self.who(slot), |tally| tally.preemptions += 1);
        self.give_way(slot, expired.then_some((Event::QuantumExpired, slot)))
    }

    /// The running thread blocks.
    pub(super) fn block(&mut self, slot: u32, wait: Wait) -> Result<()> {
        let thread = &mut self.threads[slot as usize];
        thread.wait = wait;
        thread.state = State::Waiting;
        let (outside, cpu) = (thread.outside, thread.cpu);
        if outside {
            return Ok(());
        }
        self.record(slot, if wait == Wait::Io { What::InOut } else { What::Waiting });
        let event =
            if self.blocks_by_suspending { Event::SuspendThread } else { Event::SetWaiting };
        self.note_runnable(slot);
        self.tell_wait(slot, wait);
        self.call(event, Some(slot), cpu)?;
        self.leave(cpu, slot)?;
        self.schedule(cpu)?;
        self.dispatch_all()
    }

    /// What a thread waits for has come. The caller settles.
    pub(super) fn wake(&mut self, slot: u32) -> Result<()> {
        let thread = &mut self.threads[slot as usize];
        debug_assert_eq!(thread.state, State::Waiting);
        thread.wait = Wait::Nothing;
        if thread.outside {
            self.queue.set(self.thread_key(slot), self.now);
            return Ok(());
        }
        self.queue.cancel(self.thread_key(slot));
        let suspended = self.threads[slot as usize].suspended;
        let cpu = self.choose_cpu(slot);
        self.move_thread(slot, cpu)?;
        self.tell_waker(slot);
        self.chosen = Some(cpu).filter(|_| !suspended);
        self.make_ready(slot);
        if suspended {
            self.record(slot, What::Suspended);
        }
        match (self.blocks_by_suspending, suspended) {
            (false, _) => self.call(Event::EventRaised, Some(slot), cpu),
            (true, false) => self.call(Event::ResumeThread, Some(slot), cpu),
            // To the policy it is suspended once, and resumed when both reasons are gone.
            (true, true) => Ok(()),
        }
    }

    pub(super) fn suspend(&mut self, slot: u32) -> Result<()> {
        let cpu = self.home(slot);
        let thread = &mut self.threads[slot as usize];
        if thread.suspended || thread.outside {
            return Ok(());
        }
        thread.suspended = true;
        let (state, at) = (thread.state, thread.cpu);
        match state {
            State::Running => {
                self.account(at);
                self.threads[slot as usize].state = State::Ready;
                self.note_runnable(slot);
                self.record(slot, What::Suspended);
                self.call(Event::SuspendThread, Some(slot), at)?;
                self.leave(at, slot)?;
                self.schedule(at)?;
            }
            State::Ready => {
                self.leave_ready(slot);
                self.note_runnable(slot);
                self.record(slot, What::Suspended);
                self.call(Event::SuspendThread, Some(slot), cpu)?;
            }
            _ if self.blocks_by_suspending => {}
            _ => self.call(Event::SuspendThread, Some(slot), cpu)?,
        }
        self.dispatch_all()
    }

    pub(super) fn resume(&mut self, slot: u32) -> Result<()> {
        let cpu = self.home(slot);
        let thread = &mut self.threads[slot as usize];
        if !std::mem::take(&mut thread.suspended) {
            return Ok(());
        }
        let waits = thread.state == State::Waiting;
        if !waits {
            self.make_ready(slot);
        }
        if !waits || !self.blocks_by_suspending {
            self.call(Event::ResumeThread, Some(slot), cpu)?;
        }
        self.dispatch_all()
    }

    /// The thread ends: by itself if it runs, else it is killed.
    pub(super) fn end_thread(&mut self, slot: u32) -> Result<()> {
        let thread = &mut self.threads[slot as usize];
        if thread.locks_held > 0 {
            return Err(self.ended_with_lock(slot));
        }
        let (state, at, parent, wait) = (thread.state, thread.cpu, thread.parent, thread.wait);
        let runs = state == State::Running;
        self.end_job(slot, true);
        if self.threads[slot as usize].outside {
            self.sync.forget(slot, wait);
            self.release(slot);
            return Ok(());
        }
        let cpu = if runs { at } else { self.home(slot) };
        if runs {
            self.account(cpu);
        }
        self.call(Event::SetDead, Some(slot), cpu)?;
        self.sync.forget(slot, wait);
        if self.threads[slot as usize].can_run() {
            self.leave_ready(slot);
        }
        if runs {
            self.leave(cpu, slot)?;
        }
        self.release(slot);
        if runs {
            self.schedule(cpu)?;
        }
        if let Some(parent) =
            parent.filter(|parent| self.threads[parent.slot as usize].serial == parent.serial)
        {
            let waiting = &mut self.threads[parent.slot as usize];
            waiting.children -= 1;
            if waiting.children == 0 && waiting.wait == Wait::Children {
                self.wake(parent.slot)?;
            }
        }
        self.dispatch_all()
    }

    pub(super) fn alarm(&mut self, slot: u32) -> Result<()> {
        self.count_step(slot)?;
        self.call(Event::Alarm, Some(slot), self.home(slot))?;
        self.dispatch_all()
    }

    // ---- time on CPUs ----

    /// Brings the figures of a CPU and its thread up to now.
    pub(super) fn account(&mut self, cpu: u32) {
        let runner = &mut self.cpus[cpu as usize];
        let Some(slot) = runner.running else { return };
        let elapsed = self.now - runner.accounted;
        if elapsed > 0 {
            runner.accounted = self.now;
            runner.usage.busy += elapsed;
            self.threads[slot as usize].remaining -= elapsed;
            self.threads[slot as usize].service += elapsed;
            self.metrics.update(self.who(slot), |tally| tally.cpu += elapsed);
        }
    }

    /// Once per stay of a thread: what its switch cost.
    pub(super) fn account_overhead(&mut self, cpu: u32) {
        let runner = &mut self.cpus[cpu as usize];
        runner.usage.overhead += runner.begins.min(self.now) - runner.dispatched;
    }
}
