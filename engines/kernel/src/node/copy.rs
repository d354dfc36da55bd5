//! A node's copy of what its cluster shares, on its way between the connection and the kernel.
//!
//! Invariant: a write of a handler is in the kernel, or in the replica, and in one of them only.

use std::io;

use attune_cluster_local::connection::Connection;
use attune_replica::messages::Property;
use attune_replica::schema::Source;
use attune_replica::{Exchange as Numbers, Operation, Replica, Time};

use super::exchange::{Entry, Exchange};

pub struct Copy {
    exchange: Exchange,
    /// Where the numbers are in the kernel.
    entries: Vec<Entry>,
    numbers: Numbers,
}

impl Copy {
    pub fn new(exchange: Exchange, replica: &Replica) -> Option<Copy> {
        let family = &replica.schema().families[replica.family()];
        let mut entries = Vec::new();
        // Handlers know by themselves how old the copy is.
        for (global, _) in family.imports.iter().filter(|(_, it)| *it != Source::Age) {
            entries.push(exchange.of_cluster(*global)?);
        }
        for (_, export) in &family.exports {
            entries.push(exchange.of_node(*export)?);
        }
        Some(Copy { exchange, entries, numbers: Numbers::new(family) })
    }

    pub fn object(&self) -> &libbpf_rs::Object {
        self.exchange.object()
    }

    /// Whether others see something of the node.
    pub fn is_seen(&self) -> bool {
        self.entries.len() > self.numbers.shared()
    }

    /// Whether something that others see has changed since they were told.
    pub fn has_changed(&self) -> bool {
        let own = self.entries.iter().zip(self.numbers.numbers()).skip(self.numbers.shared());
        own.into_iter().any(|(entry, it)| self.exchange.look(entry) != Some(it.number))
    }

    /// Follows an order with the next exchange.
    pub fn obey(&mut self, property: Property, operation: Operation) {
        self.numbers.obey(property, operation);
    }

    /// Handlers see what the connection has heard, and the connection gets what they have written.
    /// True: that has changed what handlers should see.
    pub fn exchange(&mut self, connection: &mut Connection, now: Time) -> io::Result<bool> {
        let age = connection.replica().age(now);
        let heard_at = if age == Time::MAX { 0 } else { now - age };
        let numbers = self.numbers.begin(connection.replica());
        self.exchange.run(&self.entries, numbers, heard_at)?;
        Ok(self.numbers.end(connection.replica_mut()))
    }
}
