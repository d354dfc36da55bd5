//! Takes the events of a cluster one by one: machines, messages, incidents.
//!
//! Invariant: nothing is delivered to a member that is over.

use attune_language::ir::Type;
use attune_replica::Operation;
use attune_replica::messages::NodeId;
use attune_replica::schema::Model;
use attune_simulator::cluster::{Incident, IncidentKind};
use attune_simulator::scheduler::{Time, Value};
use attune_simulator::{Diagnostic, Parcel, Part, Reading, SharedChange, duration};

use super::event::What;
use super::outcome::{ClusterOutcome, NodeOutcome};
use super::state::{Cluster, Result};
use crate::node::Command;

/// Events at one instant after which the cluster is going round in circles.
const MOST_AT_ONCE: u64 = 20_000_000;

impl Cluster<'_> {
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
                let writes = operation.map(|operation| (shared, operation));
                let ask = replica.ask(shared, writes.into_iter().collect());
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
