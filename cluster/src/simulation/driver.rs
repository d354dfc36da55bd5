//! Takes the events of a cluster one by one: machines, messages, incidents.
//!
//! Invariants: a member's machine exists from its start to its end; nothing is delivered to one
//! that is over; `wake` of a member is the time for which its machine's next event stands in the
//! queue.

use std::collections::HashMap;

use attune_language::ir::Type;
use attune_replica::Operation;
use attune_replica::messages::NodeId;
use attune_replica::schema::Model;
use attune_simulator::cluster::{ClusterWorkload, Incident, IncidentKind};
use attune_simulator::scheduler::{Time, Value};
use attune_simulator::{
    Diagnostic, Options, Outcome, Parcel, Part, Reading, SharedChange, duration,
};

use super::Settings;
use super::channels::{Address, Channels, Envelope};
use super::outcome::{ClusterOutcome, MasterFigures, NodeOutcome};
use super::queue::Queue;
use super::spread::Spreads;
use super::talk::{Down, Up};
use super::world::World;
use crate::node::Command;
use crate::{Master, Node};

pub type Result<T, E = Diagnostic> = std::result::Result<T, E>;

/// Events at one instant after which the cluster is going round in circles.
const MOST_AT_ONCE: u64 = 20_000_000;

/// One life of a node.
pub struct Member<'a> {
    pub group: usize,
    pub index: u32,
    pub start: Time,
    /// Until its start.
    unborn: Option<(&'a mut Node, &'a Options)>,
    pub part: Option<Part<'a, Node>>,
    /// When it crashed or departed.
    pub ended: Option<Time>,
    pub over: Option<Outcome>,
    /// The time of its machine's event in the queue; [`Time::MAX`] without one.
    pub wake: Time,
    /// Nothing passes before that time.
    pub cut_until: Time,
    pub talk: super::talk::Talk,
}

impl<'a> Member<'a> {
    pub fn new(
        group: usize,
        index: u32,
        start: Time,
        node: &'a mut Node,
        options: &'a Options,
    ) -> Member<'a> {
        Member {
            group,
            index,
            start,
            unborn: Some((node, options)),
            part: None,
            ended: None,
            over: None,
            wake: Time::MAX,
            cut_until: 0,
            talk: super::talk::Talk::default(),
        }
    }

    /// The time by the member's own clock.
    pub fn own(&self, now: Time) -> Time {
        now - self.start
    }
}

pub enum What {
    Start(usize),
    /// A machine's next event.
    Machine(usize),
    World,
    Incident(usize),
    /// The master learns of a crash.
    Noticed(NodeId),
    NodeTalks(usize),
    MasterTalks,
    ToMaster(usize, Up),
    ToNode(usize, Down),
    /// A message reaches its channel.
    Message(usize, Envelope),
    /// A message is handed to a waiting thread.
    Hand(Address, Envelope),
    /// A reply, or nothing because the node that should reply is gone.
    Reply(u64, Option<f64>),
    /// The value of a shared variable for a thread.
    Answer(usize, Reading, f64),
    Sample,
}

pub struct Cluster<'a> {
    pub master: Master,
    pub members: Vec<Member<'a>>,
    pub world: Option<Part<'a, World>>,
    world_wake: Time,
    pub workload: &'a ClusterWorkload,
    pub settings: &'a Settings,
    pub end: Time,
    pub now: Time,
    pub queue: Queue<What>,
    pub random: fastrand::Rng,
    pub channels: Channels,
    /// By the master's number.
    pub joined: HashMap<NodeId, usize>,
    /// Threads that wait for an answer of the owner.
    pub readings: HashMap<(usize, u64), Reading>,
    pub figures: MasterFigures,
    pub master_talk: super::talk::MasterTalk,
    pub next_key: u64,
    spreads: Spreads,
    events: u64,
    at_once: u64,
}

impl<'a> Cluster<'a> {
    pub fn new(
        master: Master,
        members: Vec<Member<'a>>,
        world: Option<Part<'a, World>>,
        workload: &'a ClusterWorkload,
        settings: &'a Settings,
        end: Time,
    ) -> Cluster<'a> {
        let mut cluster = Cluster {
            next_key: members.len() as u64 + 1,
            spreads: Spreads::new(master.schema()),
            master,
            members,
            world,
            world_wake: Time::MAX,
            channels: Channels::new(workload, settings.seed),
            workload,
            settings,
            end,
            now: 0,
            queue: Queue::default(),
            random: fastrand::Rng::with_seed(settings.seed),
            joined: HashMap::new(),
            readings: HashMap::new(),
            figures: MasterFigures::default(),
            master_talk: super::talk::MasterTalk::default(),
            events: 0,
            at_once: 0,
        };
        for member in 0..cluster.members.len() {
            cluster.queue.push(cluster.members[member].start, What::Start(member));
        }
        for (number, incident) in workload.incidents.iter().enumerate() {
            cluster.queue.push(incident.at, What::Incident(number));
        }
        cluster.queue.push(0, What::Sample);
        cluster
    }

    pub fn run(mut self) -> Result<ClusterOutcome> {
        self.wake_world();
        while let Some((at, what)) = self.queue.pop(self.end) {
            if at > self.now {
                self.at_once = 0;
            }
            self.now = at;
            self.events += 1;
            self.at_once += 1;
            if self.at_once > MOST_AT_ONCE || self.events > self.settings.max_events {
                return Err(Diagnostic::new(format!(
                    "{} events at {}, and no end",
                    self.events,
                    duration(self.now)
                ))
                .hint("let time go by between messages: a [link] with a delay or a pace"));
            }
            self.take(what)?;
        }
        self.now = self.end;
        self.finish()
    }

    fn take(&mut self, what: What) -> Result<()> {
        match what {
            What::Start(member) => self.start(member),
            What::Machine(member) => self.machine(member),
            What::World => self.world_steps(),
            What::Incident(number) => {
                let incident = self.workload.incidents[number];
                self.incident(incident)
            }
            What::Noticed(node) => self.gone(node),
            What::NodeTalks(member) => {
                self.node_talks(member, true);
                Ok(())
            }
            What::MasterTalks => self.master_talks(),
            What::ToMaster(member, up) => self.hear_node(member, up),
            What::ToNode(member, down) => self.hear_master(member, down),
            What::Message(channel, envelope) => {
                self.channels.arrive(channel, envelope, self.now, &mut self.queue);
                Ok(())
            }
            What::Hand(address, envelope) => self.hand(address, envelope),
            What::Reply(call, value) => self.reply(call, value),
            What::Answer(member, reading, value) => self.answer(member, reading, value),
            What::Sample => {
                self.sample();
                Ok(())
            }
        }
    }

    // ---- machines ----

    fn start(&mut self, number: usize) -> Result<()> {
        let workload = self.workload;
        let member = &mut self.members[number];
        let Some((node, options)) = member.unborn.take() else { return Ok(()) };
        let group = &workload.nodes[member.group];
        member.part = Some(Part::new(node, &group.workload, options)?);
        self.acted(number)
    }

    fn machine(&mut self, number: usize) -> Result<()> {
        let member = &mut self.members[number];
        let own = member.own(self.now);
        if member.wake != self.now {
            return Ok(());
        }
        member.wake = Time::MAX;
        let Some(part) = &mut member.part else { return Ok(()) };
        part.step(own).map_err(|error| self.named(number, error))?;
        self.acted(number)
    }

    /// A machine has acted: its parcels leave, commands are followed, its node may speak, and its
    /// next event is put into the queue.
    pub fn acted(&mut self, number: usize) -> Result<()> {
        loop {
            let member = &mut self.members[number];
            let own = member.own(self.now);
            let Some(part) = &mut member.part else { return Ok(()) };
            let parcels = part.take_parcels();
            let commands = part.scheduler().take_commands();
            if parcels.is_empty() && commands.is_empty() {
                break;
            }
            for command in commands {
                let Some(part) = &mut self.members[number].part else { break };
                let followed = match command {
                    Command::Suspend(threads) => part.suspend(&threads, own),
                    Command::Resume(threads) => part.resume(&threads, own),
                };
                followed.map_err(|error| self.named(number, error))?;
            }
            for parcel in parcels {
                self.parcel(Some(number), parcel);
            }
        }
        self.wake_member(number);
        self.node_talks(number, false);
        Ok(())
    }

    fn wake_member(&mut self, number: usize) {
        let member = &mut self.members[number];
        let Some(part) = &member.part else { return };
        let next = part.next_event().map_or(Time::MAX, |next| next.saturating_add(member.start));
        let next = next.max(self.now);
        if next != member.wake {
            member.wake = next;
            if next <= self.end {
                self.queue.push(next, What::Machine(number));
            }
        }
    }

    fn world_steps(&mut self) -> Result<()> {
        if self.world_wake != self.now {
            return Ok(());
        }
        self.world_wake = Time::MAX;
        if let Some(world) = &mut self.world {
            world.step(self.now)?;
        }
        self.world_acted();
        Ok(())
    }

    pub fn world_acted(&mut self) {
        let parcels = self.world.as_mut().map(Part::take_parcels).unwrap_or_default();
        for parcel in parcels {
            self.parcel(None, parcel);
        }
        self.wake_world();
    }

    fn wake_world(&mut self) {
        let Some(world) = &self.world else { return };
        let next = world.next_event().unwrap_or(Time::MAX).max(self.now);
        if next != self.world_wake {
            self.world_wake = next;
            if next <= self.end {
                self.queue.push(next, What::World);
            }
        }
    }

    fn parcel(&mut self, from: Option<usize>, parcel: Parcel) {
        match parcel {
            Parcel::Update { variable, change, reading } => {
                let Some(from) = from else { return };
                self.update(from, variable, change, reading);
            }
            parcel => self.send_parcel(from, parcel),
        }
    }

    /// A thread reads or updates a shared variable.
    fn update(
        &mut self,
        number: usize,
        variable: u16,
        change: Option<(SharedChange, f64)>,
        reading: Reading,
    ) {
        let workload = self.workload;
        let schema = self.master.schema().clone();
        let group = &workload.nodes[self.members[number].group];
        let name = &group.workload.cluster_variables()[usize::from(variable)];
        let Some(shared) = schema.shared(name) else { return };
        let Some(part) = &mut self.members[number].part else { return };
        let replica = part.scheduler().replica_mut();
        let ty = schema.shared[usize::from(shared)].ty;
        let operation = change.map(|(change, value)| operation(change, value, ty));
        match schema.shared[usize::from(shared)].model {
            Model::Cache => {
                if let Some(operation) = operation {
                    replica.write(attune_replica::messages::Target::Shared(shared), operation);
                }
                let value = replica.shared(shared).as_float();
                self.queue.push(self.now, What::Answer(number, reading, value));
            }
            Model::Request => {
                let ask = replica.ask(shared, operation);
                self.readings.insert((number, ask), reading);
            }
        }
    }

    fn answer(&mut self, number: usize, reading: Reading, value: f64) -> Result<()> {
        let own = self.members[number].own(self.now);
        let Some(part) = &mut self.members[number].part else { return Ok(()) };
        part.answer(reading, Some(value), own).map_err(|error| self.named(number, error))?;
        self.acted(number)
    }

    // ---- what befalls nodes ----

    fn incident(&mut self, incident: Incident) -> Result<()> {
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            let meant = member.group == incident.group
                && incident.index.is_none_or(|index| index == member.index)
                && member.part.is_some();
            if !meant {
                continue;
            }
            match incident.kind {
                IncidentKind::Partition { until } => {
                    member.cut_until = member.cut_until.max(until);
                }
                IncidentKind::Departure => self.end_member(number, 0)?,
                IncidentKind::Crash { .. } => {
                    let notice = self.workload.link.notice;
                    self.end_member(number, notice)?;
                }
            }
        }
        Ok(())
    }

    /// The node is gone from now on; the master learns of it so much later.
    fn end_member(&mut self, number: usize, notice: Time) -> Result<()> {
        let member = &mut self.members[number];
        let own = member.own(self.now);
        let Some(mut part) = member.part.take() else { return Ok(()) };
        let node = part.scheduler().replica().node();
        member.ended = Some(self.now);
        member.over = Some(part.finish(own));
        self.channels.forget(number, self.now, &mut self.queue);
        self.readings.retain(|(member, _), _| *member != number);
        match node {
            Some(node) if notice == 0 => self.gone(node)?,
            Some(node) => self.queue.push(self.now + notice, What::Noticed(node)),
            None => {}
        }
        Ok(())
    }

    /// The master gives a node up.
    pub fn gone(&mut self, node: NodeId) -> Result<()> {
        if self.joined.remove(&node).is_none() {
            return Ok(());
        }
        self.figures.departures += 1;
        let result = self.master.depart(node, self.now);
        self.master_failed(result)?;
        self.master_changed();
        Ok(())
    }

    pub fn master_failed<T>(
        &self,
        result: std::result::Result<T, attune_simulator::interpreter::Failure>,
    ) -> Result<T> {
        result.map_err(|failure| {
            let place = failure.place.map_or(String::new(), |place| format!("{place}: "));
            Diagnostic::new(format!(
                "the master failed a check: {place}{}, at {}",
                failure.message,
                duration(self.now)
            ))
        })
    }

    /// An error in a machine, with the node in which it happened.
    pub fn named(&self, number: usize, mut error: Diagnostic) -> Diagnostic {
        error.message = format!("in the node {}: {}", self.name(number), error.message);
        error
    }

    pub fn name(&self, number: usize) -> String {
        let member = &self.members[number];
        let group = &self.workload.nodes[member.group];
        if group.count == 1 {
            group.name.clone()
        } else {
            format!("{}.{}", group.name, member.index)
        }
    }

    fn sample(&mut self) {
        let nodes = self.members.iter_mut().filter_map(|member| {
            let group = member.group;
            member.part.as_mut().map(|part| (group, &*part.scheduler()))
        });
        self.spreads.sample(nodes);
        self.queue.push(self.now + super::spread::PERIOD, What::Sample);
    }

    fn finish(mut self) -> Result<ClusterOutcome> {
        let mut nodes = Vec::new();
        let names: Vec<String> = (0..self.members.len()).map(|number| self.name(number)).collect();
        for (member, name) in self.members.into_iter().zip(names) {
            let own = self.end - member.start;
            let outcome = match (member.part, member.over) {
                (Some(part), _) => part.finish(own),
                (None, Some(over)) => over,
                (None, None) => continue,
            };
            let group = &self.workload.nodes[member.group];
            nodes.push(NodeOutcome {
                name,
                group: group.name.clone(),
                family: group.family.clone(),
                start: member.start,
                ended: member.ended,
                outcome,
            });
        }
        let shared = self.master.schema().shared.iter().enumerate();
        let shared = shared.map(|(number, shared)| {
            let cell = self.master.schema().shared_cell(number as u16);
            (shared.name.clone(), shared.model, self.master.store().get(cell))
        });
        self.figures.revisions = self.master.store().revision();
        Ok(ClusterOutcome {
            policy: self.master.schema().name.clone(),
            workload: self.workload.name.clone(),
            seed: self.settings.seed,
            elapsed: self.end,
            events: self.events,
            master: self.figures,
            shared: shared.collect(),
            spreads: self.spreads.finish(self.workload),
            lost: self.channels.lost(self.workload),
            world: self.world.map(|world| world.finish(self.end)),
            nodes,
        })
    }
}

/// What a thread does to a variable of that type; a float is cut off to an integer.
fn operation(change: SharedChange, value: f64, ty: Type) -> Operation {
    let value = match ty {
        Type::Float => Value::Float(value),
        Type::Int | Type::Time => Value::Int(value as i64),
    };
    match change {
        SharedChange::Add => Operation::Add(value),
        SharedChange::Set => Operation::Set(value),
    }
}
