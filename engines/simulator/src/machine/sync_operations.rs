//! Executes the operations on synchronisation objects: semaphores, channels, locks, conditions,
//! barriers.

use super::thread::{Caller, Message};
use super::*;

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    pub(super) fn synchronise(&mut self, slot: u32, operation: &Operation) -> Result<Flow> {
        match operation {
            Operation::Wait(number) => {
                let semaphore = &mut self.sync.semaphores[*number as usize];
                if semaphore.count > 0 {
                    semaphore.count -= 1;
                    return Ok(Flow::Next);
                }
                semaphore.waiters.push_back(slot);
                self.block(slot, Wait::Semaphore(*number))?;
                Ok(Flow::Stopped)
            }
            Operation::Signal(number, count) => {
                let count = self.evaluate(count, slot).max(0.0) as u64;
                self.signal(*number, count)
            }
            Operation::Send { channel, value } => {
                let message =
                    Message { value: self.evaluate(value, slot), sent: self.now, caller: None };
                self.send(*channel, message)?;
                Ok(Flow::Next)
            }
            Operation::Call { channel, value, into } => {
                let caller = Reference { slot, serial: self.threads[slot as usize].serial };
                let message = Message {
                    value: self.evaluate(value, slot),
                    sent: self.now,
                    caller: Some(Caller::Thread(caller)),
                };
                self.call_out(slot, *channel, message, *into)
            }
            Operation::Receive { channel, into } => {
                self.threads[slot as usize].into = *into;
                match self.sync.channels[*channel as usize].messages.pop_front() {
                    Some(message) => {
                        self.deliver(slot, message);
                        Ok(Flow::Next)
                    }
                    None => {
                        self.sync.channels[*channel as usize].receivers.push_back(slot);
                        if self.workload.channels[*channel as usize].shared {
                            self.parcels.push(Parcel::Wants { channel: *channel });
                        }
                        self.block(slot, Wait::Channel(*channel))?;
                        Ok(Flow::Stopped)
                    }
                }
            }
            Operation::Update { variable, change, into } => {
                self.update_shared(slot, *variable, change, *into)
            }
            Operation::Reply(value) => {
                let value = self.evaluate(value, slot);
                self.reply(slot, value)
            }
            Operation::Forward(channel) => match self.threads[slot as usize].message {
                Some(message) => {
                    self.send(*channel, message)?;
                    self.threads[slot as usize].message = None;
                    Ok(Flow::Next)
                }
                None => Err(self.misuse(slot, "passes on a message, but has received none")),
            },
            Operation::Lock(number) => {
                let lock = &mut self.sync.locks[*number as usize];
                match lock.holder {
                    None => {
                        lock.holder = Some(slot);
                        self.threads[slot as usize].locks_held += 1;
                        Ok(Flow::Next)
                    }
                    Some(holder) if holder == slot => {
                        let name = &self.workload.locks[*number as usize];
                        let what = format!("takes the lock `{name}`, which it holds already");
                        Err(self.misuse(slot, &what))
                    }
                    Some(_) => {
                        lock.waiters.push_back(slot);
                        self.block(slot, Wait::Lock(*number))?;
                        Ok(Flow::Stopped)
                    }
                }
            }
            Operation::Unlock(number) => {
                self.unlock(slot, *number)?;
                Ok(Flow::Next)
            }
            Operation::Await { condition, lock } => {
                let wait = Wait::Condition { condition: *condition, lock: *lock };
                self.sync.conditions[*condition as usize].push_back(slot);
                if let Some(lock) = lock {
                    self.unlock_quietly(slot, *lock)?;
                }
                let next_holder = lock.and_then(|lock| self.hand_over(lock));
                self.block(slot, wait)?;
                if let Some(holder) = next_holder {
                    self.wake(holder)?;
                    self.dispatch_all()?;
                }
                Ok(Flow::Stopped)
            }
            Operation::Notify(condition) => {
                if let Some(waiter) = self.sync.conditions[*condition as usize].pop_front() {
                    self.notified(waiter)?;
                    self.dispatch_all()?;
                }
                Ok(Flow::Next)
            }
            Operation::NotifyAll(condition) => {
                // Only threads that wait now, not those that come back while the others are woken.
                for _ in 0..self.sync.conditions[*condition as usize].len() {
                    if let Some(waiter) = self.sync.conditions[*condition as usize].pop_front() {
                        self.notified(waiter)?;
                        self.dispatch_all()?;
                    }
                }
                Ok(Flow::Next)
            }
            Operation::Barrier(number) => self.barrier(slot, *number),
            // `perform` handles all others.
            _ => Ok(Flow::Next),
        }
    }

    fn signal(&mut self, number: u16, count: u64) -> Result<Flow> {
        for left in (1..=count).rev() {
            let semaphore = &mut self.sync.semaphores[number as usize];
            match semaphore.waiters.pop_front() {
                Some(waiter) => {
                    self.wake(waiter)?;
                    self.dispatch_all()?;
                }
                None => {
                    semaphore.count = semaphore.count.saturating_add(left);
                    break;
                }
            }
        }
        Ok(Flow::Next)
    }

    /// False if the message found no room.
    fn send(&mut self, channel: u16, message: Message) -> Result<bool> {
        if self.workload.channels[channel as usize].shared {
            self.send_outside(channel, message);
            return Ok(true);
        }
        let place = &mut self.sync.channels[channel as usize];
        if let Some(receiver) = place.receivers.pop_front() {
            self.deliver(receiver, message);
            self.wake(receiver)?;
            self.dispatch_all()?;
        } else if place.capacity.is_some_and(|capacity| place.messages.len() >= capacity) {
            place.lost += 1;
            return Ok(false);
        } else {
            place.messages.push_back(message);
        }
        Ok(true)
    }

    pub(super) fn deliver(&mut self, slot: u32, message: Message) {
        self.threads[slot as usize].message = Some(message);
        if let Some(variable) = self.threads[slot as usize].into.take() {
            self.store(slot, variable, message.value);
        }
    }

    /// Waits before it sends, so that a reply cannot come too early. A call that is lost returns at
    /// once.
    fn call_out(
        &mut self,
        slot: u32,
        channel: u16,
        message: Message,
        into: Option<Variable>,
    ) -> Result<Flow> {
        self.threads[slot as usize].into = into;
        let place = &self.sync.channels[channel as usize];
        let full = place.receivers.is_empty()
            && place.capacity.is_some_and(|capacity| place.messages.len() >= capacity);
        if full {
            self.sync.channels[channel as usize].lost += 1;
            // Nobody was served: this job is none.
            self.threads[slot as usize].job = None;
            return Ok(Flow::Next);
        }
        self.block(slot, Wait::Reply(channel))?;
        self.send(channel, message)?;
        Ok(Flow::Stopped)
    }

    fn reply(&mut self, slot: u32, value: f64) -> Result<Flow> {
        let Some(message) = self.threads[slot as usize].message.take() else {
            return Err(self.misuse(slot, "replies, but has received no message"));
        };
        if let Some(Caller::Elsewhere(call)) = message.caller {
            self.parcels.push(Parcel::Reply { call, value });
        }
        if let Some(Caller::Thread(caller)) = message.caller {
            let thread = &self.threads[caller.slot as usize];
            if thread.serial == caller.serial && matches!(thread.wait, Wait::Reply(_)) {
                if let Some(variable) = self.threads[caller.slot as usize].into.take() {
                    self.store(caller.slot, variable, value);
                }
                self.wake(caller.slot)?;
                self.dispatch_all()?;
            }
        }
        Ok(Flow::Next)
    }

    fn unlock(&mut self, slot: u32, number: u16) -> Result<()> {
        self.unlock_quietly(slot, number)?;
        if let Some(next) = self.hand_over(number) {
            self.wake(next)?;
            self.dispatch_all()?;
        }
        Ok(())
    }

    fn unlock_quietly(&mut self, slot: u32, number: u16) -> Result<()> {
        let lock = &mut self.sync.locks[number as usize];
        if lock.holder != Some(slot) {
            let name = &self.workload.locks[number as usize];
            return Err(self.misuse(slot, &format!("unlocks `{name}`, which it does not hold")));
        }
        lock.holder = None;
        self.threads[slot as usize].locks_held -= 1;
        Ok(())
    }

    /// Gives a free lock to the first that waits for it; the caller wakes that thread.
    fn hand_over(&mut self, number: u16) -> Option<u32> {
        let lock = &mut self.sync.locks[number as usize];
        let next = lock.waiters.pop_front()?;
        lock.holder = Some(next);
        self.threads[next as usize].locks_held += 1;
        Some(next)
    }

    /// A waiter of a condition has been notified: it goes on as soon as it has its lock.
    fn notified(&mut self, waiter: u32) -> Result<()> {
        if let Wait::Condition { lock: Some(number), .. } = self.threads[waiter as usize].wait {
            let lock = &mut self.sync.locks[number as usize];
            if lock.holder.is_some() {
                lock.waiters.push_back(waiter);
                self.threads[waiter as usize].wait = Wait::Lock(number);
                return Ok(());
            }
            lock.holder = Some(waiter);
            self.threads[waiter as usize].locks_held += 1;
        }
        self.wake(waiter)
    }

    fn barrier(&mut self, slot: u32, number: u16) -> Result<Flow> {
        let barrier = &mut self.sync.barriers[number as usize];
        if barrier.waiters.len() + 1 < barrier.parties {
            barrier.waiters.push_back(slot);
            self.block(slot, Wait::Barrier(number))?;
            return Ok(Flow::Stopped);
        }
        for _ in 0..barrier.waiters.len() {
            if let Some(waiter) = self.sync.barriers[number as usize].waiters.pop_front() {
                self.wake(waiter)?;
                self.dispatch_all()?;
            }
        }
        Ok(Flow::Next)
    }

    /// The workload does something that makes no sense.
    fn misuse(&self, slot: u32, what: &str) -> Diagnostic {
        let address = self.threads[slot as usize].next - 1;
        Diagnostic::new(format!("`{}` {what}, at {}", self.name(slot), duration(self.now)))
            .at(self.workload.locate(address))
    }
}
