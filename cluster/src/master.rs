//! The master: keeps the store, runs its policy over the nodes that are there, and tells each node
//! what changed.
//!
//! To the policy a node is a thread: `arrival` is its `newthread`, `departure` its `set_dead`. A
//! transport calls [`Master::arrive`], [`Master::receive`], [`Master::ask`] and [`Master::depart`]
//! in the order in which things happen, and sends what [`Master::news`] gives.
//!
//! Invariants: a node's batches are counted in their order, each once; what a batch or a handler
//! changes belongs to one revision of the store; the seats of the store show the first nodes of the
//! policy's containers as they stand.

mod error;
mod member;
mod requests;
mod saved;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use attune_language::Cluster;
use attune_language::engine::event::Event;
use attune_language::ir::{AttributeId, GlobalId, NodeProperty, Program};
use attune_language::source::SourceMap;
use attune_replica::Operation;
use attune_replica::Schema;
use attune_replica::messages::*;
use attune_replica::writes::Writes;
use attune_simulator::interpreter::{self, Failure, Interpreter, Updated};
use attune_simulator::scheduler::{
    Call, CpuSet, Decision, ImportId, Scheduler, ThreadId, Time, Value,
};

use crate::store::Store;
pub use error::MasterError;
use member::{Done, Member};

/// A message that this master cannot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The node has departed, or never was: it may say [`Hello`] again.
    Node,
    /// The message breaks the protocol: a gap between batches, or a name that is not there; or it
    /// repeats a request whose answer the node has.
    Nonsense,
}

pub struct Master {
    schema: Arc<Schema>,
    policy: Interpreter,
    store: Store,
    nodes: BTreeMap<NodeId, Member>,
    /// By the key of their hello.
    keys: HashMap<u64, NodeId>,
    /// By slot of the policy's threads.
    slots: Vec<Option<NodeId>>,
    last_node: NodeId,
    /// What must not be done twice if the node comes back.
    departed: HashMap<NodeId, Done>,
    /// By family, how many have come.
    come: Vec<u32>,
    started: bool,
    /// What the policy imports: its attributes with what of a node they are, shared globals.
    attributes: Vec<(AttributeId, Property)>,
    family_attributes: Vec<AttributeId>,
    age_attributes: Vec<AttributeId>,
    globals: Vec<(GlobalId, Shared)>,
    decision: Decision,
    /// Grows with everything that a master which goes on in another process must know.
    changes: u64,
}

impl Master {
    /// A master without nodes. `sources` are the files of the cluster; `now` is when it starts.
    pub fn new(
        cluster: &Cluster,
        schema: Arc<Schema>,
        sources: &SourceMap,
        seed: u64,
        now: Time,
    ) -> Result<Master, MasterError> {
        let mut master = Master::bare(cluster, schema, sources, seed)?;
        master.handler(Event::Init, None, now)?;
        Ok(master)
    }

    /// A master whose policy has not begun.
    fn bare(
        cluster: &Cluster,
        schema: Arc<Schema>,
        sources: &SourceMap,
        seed: u64,
    ) -> Result<Master, MasterError> {
        let program: &Program = &cluster.master;
        let options = interpreter::Options { seed, ..interpreter::Options::default() };
        let policy = Interpreter::new(Arc::new(program.clone()), sources, options)
            .map_err(|refusal| MasterError::Refused(refusal.to_string()))?;
        let mut master = Master {
            store: Store::new(schema.initial_store()),
            nodes: BTreeMap::new(),
            keys: HashMap::new(),
            slots: Vec::new(),
            last_node: 0,
            departed: HashMap::new(),
            come: vec![0; schema.families.len()],
            started: !schema.expects_nodes(),
            attributes: Vec::new(),
            family_attributes: Vec::new(),
            age_attributes: Vec::new(),
            globals: Vec::new(),
            decision: Decision::default(),
            changes: 0,
            policy,
            schema,
        };
        for (attribute, property) in &program.membership.properties {
            match property {
                NodeProperty::Family => master.family_attributes.push(*attribute),
                NodeProperty::Age(_) => master.age_attributes.push(*attribute),
                property => {
                    let number = master.schema.property(property);
                    master.attributes.extend(number.map(|number| (*attribute, number)));
                }
            }
        }
        for remote in &program.membership.remotes {
            if let (None, NodeProperty::Variable(name)) = (&remote.node, &remote.property) {
                let number = master.schema.shared(name);
                master.globals.extend(number.map(|number| (remote.global, number)));
            }
        }
        Ok(master)
    }

    /// A number that is larger after everything that another process must know to go on as this
    /// master. What [`Master::saved`] gives is up to date while it stays the same.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The nodes that are there, oldest first, each with its family.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, usize)> + '_ {
        self.nodes.iter().map(|(&node, member)| (node, member.family))
    }

    /// When a node was last heard of.
    pub fn heard(&self, node: NodeId) -> Option<Time> {
        self.nodes.get(&node).map(|member| member.heard)
    }

    /// Whether the policy asks how long ago nodes were heard of.
    pub fn asks_ages(&self) -> bool {
        !self.age_attributes.is_empty()
    }

    pub fn has_started(&self) -> bool {
        self.started
    }

    /// What a shared variable holds.
    pub fn shared(&self, name: &str) -> Option<Value> {
        let number = self.schema.shared(name)?;
        Some(self.store.get(self.schema.shared_cell(number)))
    }

    /// The nodes of a container of the policy, first to last; none if it has no such container.
    pub fn nodes_in(&self, container: &str) -> Option<Vec<NodeId>> {
        let program = self.policy.program();
        let (id, _) = program.containers.iter().find(|(_, it)| it.name == container)?;
        let nodes = self.policy.threads_in(id).filter_map(|slot| self.slots[slot.index()]);
        Some(nodes.collect())
    }

    /// A node comes: runs `arrival`. A hello that is repeated gets the same node again.
    pub fn arrive(
        &mut self,
        hello: &Hello,
        now: Time,
    ) -> Result<Result<Welcome, Refusal>, Failure> {
        if let Some(&node) = self.keys.get(&hello.key) {
            return Ok(Ok(self.welcome(node)));
        }
        if hello.identity != self.schema.identity {
            let (master, node) = (self.schema.identity.clone(), hello.identity.clone());
            return Ok(Err(Refusal::Version { master, node }));
        }
        let Some(family) = self.schema.family_number(&hello.family) else {
            return Ok(Err(Refusal::Family(hello.family.clone())));
        };
        self.changes += 1;
        if let Some(former) = hello.former
            && self.nodes.get(&former).is_some_and(|it| it.absent && it.family == family)
        {
            self.resume(former, hello, now);
            return Ok(Ok(self.welcome(former)));
        }
        // A node that comes back under a new connection before its end was seen.
        if let Some(former) = hello.former.filter(|former| self.nodes.contains_key(former)) {
            self.depart(former, now)?;
        }
        let done = hello.former.and_then(|former| self.departed.remove(&former));
        self.last_node += 1;
        let node = self.last_node;
        let values = vec![Value::Int(0); self.schema.properties.len()];
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        self.slots.resize(self.slots.len().max(slot + 1), None);
        self.slots[slot] = Some(node);
        let slot = ThreadId(slot as u32);
        let mut member = Member {
            slot,
            family,
            key: hello.key,
            done: done.unwrap_or_default(),
            values,
            heard: now,
            confirmed: 0,
            told: (0, 0, false),
            open: Writes::default(),
            sent: None,
            last_orders: 0,
            absent: false,
            resumed: false,
        };
        member.tell(&hello.values);
        self.policy.thread_created(slot, &CpuSet::ALL);
        for &(attribute, property) in &self.attributes {
            let value = member.values[usize::from(property)];
            self.policy.set_thread_import(slot, import(attribute), value);
        }
        for &attribute in &self.family_attributes {
            self.policy.set_thread_import(slot, import(attribute), Value::Int(family as i64));
        }
        self.nodes.insert(node, member);
        self.keys.insert(hello.key, node);
        self.come[family] = self.come[family].saturating_add(1);
        self.handler(Event::NewThread, Some(slot), now)?;
        let expected = self.schema.families.iter().zip(&self.come);
        self.started |= expected.into_iter().all(|(family, come)| *come >= family.expects);
        Ok(Ok(self.welcome(node)))
    }

    /// A node whose manager was lost, and with it the connection: to the policy it was never away.
    fn resume(&mut self, node: NodeId, hello: &Hello, now: Time) {
        let Some(member) = self.nodes.get_mut(&node) else { return };
        self.keys.remove(&member.key);
        self.keys.insert(hello.key, node);
        member.key = hello.key;
        (member.absent, member.resumed) = (false, true);
        member.heard = now;
        // Its values, and which orders it has followed, come with its batches: a value that came
        // before the shared writes of the same handler would outlive a node that is killed now.
        self.store.begin();
        self.show(node);
        self.show_seats();
    }

    fn welcome(&mut self, node: NodeId) -> Welcome {
        let member = self.nodes.get_mut(&node);
        let (counted, resumed) = member.map_or((0, false), |member| {
            member.absent = false;
            (member.done.counted, member.resumed)
        });
        Welcome {
            node,
            resumed,
            revision: self.store.revision(),
            values: self.store.values().to_vec(),
            counted,
            started: self.started,
        }
    }

    /// A node has gone, also by a crash: runs `departure`. Nothing happens if it is not there.
    pub fn depart(&mut self, node: NodeId, now: Time) -> Result<(), Failure> {
        let Some(slot) = self.nodes.get(&node).map(|member| member.slot) else { return Ok(()) };
        self.changes += 1;
        let result = self.handler(Event::SetDead, Some(slot), now);
        self.policy.thread_removed(slot);
        self.slots[slot.index()] = None;
        if let Some(member) = self.nodes.remove(&node) {
            self.keys.remove(&member.key);
            self.departed.insert(node, member.done);
        }
        self.show_seats();
        result
    }

    /// Nodes that have departed and may come back, in no order.
    pub fn departed(&self) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.departed.keys().copied()
    }

    pub fn has_departed(&self, node: NodeId) -> bool {
        self.departed.contains_key(&node)
    }

    /// A node that has departed will not come back: its process has ended.
    pub fn forget(&mut self, node: NodeId) {
        self.changes += 1;
        self.departed.remove(&node);
    }

    /// A node's report. A batch that has taken effect already is left out.
    pub fn receive(&mut self, report: &Report, now: Time) -> Result<(), Unknown> {
        let Some(member) = self.nodes.get_mut(&report.node) else { return Err(Unknown::Node) };
        if report.heard > self.store.revision() {
            return Err(Unknown::Nonsense);
        }
        member.heard = member.heard.max(now);
        member.confirmed = member.confirmed.max(report.heard);
        let Some(batch) = &report.batch else { return Ok(()) };
        if batch.number <= member.done.counted {
            return Ok(());
        }
        if batch.number > member.done.counted + 1 || !self.makes_sense(batch) {
            return Err(Unknown::Nonsense);
        }
        self.count(report.node, batch);
        Ok(())
    }

    /// Whether all that the batch names is there. Nodes may have gone.
    fn makes_sense(&self, batch: &Batch) -> bool {
        batch.writes.iter().all(|(target, _)| match *target {
            Target::Shared(shared) => usize::from(shared) < self.schema.shared.len(),
            Target::Own(property) | Target::Of(_, property) => {
                usize::from(property) < self.schema.properties.len()
            }
        })
    }

    fn count(&mut self, node: NodeId, batch: &Batch) {
        self.changes += 1;
        self.store.begin();
        let Some(member) = self.nodes.get_mut(&node) else { return };
        member.done.counted = batch.number;
        member.sent.take_if(|sent| sent.number <= batch.obeyed);
        let mut changed = vec![node];
        for &(target, operation) in &batch.writes {
            match target {
                Target::Shared(shared) => {
                    self.store.apply(self.schema.shared_cell(shared), operation);
                }
                Target::Own(property) => {
                    let Some(member) = self.nodes.get_mut(&node) else { continue };
                    let value = &mut member.values[usize::from(property)];
                    *value = operation.apply(*value);
                }
                Target::Of(other, property) => {
                    self.order(other, property, operation);
                    changed.push(other);
                }
            }
        }
        changed.iter().for_each(|&node| self.show(node));
        self.show_seats();
    }

    fn order(&mut self, node: NodeId, property: Property, operation: Operation) {
        if let Some(member) = self.nodes.get_mut(&node) {
            member.open.push(property, operation);
        }
    }

    /// Brings what the policy knows of a node up to date: containers that are sorted by it follow.
    fn show(&mut self, node: NodeId) {
        let Some(member) = self.nodes.get(&node) else { return };
        for &(attribute, property) in &self.attributes {
            self.policy.revise_attribute(member.slot, attribute, member.value(property));
        }
    }

    /// Brings the seats of the store up to date.
    fn show_seats(&mut self) {
        for (seat, (_, container)) in self.schema.seats.iter().enumerate() {
            let seat = seat as u16;
            let first = self.policy.threads_in(*container).next();
            let node = first.and_then(|slot| self.slots[slot.index()]);
            let member = node.and_then(|node| self.nodes.get(&node));
            let number = node.filter(|_| member.is_some()).map_or(-1, |node| node as i64);
            let family = member.map_or(-1, |member| member.family as i64);
            self.store.set(self.schema.node_cell(seat), Value::Int(number));
            self.store.set(self.schema.family_cell(seat), Value::Int(family));
            for property in 0..self.schema.properties.len() as Property {
                let value = member.map_or(Value::Int(0), |member| member.value(property));
                self.store.set(self.schema.property_cell(seat, property), value);
            }
        }
    }

    /// Runs a handler of the policy, and takes up what it wrote.
    fn handler(
        &mut self,
        event: Event,
        thread: Option<ThreadId>,
        now: Time,
    ) -> Result<(), Failure> {
        for &(global, shared) in &self.globals {
            let value = self.store.get(self.schema.shared_cell(shared));
            self.policy.set_global(global, value);
        }
        if !self.age_attributes.is_empty() {
            for member in self.nodes.values() {
                for &attribute in &self.age_attributes {
                    let age = Value::Int(now.saturating_sub(member.heard).max(0));
                    self.policy.set_thread_import(member.slot, import(attribute), age);
                }
            }
        }
        self.store.begin();
        self.decision.clear();
        let call = Call { event, thread, now, cpu: 0, cpus: 1 };
        let result = self.policy.run(&call, &mut self.decision);
        for update in self.policy.take_updates() {
            match update.place {
                Updated::Global(global) => {
                    let shared = self.globals.iter().find(|(known, _)| *known == global);
                    if let Some(&(_, shared)) = shared {
                        self.store.apply(self.schema.shared_cell(shared), update.operation);
                    }
                }
                Updated::Attribute(slot, attribute) => {
                    let property = self.attributes.iter().find(|(known, _)| *known == attribute);
                    let node = self.slots.get(slot.index()).copied().flatten();
                    if let (Some(&(_, property)), Some(node)) = (property, node) {
                        self.order(node, property, update.operation);
                    }
                }
            }
        }
        self.show_seats();
        result
    }

    /// What the node is to be told; none if it was told already, unless `again`.
    pub fn news(&mut self, node: NodeId, again: bool) -> Option<News> {
        let member = self.nodes.get_mut(&node)?;
        let mut tells = again;
        if member.sent.is_none() && !member.open.is_empty() {
            self.changes += 1;
            member.last_orders += 1;
            let writes = member.open.take();
            member.sent = Some(Orders { number: member.last_orders, writes });
            tells = true;
        }
        let told = (self.store.revision(), member.done.counted, self.started);
        tells |= member.told != told && self.store.revision() > member.confirmed
            || (member.told.1, member.told.2) != (told.1, told.2);
        if !tells {
            return None;
        }
        member.told = told;
        Some(News {
            node,
            revision: self.store.revision(),
            since: member.confirmed,
            cells: self.store.since(member.confirmed),
            counted: member.done.counted,
            orders: member.sent.clone(),
            started: self.started,
        })
    }

    /// Whether the node has all that it was told, so that nothing must be sent again.
    pub fn is_up_to_date(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_none_or(|member| {
            member.confirmed >= member.told.0 && member.sent.is_none() && member.open.is_empty()
        })
    }
}

fn import(attribute: AttributeId) -> ImportId {
    ImportId(attribute.into_raw().into_u32())
}
