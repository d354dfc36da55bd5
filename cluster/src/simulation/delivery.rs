//! Brings what threads send over channels from machine to machine.

use attune_simulator::Parcel;
use attune_simulator::scheduler::Time;

use super::channels::Call;
use super::event::{Address, Envelope, What};
use super::state::{Cluster, Result};

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
