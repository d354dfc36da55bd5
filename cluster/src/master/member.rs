//! What the master knows of a node.

use std::collections::BTreeMap;

use attune_language::ir::Value;
use attune_replica::messages::{Orders, Property, Revision};
use attune_replica::writes::{Writes, applied};
use attune_simulator::scheduler::{ThreadId, Time};

/// What has been done for a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// Its last batch that took effect.
    pub counted: u64,
    /// Answers that it may still need, and the number below which it needs none.
    pub answers: BTreeMap<u64, Value>,
    pub needs_from: u64,
}

pub(super) struct Member {
    pub slot: ThreadId,
    pub family: usize,
    pub key: u64,
    pub done: Done,
    /// What it told of itself.
    pub values: Vec<Value>,
    /// When it was heard of.
    pub heard: Time,
    /// The revision that it has.
    pub confirmed: Revision,
    /// What the last news said: revision, counted batch, start.
    pub told: (Revision, u64, bool),
    /// Writes to it that no orders hold yet, and the orders that it has not followed yet.
    pub open: Writes<Property>,
    pub sent: Option<Orders>,
    pub last_orders: u64,
    /// Its connection was lost with the manager that had it, and it has not come again.
    pub absent: bool,
    /// It has come again so.
    pub resumed: bool,
}

impl Member {
    /// Takes what it tells of itself.
    pub fn tell(&mut self, values: &[(Property, Value)]) {
        for &(property, value) in values {
            if let Some(place) = self.values.get_mut(usize::from(property)) {
                *place = value;
            }
        }
    }

    /// What it told of itself with the writes to it that it has not followed yet.
    pub fn value(&self, property: Property) -> Value {
        let told = self.values[usize::from(property)];
        let sent = self.sent.as_ref().map_or(told, |it| applied(&it.writes, &property, told));
        self.open.applied(property, sent)
    }
}
