//! Explains a run in which nothing can ever happen again though threads are left: what each waits
//! for, and whether the workload or the scheduler made the mistake.

use super::*;

/// Threads named in a message before the rest is only counted.
const NAMED: usize = 5;

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// The queue is empty. A scheduler that leaves ready threads lying, and a lock that nobody will
    /// ever release, are errors; threads that wait for a message which never comes are said in a
    /// warning.
    pub(super) fn stalled(&mut self) -> Result<Ending> {
        if self.inside == 0 {
            return Ok(Ending::AllEnded);
        }
        let left: Vec<u32> = (0..self.threads.len() as u32)
            .filter(|&slot| {
                self.threads[slot as usize].alive() && !self.threads[slot as usize].outside
            })
            .collect();
        let ready: Vec<u32> =
            left.iter().copied().filter(|&slot| self.threads[slot as usize].can_run()).collect();
        if !ready.is_empty() {
            return Err(self.left_lying(&ready));
        }
        for &slot in &left {
            if let Wait::Lock(number) = self.threads[slot as usize].wait {
                return Err(self.deadlock(slot, number));
            }
        }
        for &slot in left.iter().take(NAMED) {
            let warning = self.waits_for_ever(slot);
            self.warnings.push(warning);
        }
        if left.len() > NAMED {
            let more = left.len() - NAMED;
            self.warnings.push(Diagnostic::new(format!("{more} more threads wait for ever")));
        }
        Ok(Ending::Stalled)
    }

    fn left_lying(&self, ready: &[u32]) -> Diagnostic {
        let place = |&slot: &u32| {
            let instance = self.threads[slot as usize].instance;
            let container = self.policies[instance as usize].where_is(ThreadId(slot));
            format!(
                "`{}` in {}",
                self.name(slot),
                container.unwrap_or_else(|| "no container".into())
            )
        };
        let mut named: Vec<String> = ready.iter().take(NAMED).map(place).collect();
        if ready.len() > NAMED {
            named.push(format!("{} more", ready.len() - NAMED));
        }
        Diagnostic::new(format!(
            "the scheduler `{}` leaves all CPUs idle for ever from {} on, though threads are \
                ready: {}",
            self.policy_name(),
            duration(self.now),
            named.join(", ")
        ))
        .hint(
            "`schedule` must dispatch one of them, or an alarm must be set that makes it do so \
            later",
        )
    }

    fn deadlock(&self, slot: u32, first_lock: u16) -> Diagnostic {
        let mut chain = Vec::new();
        let (mut waiter, mut number) = (slot, first_lock);
        // The circle closes after at most one visit to each lock.
        for _ in 0..=self.sync.locks.len() {
            let lock = &self.workload.locks[number as usize];
            let Some(holder) = self.sync.locks[number as usize].holder else { break };
            chain.push(format!(
                "`{}` waits for the lock `{lock}` of `{}`",
                self.name(waiter),
                self.name(holder)
            ));
            match self.threads[holder as usize].wait {
                Wait::Lock(next) if holder != slot => (waiter, number) = (holder, next),
                Wait::Lock(_) => break,
                wait => {
                    chain.push(format!("`{}` {}", self.name(holder), self.describe(wait)));
                    break;
                }
            }
        }
        Diagnostic::new(format!(
            "deadlock at {}: \
            {}",
            duration(self.now),
            chain.join("; ")
        ))
        .at(self.workload.locate(self.threads[slot as usize].next.saturating_sub(1)))
        .hint(
            "take locks in the same order everywhere, and release each before waiting for \
                    something else",
        )
    }

    fn waits_for_ever(&self, slot: u32) -> Diagnostic {
        let thread = &self.threads[slot as usize];
        let what = if thread.suspended && thread.state == State::Ready {
            "is suspended, and nobody is left to resume it".to_string()
        } else {
            format!("{} for ever", self.describe(thread.wait))
        };
        Diagnostic::new(format!("`{}` {what}", self.name(slot)))
            .at(self.workload.locate(thread.next.saturating_sub(1)))
    }

    fn describe(&self, wait: Wait) -> String {
        let workload = self.workload;
        match wait {
            Wait::Nothing => "does not wait".into(),
            Wait::Time => "sleeps".into(),
            Wait::Io => "waits for input or output".into(),
            Wait::Semaphore(n) => {
                format!("waits for the semaphore `{}`", workload.semaphores[n as usize].name)
            }
            Wait::Channel(n) => {
                format!("waits for a message from `{}`", workload.channels[n as usize].name)
            }
            Wait::Reply(n) => {
                format!("waits for a reply through `{}`", workload.channels[n as usize].name)
            }
            Wait::Shared(n) => {
                format!(
                    "waits for the shared variable `{}`",
                    workload.cluster_variables[n as usize]
                )
            }
            Wait::Lock(n) => format!("waits for the lock `{}`", workload.locks[n as usize]),
            Wait::Condition { condition, .. } => {
                format!("waits for the condition `{}`", workload.conditions[condition as usize])
            }
            Wait::Barrier(n) => {
                format!("waits at the barrier `{}`", workload.barriers[n as usize].name)
            }
            Wait::Wake => "waits to be woken".into(),
            Wait::Children => "waits for its children".into(),
        }
    }

    pub(super) fn ended_with_lock(&self, slot: u32) -> Diagnostic {
        let held: Vec<u16> = (0..self.sync.locks.len() as u16)
            .filter(|&number| self.sync.locks[number as usize].holder == Some(slot))
            .collect();
        let names: Vec<String> = held
            .iter()
            .map(|&number| format!("`{}`", self.workload.locks[number as usize]))
            .collect();
        let thread = &self.threads[slot as usize];
        let entry = self.workload.templates[thread.template as usize].entry;
        let taken = (entry..thread.next).rev().find(|&address| {
            let operation = &self.workload.operations[address as usize];
            matches!(operation, Operation::Lock(number) if held.contains(number))
        });
        Diagnostic::new(format!(
            "`{}` ends at {} while it holds the lock {}",
            self.name(slot),
            duration(self.now),
            names.join(", ")
        ))
        .at(self.workload.locate(taken.unwrap_or(entry)))
        .hint("unlock it first; { lock = \"name\", do = [...] } does so by itself")
    }
}
