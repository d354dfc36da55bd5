//! A node's copy of what its cluster shares, on its way between the connection and the kernel.
//!
//! Invariant: a write of a handler is in the kernel, or in the replica, and in one of them only.

use std::io;

use attune_cluster_local::connection::Connection;
use attune_language::ir::Value;
use attune_replica::messages::{NodeId, Property, Target};
use attune_replica::schema::Source;
use attune_replica::{Operation, Replica, Time};

use super::change::Change;
use super::exchange::{Entry, Exchange};

pub struct Copy {
    exchange: Exchange,
    /// Entries of what others share come first, each with its source; then the node's own.
    entries: Vec<Entry>,
    sources: Vec<Source>,
    own: Vec<Property>,
    /// The node in the seat of each source when handlers were told its value.
    seated: Vec<Option<NodeId>>,
    /// What others did to the node's own numbers, by their place in `own`.
    orders: Vec<Change>,
}

impl Copy {
    pub fn new(exchange: Exchange, replica: &Replica) -> Option<Copy> {
        let family = &replica.schema().families[replica.family()];
        let (mut entries, mut sources, mut own) = (Vec::new(), Vec::new(), Vec::new());
        // Handlers know by themselves how old the copy is.
        for (global, source) in family.imports.iter().filter(|(_, it)| *it != Source::Age) {
            entries.push(exchange.of_cluster(*global)?);
            sources.push(*source);
        }
        for (property, export) in &family.exports {
            entries.push(exchange.of_node(*export)?);
            own.push(*property);
        }
        let (seated, orders) = (vec![None; sources.len()], vec![Change::NONE; own.len()]);
        Some(Copy { exchange, entries, sources, own, seated, orders })
    }

    pub fn object(&self) -> &libbpf_rs::Object {
        self.exchange.object()
    }

    /// Whether others see something of the node.
    pub fn is_seen(&self) -> bool {
        !self.own.is_empty()
    }

    /// Whether something that others see has changed since they were told.
    pub fn has_changed(&self) -> bool {
        let own = &self.entries[self.sources.len()..];
        own.iter().any(|entry| self.exchange.look(entry) != Some(entry.number))
    }

    /// Follows an order with the next exchange.
    pub fn obey(&mut self, property: Property, operation: Operation) {
        let own = self.own.iter().position(|known| *known == property);
        if let (Some(own), Some(change)) = (own, Change::of(operation)) {
            self.orders[own] = self.orders[own].then(change);
        }
    }

    /// Handlers see what the connection has heard, and the connection gets what they have written.
    /// True: that has changed what handlers should see.
    pub fn exchange(&mut self, connection: &mut Connection, now: Time) -> io::Result<bool> {
        let replica = connection.replica();
        let (shared, own) = self.entries.split_at_mut(self.sources.len());
        let mut seated = Vec::with_capacity(shared.len());
        for (entry, source) in shared.iter_mut().zip(&self.sources) {
            let own = || self.own.iter().zip(&*own).zip(&self.orders);
            entry.change = Change::NONE;
            entry.number = match *source {
                Source::Of(seat, property) if sits_in(replica, seat) => own()
                    .find(|((known, _), _)| **known == property)
                    .map_or(0, |((_, entry), order)| order.apply(entry.number)),
                source => whole(value(replica, source)),
            };
            seated.push(match *source {
                Source::Of(seat, _) => replica.seated(seat),
                _ => None,
            });
        }
        for (entry, order) in own.iter_mut().zip(&mut self.orders) {
            entry.change = std::mem::replace(order, Change::NONE);
        }
        let age = replica.age(now);
        let heard_at = if age == Time::MAX { 0 } else { now - age };
        self.exchange.run(&mut self.entries, heard_at)?;
        self.take(connection.replica_mut());
        let moved = self.seated != seated;
        self.seated = seated;
        Ok(moved || self.orders.iter().any(|order| *order != Change::NONE))
    }

    fn take(&mut self, replica: &mut Replica) {
        let (shared, own) = self.entries.split_at(self.sources.len());
        let mut to_itself = Vec::new();
        for ((entry, source), before) in shared.iter().zip(&self.sources).zip(&self.seated) {
            let target = match (*source, *before) {
                (Source::Shared(shared), _) => Target::Shared(shared),
                (Source::Of(_, property), Some(node)) if replica.node() == Some(node) => {
                    to_itself.push((property, entry.change));
                    continue;
                }
                (Source::Of(_, property), Some(node)) => Target::Of(node, property),
                _ => continue,
            };
            entry.change.operations().for_each(|operation| replica.write(target, operation));
        }
        for (property, entry) in self.own.iter().zip(own) {
            replica.tell(*property, Value::Int(entry.number));
        }
        for (property, change) in to_itself {
            change.operations().for_each(|operation| self.obey(property, operation));
        }
    }
}

fn value(replica: &Replica, source: Source) -> Value {
    match source {
        Source::Shared(shared) => replica.shared(shared),
        Source::Family(seat) => replica.family_in(seat),
        Source::Of(seat, property) => replica.property_in(seat, property),
        Source::Age => Value::Int(0),
    }
}

fn sits_in(replica: &Replica, seat: u16) -> bool {
    replica.node().is_some() && replica.seated(seat) == replica.node()
}

/// There are no floats in the kernel.
fn whole(value: Value) -> i64 {
    match value {
        Value::Int(value) => value,
        Value::Float(value) => value as i64,
    }
}
