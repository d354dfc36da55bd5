//! Chooses where threads go: the CPU for a thread that wakes or is new, and the thread for a CPU
//! that is idle.

use std::ops::Range;

use super::*;

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// The CPU for a thread that becomes ready: an idle one, near before far; else the one where it
    /// was.
    pub(super) fn choose_cpu(&self, slot: u32) -> u32 {
        let home = self.home(slot);
        self.idle_near(slot, home).unwrap_or_else(|| {
            if self.affinities[slot as usize].contains(home) {
                home
            } else {
                self.allowed_anywhere(slot)
            }
        })
    }

    /// The CPU for a new thread, made on `near`: an idle one, near before far; else one of the
    /// instance with the least weight for each CPU.
    pub(super) fn choose_first_cpu(&self, slot: u32, near: u32) -> u32 {
        if let Some(cpu) = self.idle_near(slot, near) {
            return cpu;
        }
        let own = self.instance_of(near);
        let allowed = |number: u32| self.allowed_in(slot, number, near);
        let mut best = allowed(own).map(|cpu| (own, cpu));
        for number in 0..self.instances.len() as u32 {
            let Some(cpu) = allowed(number) else { continue };
            let lighter = |(other, _): (u32, u32)| {
                let pressure = |number: u32| self.instances[number as usize].pressure(0);
                pressure(number).below(pressure(other))
            };
            if best.is_none_or(lighter) {
                best = Some((number, cpu));
            }
        }
        best.map_or(near, |(_, cpu)| cpu)
    }

    /// A CPU of the instance on which the thread may run: an idle one, `near`, or the first.
    pub(super) fn allowed_in(&self, slot: u32, instance: u32, near: u32) -> Option<u32> {
        let cpus = self.instances[instance as usize].cpus.clone();
        let allowed = &self.affinities[slot as usize];
        self.idle_in(slot, cpus.clone()).or_else(|| {
            if cpus.contains(&near) && allowed.contains(near) {
                return Some(near);
            }
            allowed.next_from(cpus.start).filter(|cpu| *cpu < cpus.end)
        })
    }

    fn allowed_anywhere(&self, slot: u32) -> u32 {
        self.choose_first_cpu(slot, self.affinities[slot as usize].next_from(0).unwrap_or(0))
    }

    /// An idle CPU: this one, one of its instance, one of its cache, any.
    fn idle_near(&self, slot: u32, cpu: u32) -> Option<u32> {
        if self.idle_count == 0 {
            return None;
        }
        if self.idle.contains(cpu) && self.affinities[slot as usize].contains(cpu) {
            return Some(cpu);
        }
        let instance = self.instances[self.instance_of(cpu) as usize].cpus.clone();
        let cache = self.topology.cache_of(cpu);
        [instance, cache, 0..self.topology.cpus]
            .into_iter()
            .find_map(|cpus| self.idle_in(slot, cpus))
    }

    fn idle_in(&self, slot: u32, cpus: Range<u32>) -> Option<u32> {
        let allowed = &self.affinities[slot as usize];
        let mut next = self.idle.next_from(cpus.start);
        while let Some(cpu) = next.filter(|cpu| *cpu < cpus.end) {
            if allowed.contains(cpu) {
                return Some(cpu);
            }
            next = self.idle.next_from(cpu + 1);
        }
        None
    }

    /// Brings an idle CPU, whose instance has no ready thread that may run there, one from another
    /// instance: the one that has been ready longest, in this cache or else anywhere. True if it
    /// found one.
    pub(super) fn pull(&mut self, cpu: u32) -> Result<bool> {
        let own = self.instance_of(cpu);
        let here = |slot: u32| self.affinities[slot as usize].contains(cpu);
        if self.instances[own as usize].ready.iter().any(|&(_, _, slot)| here(slot)) {
            return Ok(false);
        }
        let cache = self.topology.cache_of(cpu);
        let longest = |near: bool| {
            let instances = self.instances.iter().filter(|instance| {
                cache.contains(&instance.cpus.start) == near && !instance.cpus.contains(&cpu)
            });
            instances
                .filter_map(|instance| instance.ready.iter().find(|&&(_, _, slot)| here(slot)))
                .min()
        };
        let Some(&(_, _, slot)) = longest(true).or_else(|| longest(false)) else {
            return Ok(false);
        };
        self.move_thread(slot, cpu).map(|()| true)
    }
}
