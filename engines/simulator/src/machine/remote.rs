//! A machine that is part of a cluster: it is stepped from outside, and what its threads send to
//! shared channels, reply to other nodes and ask of shared variables leaves it as parcels.
//!
//! Times are of the machine's own clock, which begins with its run. The cluster delivers at times
//! that do not go back, and none before the machine's next event has been taken.

use super::thread::{Caller, Message};
use super::*;
use crate::workload::program::SharedChange;

/// What leaves a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parcel {
    /// To a shared channel. A thread waits for the reply if there is a `caller`.
    Message { channel: u16, value: f64, sent: Time, call: Option<Reading> },
    /// A message that was passed on to a shared channel, with the call that another node made.
    Forwarded { channel: u16, value: f64, sent: Time, call: u64 },
    /// The answer to a call of another node, by the cluster's number.
    Reply { call: u64, value: f64 },
    /// A thread waits for a message of a shared channel.
    Wants { channel: u16 },
    /// A thread waits for the value of a shared variable after the change.
    Update { variable: u16, change: Option<(SharedChange, f64)>, reading: Reading },
}

/// A thread that waits for a value from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading(pub(super) Reference);

/// A machine of a cluster, run step by step.
pub struct Part<'a, P: Scheduler> {
    machine: Machine<'a, P>,
}

impl<'a, P: Scheduler> Part<'a, P> {
    /// A machine at its start. The workload must outlive it, as must the options, whose duration
    /// the cluster sees to.
    pub fn new(
        scheduler: &'a mut P,
        workload: &'a Workload,
        options: &'a Options,
    ) -> Result<Part<'a, P>> {
        let mut machine = Machine::new(vec![scheduler], workload, options)?;
        machine.start()?;
        Ok(Part { machine })
    }

    /// When its next event is; none if nothing can happen any more by itself.
    pub fn next_event(&self) -> Option<Time> {
        self.machine.queue.first()
    }

    /// Takes its next event, if that is not after `until`.
    pub fn step(&mut self, until: Time) -> Result<()> {
        match self.machine.queue.pop(until) {
            Some((time, key)) => self.machine.step(time, key),
            None => Ok(()),
        }
    }

    pub fn scheduler(&mut self) -> &mut P {
        self.machine.policies[0]
    }

    /// What left the machine since the last time, in order.
    pub fn take_parcels(&mut self) -> Vec<Parcel> {
        std::mem::take(&mut self.machine.parcels)
    }

    /// Asks idle CPUs again, since a handler may read other values now.
    pub fn ask_again(&mut self, now: Time) -> Result<()> {
        self.machine.begin(now);
        self.machine.dispatch_all()
    }

    /// Suspends threads by command of the cluster.
    pub fn suspend(&mut self, threads: &[ThreadId], now: Time) -> Result<()> {
        self.machine.begin(now);
        self.living(threads).into_iter().try_for_each(|slot| self.machine.suspend(slot))
    }

    /// Lets threads go on that a command suspended.
    pub fn resume(&mut self, threads: &[ThreadId], now: Time) -> Result<()> {
        self.machine.begin(now);
        self.living(threads).into_iter().try_for_each(|slot| self.machine.resume(slot))
    }

    fn living(&self, threads: &[ThreadId]) -> Vec<u32> {
        let alive = |slot: &u32| {
            self.machine.threads.get(*slot as usize).is_some_and(|thread| thread.alive())
        };
        threads.iter().map(|thread| thread.0).filter(alive).collect()
    }

    /// A message for a thread that waits at the shared channel; false if none waits there. `sent`
    /// is in the machine's own time.
    pub fn deliver(
        &mut self,
        channel: u16,
        value: f64,
        sent: Time,
        call: Option<u64>,
        now: Time,
    ) -> Result<bool> {
        self.machine.begin(now);
        let waiting = self.machine.sync.channels.get_mut(channel as usize);
        let Some(receiver) = waiting.and_then(|channel| channel.receivers.pop_front()) else {
            return Ok(false);
        };
        let message = Message { value, sent, caller: call.map(Caller::Elsewhere) };
        self.machine.deliver(receiver, message);
        self.machine.wake(receiver)?;
        self.machine.dispatch_all()?;
        Ok(true)
    }

    /// The value for which a thread waits: a reply, or a shared variable. Without a value the call
    /// was lost: the thread goes on, and its job does not count.
    pub fn answer(&mut self, reading: Reading, value: Option<f64>, now: Time) -> Result<()> {
        self.machine.begin(now);
        let Reading(Reference { slot, serial }) = reading;
        let thread = &mut self.machine.threads[slot as usize];
        let waits = matches!(thread.wait, Wait::Reply(_) | Wait::Shared(_));
        if thread.serial != serial || !waits {
            return Ok(());
        }
        match (value, thread.into.take()) {
            (Some(value), Some(variable)) => self.machine.store(slot, variable, value),
            (Some(_), None) => {}
            (None, _) => thread.job = None,
        }
        self.machine.wake(slot)?;
        self.machine.dispatch_all()
    }

    /// Ends the run at that time.
    pub fn finish(mut self, now: Time) -> Outcome {
        self.machine.begin(now.max(self.machine.now));
        self.machine.finish(Ending::Duration)
    }
}

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// A message to a shared channel; the cluster brings it to a node that waits there.
    pub(super) fn send_outside(&mut self, channel: u16, message: Message) {
        let Message { value, sent, caller } = message;
        self.parcels.push(match caller {
            Some(Caller::Elsewhere(call)) => Parcel::Forwarded { channel, value, sent, call },
            Some(Caller::Thread(caller)) => {
                Parcel::Message { channel, value, sent, call: Some(Reading(caller)) }
            }
            None => Parcel::Message { channel, value, sent, call: None },
        });
    }

    pub(super) fn update_shared(
        &mut self,
        slot: u32,
        variable: u16,
        change: &Option<(SharedChange, Expression)>,
        into: Option<Variable>,
    ) -> Result<Flow> {
        let change = change.as_ref().map(|(change, value)| (*change, self.evaluate(value, slot)));
        let thread = &mut self.threads[slot as usize];
        thread.into = into;
        let reading = Reading(Reference { slot, serial: thread.serial });
        self.parcels.push(Parcel::Update { variable, change, reading });
        self.block(slot, Wait::Shared(variable))?;
        Ok(Flow::Stopped)
    }
}
