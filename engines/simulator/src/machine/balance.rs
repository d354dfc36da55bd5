//! Keeps weighted service even between instances, slowly: a thread whose lag passes a limit is
//! moved, or makes another one move.
//!
//! Lag is the service that a thread should have received less what it did receive. Every period the
//! service of all threads is divided anew by weight, and no thread is due more than the time in
//! which it was runnable.

use super::*;

/// How often service is compared.
pub(super) const PERIOD: Time = 10_000_000;
/// The lag, or lead, that makes a thread move.
const LIMIT: Time = 50_000_000;
/// An instance that took part in a move rests that long.
const REST: Time = 50_000_000;
/// Lags are kept within this: one that no move can mend says nothing more by growing.
const LONGEST_LAG: Time = 1_000_000_000;

/// What a thread received in a period, and the most that it could have.
struct Share {
    slot: u32,
    weight: i64,
    service: Time,
    runnable: Time,
}

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    pub(super) fn balance(&mut self) -> Result<()> {
        // The queue holds no event of a machine in which nothing can happen any more.
        if !self.queue.is_empty() {
            let key = self.balance_key();
            self.queue.set(key, self.now + PERIOD);
        }
        for cpu in 0..self.topology.cpus {
            self.account(cpu);
        }
        let shares = self.take_shares();
        for (share, due) in shares.iter().zip(due(&shares)) {
            let lag = &mut self.threads[share.slot as usize].lag;
            *lag = (*lag + due - share.service).clamp(-LONGEST_LAG, LONGEST_LAG);
        }
        self.note_lags(&shares);
        let lag = |slot: u32| self.threads[slot as usize].lag;
        let mut beyond: Vec<u32> =
            shares.iter().map(|share| share.slot).filter(|&slot| lag(slot).abs() > LIMIT).collect();
        beyond.sort_by_key(|&slot| (-lag(slot).abs(), self.threads[slot as usize].serial));
        for slot in beyond {
            let thread = &self.threads[slot as usize];
            if thread.load == 0 || self.rests(thread.instance) {
                continue;
            }
            let found =
                if thread.lag > 0 { self.help(slot) } else { self.company(thread.instance) };
            if let Some((moving, cpu)) = found {
                let until = self.now + REST;
                let (old, new) = (self.threads[moving as usize].instance, self.instance_of(cpu));
                self.instances[old as usize].rests_until = until;
                self.instances[new as usize].rests_until = until;
                self.move_thread(moving, cpu)?;
            }
        }
        self.dispatch_all()
    }

    /// What each thread received since the last period, which begins anew.
    fn take_shares(&mut self) -> Vec<Share> {
        let mut shares = Vec::new();
        for slot in 0..self.threads.len() as u32 {
            let now = self.now;
            let thread = &mut self.threads[slot as usize];
            if thread.outside || !thread.alive() {
                continue;
            }
            if thread.load > 0 {
                thread.runnable += now - thread.runnable_from;
                thread.runnable_from = now;
            }
            let runnable = std::mem::take(&mut thread.runnable);
            let service = std::mem::take(&mut thread.service);
            if runnable == 0 {
                continue;
            }
            let weight = self.weight(slot);
            let thread = &mut self.threads[slot as usize];
            if thread.load > 0 {
                self.instances[thread.instance as usize].load += weight - thread.load;
                thread.load = weight;
            }
            shares.push(Share { slot, weight, service, runnable });
        }
        shares
    }

    fn note_lags(&mut self, shares: &[Share]) {
        for instance in &mut self.instances {
            instance.lags = (Time::MAX, Time::MIN);
        }
        for share in shares {
            let thread = &self.threads[share.slot as usize];
            let lags = &mut self.instances[thread.instance as usize].lags;
            *lags = (lags.0.min(thread.lag), lags.1.max(thread.lag));
        }
        for instance in &mut self.instances {
            if instance.lags.0 > instance.lags.1 {
                instance.lags = (0, 0);
            }
        }
    }

    fn rests(&self, instance: u32) -> bool {
        self.instances[instance as usize].rests_until > self.now
    }

    /// A move that gives a lagging thread more: its own, or that of another thread beside it.
    fn help(&self, slot: u32) -> Option<(u32, u32)> {
        let thread = &self.threads[slot as usize];
        let own = thread.instance;
        if thread.can_run()
            && let Some(cpu) = self.lighter(slot, own, thread.load)
        {
            return Some((slot, cpu));
        }
        self.least_lagging(own, |other| other != slot && self.lighter(other, own, 0).is_some())
            .and_then(|other| self.lighter(other, own, 0).map(|cpu| (other, cpu)))
    }

    /// A thread for the instance of one that leads: from the instance with the most weight for each
    /// CPU; of equals, the one with the thread that lags most.
    fn company(&self, own: u32) -> Option<(u32, u32)> {
        let pressure = |number: u32| self.instances[number as usize].pressure(0);
        let lag = |number: u32| self.instances[number as usize].lags.1;
        let mut heaviest = None;
        for number in 0..self.instances.len() as u32 {
            let heavier = heaviest.is_none_or(|other| {
                let (this, that) = (pressure(number), pressure(other));
                that.below(this) || !this.below(that) && lag(number) > lag(other)
            });
            if !self.rests(number) && heavier && pressure(own).below(pressure(number)) {
                heaviest = Some(number);
            }
        }
        let from = heaviest?;
        let near = self.instances[own as usize].cpus.start;
        let slot = self.least_lagging(from, |other| self.allowed_in(other, own, near).is_some())?;
        self.allowed_in(slot, own, near).map(|cpu| (slot, cpu))
    }

    /// A CPU on which the thread may run, of the instance with the least weight for each CPU, if
    /// that is less than in `own`, with `extra` weight there. Among equals, the instance whose
    /// thread leads most.
    fn lighter(&self, slot: u32, own: u32, extra: i64) -> Option<u32> {
        let mut best: Option<(u32, u32)> = None;
        let near = self.home(slot);
        for number in (0..self.instances.len() as u32).filter(|&number| number != own) {
            let this = &self.instances[number as usize];
            let better = match best {
                Some((other, _)) => {
                    let that = &self.instances[other as usize];
                    let (here, there) = (this.pressure(extra), that.pressure(extra));
                    here.below(there) || !there.below(here) && this.lags.0 < that.lags.0
                }
                None => this.pressure(extra).below(self.instances[own as usize].pressure(0)),
            };
            if better
                && !self.rests(number)
                && let Some(cpu) = self.allowed_in(slot, number, near)
            {
                best = Some((number, cpu));
            }
        }
        best.map(|(_, cpu)| cpu)
    }

    /// The instance's ready thread with the smallest lag.
    fn least_lagging(&self, instance: u32, allowed: impl Fn(u32) -> bool) -> Option<u32> {
        let ready = self.instances[instance as usize].ready.iter().map(|&(_, _, slot)| slot);
        ready.filter(|&slot| allowed(slot)).min_by_key(|&slot| {
            let thread = &self.threads[slot as usize];
            (thread.lag, thread.serial)
        })
    }
}

/// The service of all threads divided by weight, no thread due more than it could have received.
fn due(shares: &[Share]) -> Vec<Time> {
    let mut order: Vec<usize> = (0..shares.len()).collect();
    // Threads that could receive least for their weight are satisfied first.
    let full = |share: &Share| share.runnable as f64 / share.weight as f64;
    order.sort_by(|&a, &b| full(&shares[a]).total_cmp(&full(&shares[b])));
    let mut left: Time = shares.iter().map(|share| share.service).sum();
    let mut weight: i64 = shares.iter().map(|share| share.weight).sum();
    let mut due = vec![0; shares.len()];
    for index in order {
        let share = &shares[index];
        let part = (i128::from(left) * i128::from(share.weight) / i128::from(weight)) as Time;
        due[index] = part.min(share.runnable);
        left -= due[index];
        weight -= share.weight;
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(threads: &[(i64, Time)], service: Time) -> Vec<Time> {
        let mut shares: Vec<Share> = threads
            .iter()
            .map(|&(weight, runnable)| Share { slot: 0, weight, service: 0, runnable })
            .collect();
        shares[0].service = service;
        due(&shares)
    }

    #[test]
    fn service_is_divided_by_weight_up_to_what_each_could_use() {
        assert_eq!(divided(&[(1, 10), (1, 10)], 10), [5, 5]);
        assert_eq!(divided(&[(3, 100), (1, 100)], 40), [30, 10]);
        // Three quarters of two CPUs are more than one thread can use.
        assert_eq!(divided(&[(3, 10), (1, 10)], 20), [10, 10]);
        // A sleeper is due no more than it wanted.
        assert_eq!(divided(&[(1, 1), (1, 10), (1, 10)], 10), [1, 4, 5]);
        assert_eq!(divided(&[(5, 0), (1, 10)], 10), [0, 10]);
    }
}
