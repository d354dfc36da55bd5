//! A node's copy of the store: what its handlers read, and the writes that the master has not
//! counted yet.
//!
//! A read gives the store as it was at one revision, with the node's own writes since applied to
//! it: a node sees what it wrote, and all that the writer of what it sees had seen. Nothing here
//! waits. While the master is away, reads give the last that was heard, and writes merge.
//!
//! Invariants: at most one batch is on its way, and it stays the same until it is counted; a write
//! is in the copy, on its way or queued, and in one of them only.

use std::collections::BTreeMap;
use std::sync::Arc;

use attune_language::ir::Value;

use crate::Time;
use crate::messages::*;
use crate::operation::Operation;
use crate::schema::Schema;
use crate::writes::{Writes, applied};

#[derive(Clone, Debug)]
pub struct Replica {
    schema: Arc<Schema>,
    family: usize,
    /// None: the master has not welcomed it yet, or has given it up.
    node: Option<NodeId>,
    former: Option<NodeId>,
    /// The key of its present or last hello.
    key: u64,
    revision: Revision,
    base: Vec<Value>,
    /// When the master was heard of; None: never.
    heard: Option<Time>,
    /// The revision that the master knows the copy to have, as far as was reported.
    reported: Revision,
    started: bool,
    open: Writes<Target>,
    on_its_way: Option<Batch>,
    last_batch: u64,
    /// Batches in the whole life of the process, whichever master counts them.
    sealed: u64,
    /// The last orders followed, and those that the last batch has confirmed.
    obeyed: u64,
    confirmed: u64,
    /// Its own values as last told, by property, and as the counted batches told them.
    own: Vec<Option<Value>>,
    counted_own: Vec<Option<Value>>,
    asks: BTreeMap<u64, Ask>,
    last_ask: u64,
}

impl Replica {
    /// A copy with the initial values. `key` is this node's alone.
    pub fn new(schema: Arc<Schema>, family: usize, key: u64) -> Replica {
        Replica {
            base: schema.initial_store(),
            own: vec![None; schema.properties.len()],
            counted_own: vec![None; schema.properties.len()],
            started: !schema.expects_nodes(),
            schema,
            family,
            node: None,
            former: None,
            key,
            revision: 0,
            heard: None,
            reported: 0,
            open: Writes::default(),
            on_its_way: None,
            last_batch: 0,
            sealed: 0,
            obeyed: 0,
            confirmed: 0,
            asks: BTreeMap::new(),
            last_ask: 0,
        }
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    pub fn family(&self) -> usize {
        self.family
    }

    /// Its number, while the master knows it.
    pub fn node(&self) -> Option<NodeId> {
        self.node
    }

    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// As many nodes have come as the families expect.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// How long ago the master was heard of; the longest time there is if never.
    pub fn age(&self, now: Time) -> Time {
        self.heard.map_or(Time::MAX, |heard| now.saturating_sub(heard).max(0))
    }

    // ---- what handlers read and write ----

    /// A shared variable.
    pub fn shared(&self, shared: Shared) -> Value {
        let cell = self.schema.shared_cell(shared);
        self.after_own_writes(Target::Shared(shared), self.cell(cell))
    }

    /// The node in a seat.
    pub fn seated(&self, seat: u16) -> Option<NodeId> {
        match self.cell(self.schema.node_cell(seat)) {
            Value::Int(node) => NodeId::try_from(node).ok(),
            Value::Float(_) => None,
        }
    }

    /// The family of the node in a seat, -1 where none is.
    pub fn family_in(&self, seat: u16) -> Value {
        self.cell(self.schema.family_cell(seat))
    }

    /// A property of the node in a seat, 0 where none is. The node itself knows its
    /// own value best.
    pub fn property_in(&self, seat: u16, property: Property) -> Value {
        let base = self.cell(self.schema.property_cell(seat, property));
        match self.seated(seat) {
            Some(node) => self.after_own_writes(Target::Of(node, property), base),
            None => base,
        }
    }

    fn cell(&self, cell: Cell) -> Value {
        self.base.get(cell as usize).copied().unwrap_or(Value::Int(0))
    }

    fn after_own_writes(&self, target: Target, base: Value) -> Value {
        let on_its_way = self.on_its_way.as_ref();
        let sent = on_its_way.map_or(base, |batch| applied(&batch.writes, &target, base));
        self.open.applied(target, sent)
    }

    pub fn write(&mut self, target: Target, operation: Operation) {
        self.open.push(target, operation);
    }

    /// Tells a value of its own, if it has changed.
    pub fn tell(&mut self, property: Property, value: Value) {
        let Some(told) = self.own.get_mut(usize::from(property)) else { return };
        if told.is_none_or(|told| !told.is(value)) {
            *told = Some(value);
            self.open.push(Target::Own(property), Operation::Set(value));
        }
    }

    // ---- messages ----

    /// What it says first, and says again until it is welcome. None while the master knows it.
    pub fn hello(&self) -> Option<Hello> {
        if self.node.is_some() {
            return None;
        }
        let told = if self.writes_to_others() { &self.counted_own } else { &self.own };
        let told = told.iter().enumerate();
        Some(Hello {
            identity: self.schema.identity.clone(),
            family: self.schema.families.get(self.family)?.name.clone(),
            key: self.key,
            former: self.former,
            values: told
                .filter_map(|(number, value)| Some((number as Property, (*value)?)))
                .collect(),
        })
    }

    /// Whether it has written what is not its own, and does not know that it was counted.
    fn writes_to_others(&self) -> bool {
        let sent = self.on_its_way.iter().flat_map(|batch| batch.writes.iter().copied());
        sent.chain(self.open.iter()).any(|(target, _)| !matches!(target, Target::Own(_)))
    }

    pub fn welcome(&mut self, welcome: &Welcome, now: Time) {
        if self.node.is_some() {
            return;
        }
        self.node = Some(welcome.node);
        self.counted(welcome.counted);
        // Another master, which lost the state of the one before, counts from the beginning.
        self.last_batch = welcome.counted;
        if !welcome.resumed {
            (self.obeyed, self.confirmed) = (0, 0);
            // Its hello may have told less than a batch that was counted for its former self.
            for (property, value) in self.own.iter().enumerate() {
                if let Some(value) = *value {
                    self.open.push(Target::Own(property as Property), Operation::Set(value));
                }
            }
        }
        if let Some(batch) = &mut self.on_its_way {
            self.last_batch += 1;
            (batch.number, batch.obeyed) = (self.last_batch, self.confirmed);
        }
        for ask in self.asks.values_mut() {
            ask.node = welcome.node;
        }
        self.take_image(welcome.revision, welcome.values.clone(), now);
        self.started |= welcome.started;
        self.reported = 0;
    }

    fn take_image(&mut self, revision: Revision, values: Vec<Value>, now: Time) {
        self.base = values;
        self.revision = revision;
        self.heard = Some(now);
    }

    /// The master has given the node up: it may come again, under a key that is new.
    pub fn forgotten(&mut self, key: u64) {
        self.former = self.node.take().or(self.former);
        self.key = key;
    }

    /// The report to send now: a new batch, or what it has heard; `again` also what was sent
    /// already. None if there is nothing to say, or the master does not know it.
    pub fn report(&mut self, again: bool) -> Option<Report> {
        let node = self.node?;
        let mut says = again || self.reported < self.revision;
        let has_followed = self.obeyed > self.confirmed;
        if self.on_its_way.is_none() && (!self.open.is_empty() || has_followed) {
            self.last_batch += 1;
            self.sealed += 1;
            self.confirmed = self.obeyed;
            let (number, obeyed) = (self.last_batch, self.obeyed);
            self.on_its_way = Some(Batch { number, obeyed, writes: self.open.take() });
            says = true;
        }
        self.reported = self.revision;
        says.then(|| Report { node, heard: self.revision, batch: self.on_its_way.clone() })
    }

    /// Whether there is something to report that was not reported yet.
    pub fn has_news(&self) -> bool {
        self.node.is_some() && (self.reported < self.revision || self.has_writes())
    }

    /// Whether there is a batch to seal, or orders to confirm.
    pub fn has_writes(&self) -> bool {
        self.on_its_way.is_none() && (!self.open.is_empty() || self.obeyed > self.confirmed)
    }

    /// A number for all that has been written so far, for [`Replica::has_counted`].
    pub fn written(&self) -> u64 {
        self.sealed + u64::from(!self.open.is_empty())
    }

    /// Whether the master has counted what was written until then.
    pub fn has_counted(&self, written: u64) -> bool {
        let counted = self.sealed - u64::from(self.on_its_way.is_some());
        self.node.is_some() && (counted >= written || self.is_counted())
    }

    fn is_counted(&self) -> bool {
        self.on_its_way.is_none() && self.open.is_empty()
    }

    /// Whether the master has all that there is to say, so that nothing must be sent again.
    pub fn is_settled(&self) -> bool {
        self.node.is_some()
            && self.is_counted()
            && self.obeyed == self.confirmed
            && self.asks.is_empty()
    }

    /// Takes news, and returns the orders that the node has not followed yet. News that are older
    /// than the copy, or that begin later than it, change nothing.
    pub fn receive(&mut self, news: &News, now: Time) -> Vec<(Property, Operation)> {
        if self.node != Some(news.node) {
            return Vec::new();
        }
        if news.since <= self.revision && self.revision <= news.revision {
            for &(cell, value) in &news.cells {
                if let Some(place) = self.base.get_mut(cell as usize) {
                    *place = value;
                }
            }
            self.revision = news.revision;
            self.heard = Some(now);
            self.counted(news.counted);
        }
        self.started |= news.started;
        // The master does not know yet what the copy has.
        self.reported = self.reported.min(news.since);
        match &news.orders {
            Some(orders) if orders.number == self.obeyed + 1 => {
                self.obeyed = orders.number;
                orders.writes.clone()
            }
            _ => Vec::new(),
        }
    }

    /// The copy takes the batches up to that number into account.
    fn counted(&mut self, number: u64) {
        let counted = self.on_its_way.take_if(|batch| batch.number <= number);
        for (target, operation) in counted.into_iter().flat_map(|batch| batch.writes) {
            if let (Target::Own(property), Operation::Set(value)) = (target, operation) {
                self.counted_own[usize::from(property)] = Some(value);
            }
        }
    }

    // ---- the request model ----

    /// Begins writes at the owner, or a read where there are none; the answer bears the number that
    /// it returns, and tells the value of `variable`.
    pub fn ask(&mut self, variable: Shared, writes: Vec<(Shared, Operation)>) -> u64 {
        self.last_ask += 1;
        let number = self.last_ask;
        let node = self.node.unwrap_or(0);
        self.asks.insert(number, Ask { node, number, unanswered: number, variable, writes });
        number
    }

    /// What has not been answered, from that number on: to be sent, and sent again.
    pub fn asks(&self, from: u64) -> impl Iterator<Item = Ask> + '_ {
        let unanswered = self.asks.keys().next().copied().unwrap_or(0);
        let known = self.node.is_some();
        let asks = self.asks.range(from..).filter(move |_| known);
        asks.map(move |(_, ask)| Ask { unanswered, ..ask.clone() })
    }

    /// No answer of that number is waited for any more. The owner may perform the writes still.
    pub fn abandon(&mut self, number: u64) {
        self.asks.remove(&number);
    }

    /// The value for the operation of that number; none if it was answered before.
    pub fn answer(&mut self, answer: &Answer) -> Option<Value> {
        self.asks.remove(&answer.number).map(|_| answer.value)
    }
}
