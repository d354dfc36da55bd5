//! Models what the scheduler's lock costs: a CPU that calls a handler waits until the lock of the
//! instance is free, pays for its hand-over from another CPU, and holds it for a time.
//!
//! Handlers still run at the instant of their event, in the order in which the CPUs ask for the
//! lock; the time that it takes is lost to the CPU afterwards.

use super::*;

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// The CPU that is at work calls a handler of this instance.
    pub(super) fn take_lock(&mut self, instance: u32, handler_cpu: u32) {
        let costs = self.workload.lock;
        if costs.is_free() {
            return;
        }
        // An event from outside interrupts the CPU for which its handler runs.
        let cpu = if self.actor == NOWHERE { handler_cpu } else { self.actor };
        let lock = &mut self.instances[instance as usize].lock;
        let hand_over = match lock.holder {
            Some(holder) if holder != cpu => {
                if self.topology.cache_of(cpu).contains(&holder) {
                    costs.near
                } else {
                    costs.far
                }
            }
            _ => 0,
        };
        let asked = self.now.max(self.cpus[cpu as usize].busy_until);
        let got = asked.max(lock.free_at);
        let freed = got + hand_over + costs.hold;
        lock.free_at = freed;
        lock.holder = Some(cpu);
        let asking = &mut self.cpus[cpu as usize];
        asking.busy_until = freed;
        asking.usage.lock_wait += got - asked;
        self.charged.push(cpu);
    }

    /// Makes the threads of CPUs that had the lock begin later.
    pub(super) fn charge_locks(&mut self) {
        while let Some(cpu) = self.charged.pop() {
            self.account(cpu);
            let (now, busy_until) = (self.now, self.cpus[cpu as usize].busy_until);
            let runner = &self.cpus[cpu as usize];
            let Some(slot) = runner.running else { continue };
            if busy_until <= runner.begins.max(now) {
                continue;
            }
            if runner.begins <= now {
                self.account_overhead(cpu);
                self.cpus[cpu as usize].dispatched = now;
            }
            let runner = &mut self.cpus[cpu as usize];
            runner.begins = busy_until;
            runner.accounted = busy_until;
            let done = busy_until + self.threads[slot as usize].remaining;
            self.queue.set(cpu, done.min(runner.end()).max(now));
        }
    }
}
