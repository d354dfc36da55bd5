//! A node whose policy the interpreter runs: a policy like any other for the engine that drives it,
//! which reads and writes what the cluster shares.
//!
//! Each handler reads the copy once, when it starts, and what it wrote goes out together when it
//! has ended. Threads wait for the start barrier: until then `schedule` dispatches nothing.

use attune_language::engine::event::Event;
use attune_language::ir::GlobalId;
use attune_replica::Operation;
use attune_replica::Replica;
use attune_replica::messages::{News, Property, Target, Welcome};
use attune_replica::schema::{Export, FamilySchema, Source};
use attune_simulator::interpreter::{Interpreter, Updated};
use attune_simulator::scheduler::{
    Call, CpuSet, Decision, ImportId, Scheduler, ThreadId, Time, Trap, Value,
};

/// What the engine is to do with threads, by command of the master or of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Suspend(Vec<ThreadId>),
    Resume(Vec<ThreadId>),
}

#[derive(Clone)]
pub struct Node {
    policy: Interpreter,
    replica: Replica,
    family: FamilySchema,
    /// Threads that a command suspended, by property.
    suspended: Vec<(Property, Vec<ThreadId>)>,
    commands: Vec<Command>,
}

impl Node {
    /// `policy` runs the program of the replica's family.
    pub fn new(policy: Interpreter, replica: Replica) -> Node {
        let family = replica.schema().families[replica.family()].clone();
        let mut node =
            Node { policy, replica, family, suspended: Vec::new(), commands: Vec::new() };
        node.tell();
        node
    }

    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    pub fn replica_mut(&mut self) -> &mut Replica {
        &mut self.replica
    }

    pub fn policy(&self) -> &Interpreter {
        &self.policy
    }

    pub fn welcome(&mut self, welcome: &Welcome, now: Time) {
        self.replica.welcome(welcome, now);
    }

    /// What it tells the cluster of itself, as it is now.
    pub fn exported(&self) -> impl Iterator<Item = (Property, Value)> + '_ {
        self.family.exports.iter().map(|(property, export)| (*property, self.value(*export)))
    }

    /// Takes news. The engine then follows the commands, and asks idle CPUs again: a handler may
    /// read other values now.
    pub fn receive(&mut self, news: &News, now: Time) {
        for (property, operation) in self.replica.receive(news, now) {
            self.obey(property, operation);
        }
        self.tell();
    }

    /// What the engine is to do with threads, in order.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Follows an order: writes a variable of its own, or finds the threads of a command.
    fn obey(&mut self, property: Property, operation: Operation) {
        if let Some(command) = self.followed(property, operation) {
            self.commands.push(command);
        }
    }

    fn followed(&mut self, property: Property, operation: Operation) -> Option<Command> {
        let export = self.family.exports.iter().find(|(known, _)| *known == property);
        if let Some((_, Export::Global(global))) = export {
            let old = self.policy.global(*global);
            self.policy.set_global(*global, operation.apply(old));
            return None;
        }
        let &(_, container) = self.family.commands.iter().find(|(known, _)| *known == property)?;
        let known = self.suspended.iter().position(|(known, _)| *known == property);
        match (operation.apply(Value::Int(0)), known) {
            (Value::Int(0), Some(known)) => {
                Some(Command::Resume(self.suspended.swap_remove(known).1))
            }
            (Value::Int(0), None) => None,
            (_, known) => {
                let threads: Vec<ThreadId> = self.policy.threads_in(container).collect();
                match known {
                    Some(known) => self.suspended[known].1.extend(&threads),
                    None => self.suspended.push((property, threads.clone())),
                }
                Some(Command::Suspend(threads))
            }
        }
    }

    fn read(&mut self, now: Time) {
        for &(global, source) in &self.family.imports {
            let value = match source {
                Source::Shared(shared) => self.replica.shared(shared),
                Source::Family(seat) => self.replica.family_in(seat),
                Source::Of(seat, property) => self.property_in(seat, property),
                Source::Age => Value::Int(self.replica.age(now)),
            };
            self.policy.set_global(global, value);
        }
    }

    /// A node in a seat knows its own values as they are.
    fn property_in(&self, seat: u16, property: Property) -> Value {
        let export = self.family.exports.iter().find(|(known, _)| *known == property);
        match export {
            Some((_, export)) if self.sits_in(seat) => self.value(*export),
            _ => self.replica.property_in(seat, property),
        }
    }

    fn sits_in(&self, seat: u16) -> bool {
        self.replica.node().is_some() && self.replica.seated(seat) == self.replica.node()
    }

    fn value(&self, export: Export) -> Value {
        match export {
            Export::Global(global) => self.policy.global(global),
            Export::Size(container) => Value::Int(self.policy.size_of(container).into()),
        }
    }

    fn write(&mut self) {
        for update in self.policy.take_updates() {
            if let Updated::Global(global) = update.place
                && let Some(source) = self.source(global)
            {
                self.write_to(source, update.operation);
            }
        }
        self.tell();
    }

    fn source(&self, global: GlobalId) -> Option<Source> {
        let import = self.family.imports.iter().find(|(known, _)| *known == global);
        import.map(|(_, source)| *source)
    }

    fn write_to(&mut self, source: Source, operation: Operation) {
        match source {
            Source::Shared(shared) => self.replica.write(Target::Shared(shared), operation),
            Source::Of(seat, property) if self.sits_in(seat) => {
                // Its own: nothing travels but the new value.
                self.obey(property, operation);
            }
            Source::Of(seat, property) => {
                if let Some(node) = self.replica.seated(seat) {
                    self.replica.write(Target::Of(node, property), operation);
                }
            }
            Source::Family(_) | Source::Age => {}
        }
    }

    fn tell(&mut self) {
        for index in 0..self.family.exports.len() {
            let (property, export) = self.family.exports[index];
            let value = self.value(export);
            self.replica.tell(property, value);
        }
    }
}

impl Scheduler for Node {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn start(&mut self, cpus: u32, seed: u64) {
        self.policy.start(cpus, seed);
        self.tell();
    }

    fn handles(&self, event: Event) -> bool {
        self.policy.handles(event)
    }

    fn thread_created(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.policy.thread_created(thread, affinity);
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.policy.set_affinity(thread, affinity);
    }

    fn thread_removed(&mut self, thread: ThreadId) {
        self.policy.thread_removed(thread);
        for (_, threads) in &mut self.suspended {
            threads.retain(|suspended| *suspended != thread);
        }
        self.tell();
    }

    fn thread_leaves(&mut self, thread: ThreadId) -> Vec<i64> {
        self.policy.thread_leaves(thread)
    }

    fn thread_arrives(&mut self, thread: ThreadId, affinity: &CpuSet, attributes: &[i64]) {
        self.policy.thread_arrives(thread, affinity, attributes);
    }

    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Trap> {
        if call.event == Event::Schedule && !self.replica.has_started() {
            return Ok(());
        }
        self.read(call.now);
        let result = self.policy.call(call, decision);
        self.write();
        result
    }

    fn thread_import(&self, name: &str) -> Option<ImportId> {
        self.policy.thread_import(name)
    }

    fn global_import(&self, name: &str) -> Option<ImportId> {
        let import = self.policy.global_import(name)?;
        let of_cluster =
            |(global, _): &(GlobalId, Source)| global.into_raw().into_u32() == import.0;
        // What the cluster supplies no workload supplies.
        (!self.family.imports.iter().any(of_cluster)).then_some(import)
    }

    fn set_thread_import(&mut self, thread: ThreadId, import: ImportId, value: Value) {
        self.policy.set_thread_import(thread, import, value);
    }

    fn set_global_import(&mut self, import: ImportId, value: Value) {
        self.policy.set_global_import(import, value);
        self.tell();
    }

    fn get_thread_import(&self, thread: ThreadId, import: ImportId) -> Value {
        self.policy.get_thread_import(thread, import)
    }

    fn get_global_import(&self, import: ImportId) -> Value {
        self.policy.get_global_import(import)
    }

    fn where_is(&self, thread: ThreadId) -> Option<String> {
        self.policy.where_is(thread)
    }
}
