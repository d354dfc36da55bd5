//! What handlers that cannot speak to a cluster, in the kernel or on a device, exchange with a
//! node's copy: numbers that go in and come out together, between two handlers.
//!
//! Each exchange begins with what the copy has ([`Exchange::begin`]) and ends with what handlers
//! did ([`Exchange::end`]); the engine that reaches the handlers does the part between.
//!
//! Invariant: a write of a handler is either with the handlers or in the replica.

use attune_language::ir::Value;

use crate::messages::{NodeId, Property, Target};
use crate::schema::{FamilySchema, Source};
use crate::{Change, Operation, Replica};

/// A number that both have: what goes in, and what has come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    pub number: i64,
    /// In: what others did to it. Out: what handlers did to it.
    pub change: Change,
}

#[derive(Clone, Debug)]
pub struct Exchange {
    /// Where what others share comes from: it is first among the numbers; the node's own follow.
    sources: Vec<Source>,
    own: Vec<Property>,
    numbers: Vec<Number>,
    /// The node in the seat of each source when handlers were told its value, and in the exchange
    /// that has begun.
    seated: Vec<Option<NodeId>>,
    seats: Vec<Option<NodeId>>,
    /// What others did to the node's own numbers, by their place in `own`.
    orders: Vec<Change>,
}

impl Exchange {
    pub fn new(family: &FamilySchema) -> Exchange {
        let sources: Vec<Source> =
            family.imports.iter().map(|(_, it)| *it).filter(|it| *it != Source::Age).collect();
        let own: Vec<Property> = family.exports.iter().map(|(property, _)| *property).collect();
        let number = Number { number: 0, change: Change::NONE };
        Exchange {
            numbers: vec![number; sources.len() + own.len()],
            seated: vec![None; sources.len()],
            seats: Vec::new(),
            orders: vec![Change::NONE; own.len()],
            sources,
            own,
        }
    }

    /// How many of the numbers others share; the rest is the node's own.
    pub fn shared(&self) -> usize {
        self.sources.len()
    }

    pub fn numbers(&self) -> &[Number] {
        &self.numbers
    }

    /// Follows an order with the next exchange.
    pub fn obey(&mut self, property: Property, operation: Operation) {
        let own = self.own.iter().position(|known| *known == property);
        if let (Some(own), Some(change)) = (own, Change::of(operation)) {
            self.orders[own] = self.orders[own].then(change);
        }
    }

    /// The numbers as they go in.
    pub fn begin(&mut self, replica: &Replica) -> &mut [Number] {
        let (shared, own) = self.numbers.split_at_mut(self.sources.len());
        self.seats.clear();
        for (number, source) in shared.iter_mut().zip(&self.sources) {
            let own = || self.own.iter().zip(&*own).zip(&self.orders);
            number.change = Change::NONE;
            number.number = match *source {
                Source::Of(seat, property) if sits_in(replica, seat) => own()
                    .find(|((known, _), _)| **known == property)
                    .map_or(0, |((_, number), order)| order.apply(number.number)),
                source => whole(value(replica, source)),
            };
            self.seats.push(match *source {
                Source::Of(seat, _) => replica.seated(seat),
                _ => None,
            });
        }
        for (number, order) in own.iter_mut().zip(&mut self.orders) {
            number.change = std::mem::replace(order, Change::NONE);
        }
        &mut self.numbers
    }

    /// As [`Exchange::end`], with what has come out: changes of what others share, and what the
    /// node's own numbers are.
    pub fn finish(&mut self, changes: &[Change], own: &[i64], replica: &mut Replica) -> bool {
        let (shared, mine) = self.numbers.split_at_mut(self.sources.len());
        shared.iter_mut().zip(changes).for_each(|(number, change)| number.change = *change);
        mine.iter_mut().zip(own).for_each(|(number, value)| number.number = *value);
        self.end(replica)
    }

    /// The numbers have come out. True: handlers should see more at once.
    pub fn end(&mut self, replica: &mut Replica) -> bool {
        let (shared, own) = self.numbers.split_at(self.sources.len());
        let mut to_itself = Vec::new();
        for ((number, source), before) in shared.iter().zip(&self.sources).zip(&self.seated) {
            let target = match (*source, *before) {
                (Source::Shared(shared), _) => Target::Shared(shared),
                (Source::Of(_, property), Some(node)) if replica.node() == Some(node) => {
                    to_itself.push((property, number.change));
                    continue;
                }
                (Source::Of(_, property), Some(node)) => Target::Of(node, property),
                _ => continue,
            };
            number.change.operations().for_each(|operation| replica.write(target, operation));
        }
        for (property, number) in self.own.iter().zip(own) {
            replica.tell(*property, Value::Int(number.number));
        }
        for (property, change) in to_itself {
            change.operations().for_each(|operation| self.obey(property, operation));
        }
        let moved = self.seated != self.seats;
        self.seated.clone_from(&self.seats);
        moved || self.orders.iter().any(|order| *order != Change::NONE)
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

/// Handlers that exchange so have no floats among what they share.
fn whole(value: Value) -> i64 {
    match value {
        Value::Int(value) => value,
        Value::Float(value) => value as i64,
    }
}
