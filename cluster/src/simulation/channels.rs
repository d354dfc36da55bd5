//! Channels in which nodes meet: a message goes to the thread that has waited longest, or to any
//! that waits, on whatever node it is; a reply goes back to its caller.
//!
//! They stand for sockets: a message between nodes takes the link's delay, waits for the end of a
//! partition, and is not lost. A call whose node crashes returns without a value, as a connection
//! that is reset.

use std::collections::{BTreeMap, VecDeque};

use attune_simulator::cluster::ClusterWorkload;
use attune_simulator::scheduler::Time;
use attune_simulator::{Parcel, Reading};

use super::driver::{Cluster, Result, What};
use super::queue::Queue;

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    pub value: f64,
    pub sent: Time,
    pub call: Option<u64>,
}

/// A member, None for the world, and the number of a channel in its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub member: Option<usize>,
    pub channel: u16,
}

#[derive(Default)]
struct Channel {
    messages: VecDeque<Envelope>,
    waiting: VecDeque<Address>,
    capacity: Option<usize>,
    to_any: bool,
    lost: u64,
}

struct Call {
    caller: Option<usize>,
    reading: Reading,
    /// The member whose thread has the message.
    holder: Option<usize>,
}

pub struct Channels {
    channels: Vec<Channel>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    random: fastrand::Rng,
}

impl Channels {
    pub fn new(workload: &ClusterWorkload, seed: u64) -> Channels {
        let channels = workload.channels.iter();
        let channels = channels.map(|declared| Channel {
            capacity: declared.capacity,
            to_any: declared.to_any,
            ..Channel::default()
        });
        Channels {
            channels: channels.collect(),
            calls: BTreeMap::new(),
            last_call: 0,
            random: fastrand::Rng::with_seed(!seed),
        }
    }

    /// A message reaches its channel.
    pub fn arrive(
        &mut self,
        number: usize,
        envelope: Envelope,
        now: Time,
        queue: &mut Queue<What>,
    ) {
        let channel = &mut self.channels[number];
        let full = channel.capacity.is_some_and(|capacity| channel.messages.len() >= capacity);
        if channel.waiting.is_empty() && full {
            channel.lost += 1;
            if let Some(call) = envelope.call {
                queue.push(now, What::Reply(call, None));
            }
            return;
        }
        channel.messages.push_back(envelope);
        self.pair(number, now, queue);
    }

    fn pair(&mut self, number: usize, now: Time, queue: &mut Queue<What>) {
        let channel = &mut self.channels[number];
        while !channel.messages.is_empty() && !channel.waiting.is_empty() {
            let next = if channel.to_any { self.random.usize(..channel.waiting.len()) } else { 0 };
            let (message, address) = (channel.messages.pop_front(), channel.waiting.remove(next));
            let (Some(message), Some(address)) = (message, address) else { return };
            if let Some(call) = message.call.and_then(|call| self.calls.get_mut(&call)) {
                call.holder = address.member;
            }
            queue.push(now, What::Hand(address, message));
        }
    }

    /// A member is gone: its threads wait no longer, and calls that it had are lost.
    pub fn forget(&mut self, member: usize, now: Time, queue: &mut Queue<What>) {
        for channel in &mut self.channels {
            channel.waiting.retain(|address| address.member != Some(member));
        }
        self.calls.retain(|_, call| call.caller != Some(member));
        for (&number, _) in self.calls.iter().filter(|(_, call)| call.holder == Some(member)) {
            queue.push(now, What::Reply(number, None));
        }
    }

    pub fn lost(&self, workload: &ClusterWorkload) -> Vec<(String, u64)> {
        let declared = workload.channels.iter().zip(&self.channels);
        let bounded = declared.filter(|(_, channel)| channel.capacity.is_some());
        bounded.map(|(declared, channel)| (declared.name.clone(), channel.lost)).collect()
    }
}

impl Cluster<'_> {
    /// What a thread of a member, or of the world, sends, passes on, replies or waits for.
    pub fn send_parcel(&mut self, from: Option<usize>, parcel: Parcel) {
        let at = self.travels(from);
        let start = from.map_or(0, |from| self.members[from].start);
        match parcel {
            Parcel::Message { channel, value, sent, call } => {
                let Some(number) = self.channel_number(from, channel) else { return };
                let call = call.map(|reading| {
                    self.channels.last_call += 1;
                    let made = Call { caller: from, reading, holder: None };
                    self.channels.calls.insert(self.channels.last_call, made);
                    self.channels.last_call
                });
                let envelope = Envelope { value, sent: start + sent, call };
                self.queue.push(at, What::Message(number, envelope));
            }
            Parcel::Forwarded { channel, value, sent, call } => {
                let Some(number) = self.channel_number(from, channel) else { return };
                if let Some(call) = self.channels.calls.get_mut(&call) {
                    call.holder = None;
                }
                let envelope = Envelope { value, sent: start + sent, call: Some(call) };
                self.queue.push(at, What::Message(number, envelope));
            }
            Parcel::Reply { call, value } => self.queue.push(at, What::Reply(call, Some(value))),
            Parcel::Wants { channel } => {
                let Some(number) = self.channel_number(from, channel) else { return };
                let address = Address { member: from, channel };
                self.channels.channels[number].waiting.push_back(address);
                self.channels.pair(number, self.now, &mut self.queue);
            }
            Parcel::Update { .. } => {}
        }
    }

    /// When what a member sends arrives; the world is as near as its clients' own times say.
    fn travels(&self, from: Option<usize>) -> Time {
        let Some(from) = from else { return self.now };
        self.now.max(self.members[from].cut_until) + self.workload.link.delay
    }

    fn channel_number(&self, member: Option<usize>, channel: u16) -> Option<usize> {
        let workload = match member {
            Some(member) => &self.workload.nodes[self.members[member].group].workload,
            None => self.workload.world.as_ref()?,
        };
        let name = workload.channel_name(channel);
        self.workload.channels.iter().position(|declared| declared.name == name)
    }

    /// Hands a message to a waiting thread; one that was killed meanwhile leaves it to the next.
    pub fn hand(&mut self, address: Address, envelope: Envelope) -> Result<()> {
        let Envelope { value, sent, call } = envelope;
        let now = self.now;
        let taken = match address.member {
            None => match &mut self.world {
                Some(world) => world.deliver(address.channel, value, sent, call, now)?,
                None => false,
            },
            Some(member) => {
                let start = self.members[member].start;
                match &mut self.members[member].part {
                    Some(part) => part
                        .deliver(address.channel, value, sent - start, call, now - start)
                        .map_err(|error| self.named(member, error))?,
                    None => false,
                }
            }
        };
        if !taken && let Some(number) = self.channel_number(address.member, address.channel) {
            self.channels.channels[number].messages.push_front(envelope);
            self.channels.pair(number, now, &mut self.queue);
        }
        self.acted_at(address.member)
    }

    /// A reply reaches the thread that called.
    pub fn reply(&mut self, call: u64, value: Option<f64>) -> Result<()> {
        let Some(Call { caller, reading, .. }) = self.channels.calls.remove(&call) else {
            return Ok(());
        };
        self.figures.reset += u64::from(value.is_none());
        let own = self.now - caller.map_or(0, |member| self.members[member].start);
        match caller {
            None => {
                if let Some(world) = &mut self.world {
                    world.answer(reading, value, own)?;
                }
            }
            Some(member) => {
                if let Some(part) = &mut self.members[member].part {
                    part.answer(reading, value, own).map_err(|error| self.named(member, error))?;
                }
            }
        }
        self.acted_at(caller)
    }

    fn acted_at(&mut self, member: Option<usize>) -> Result<()> {
        match member {
            Some(member) => self.acted(member),
            None => {
                self.world_acted();
                Ok(())
            }
        }
    }
}
