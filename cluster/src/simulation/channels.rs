//! Channels in which nodes meet: a message goes to the thread that has waited longest, or to any
//! that waits, on whatever node it is; a reply goes back to its caller.
//!
//! They stand for sockets: a message between nodes takes the link's delay, waits for the end of a
//! partition, and is not lost. A call whose node crashes returns without a value, as a connection
//! that is reset.

use std::collections::{BTreeMap, VecDeque};

use attune_simulator::Reading;
use attune_simulator::cluster::ClusterWorkload;
use attune_simulator::scheduler::Time;

use super::event::{Address, Envelope, What};
use super::queue::Queue;

#[derive(Default)]
pub struct Channel {
    pub messages: VecDeque<Envelope>,
    pub waiting: VecDeque<Address>,
    capacity: Option<usize>,
    to_any: bool,
    lost: u64,
}

pub struct Call {
    pub caller: Option<usize>,
    pub reading: Reading,
    /// The member whose thread has the message.
    pub holder: Option<usize>,
}

pub struct Channels {
    pub channels: Vec<Channel>,
    pub calls: BTreeMap<u64, Call>,
    pub last_call: u64,
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

    pub fn pair(&mut self, number: usize, now: Time, queue: &mut Queue<What>) {
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
