//! A master as bytes, so that another process can go on as the same master.
//!
//! Invariant: a restored master answers every message as the saved one would have. Only its
//! connections are gone, so each of its nodes is absent until it comes again or departs.

use std::collections::BTreeMap;
use std::sync::Arc;

use attune_cluster_local::packets::reader::Reader;
use attune_cluster_local::packets::writer::Writer;
use attune_language::Cluster;
use attune_language::source::SourceMap;
use attune_replica::Schema;
use attune_replica::messages::{NodeId, Property};
use attune_replica::writes::Writes;
use attune_simulator::interpreter::Snapshot;
use attune_simulator::scheduler::{ThreadId, Time};

use super::member::{Done, Member};
use super::{Master, MasterError};
use crate::store::Store;

impl Master {
    /// Writes all down that the master knows.
    pub fn save(&self, to: &mut Writer) {
        to.u64(self.store.revision());
        to.list(self.store.values(), |to, &value| to.value(value));
        to.list(self.store.changed(), |to, &revision| to.u64(revision));
        to.u64(self.last_node);
        to.u32(self.nodes.len() as u32);
        for (&node, member) in &self.nodes {
            to.u64(node);
            write_member(to, member);
        }
        to.u32(self.departed.len() as u32);
        for (&node, done) in &self.departed {
            to.u64(node);
            write_done(to, done);
        }
        to.list(&self.come, |to, &come| to.u32(come));
        to.flag(self.started);
        write_policy(to, &self.policy.snapshot());
    }

    /// The master that was saved, of the same texts; None: the bytes are something else.
    pub fn restored(
        cluster: &Cluster,
        schema: Arc<Schema>,
        sources: &SourceMap,
        seed: u64,
        from: &mut Reader<'_>,
    ) -> Result<Option<Master>, MasterError> {
        let mut master = Master::bare(cluster, schema, sources, seed)?;
        Ok(master.fill(from).map(|()| master))
    }

    /// Becomes the master that was saved, of the same texts, and keeps its connections. None: the
    /// bytes are something else, and this master is of no use any more.
    pub fn become_saved(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let before = std::mem::take(&mut self.nodes);
        self.slots.clear();
        self.keys.clear();
        self.fill(from)?;
        self.changes += 1;
        for (node, member) in &mut self.nodes {
            // What a node has said to have is in every later state.
            let confirmed = before.get(node).map_or(0, |before| before.confirmed);
            member.confirmed = confirmed.min(self.store.revision());
        }
        Some(())
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let revision = from.u64()?;
        let values = from.list(Reader::value)?;
        let changed = from.list(Reader::u64)?;
        let cells = self.store.values().len();
        self.store = Store::restored(values, changed, revision);
        self.last_node = from.u64()?;
        let properties = self.schema.properties.len();
        let members = from.list(|from| Some((from.u64()?, read_member(from)?)))?;
        for (node, member) in members {
            let slot = member.slot.index();
            if member.values.len() != properties || slot > LAST_SLOT {
                return None;
            }
            self.slots.resize(self.slots.len().max(slot + 1), None);
            self.slots[slot] = Some(node);
            self.keys.insert(member.key, node);
            self.nodes.insert(node, member);
        }
        self.departed =
            from.list(|from| Some((from.u64()?, read_done(from)?)))?.into_iter().collect();
        self.come = from.list(Reader::u32)?;
        self.started = from.flag()?;
        let policy = read_policy(from)?;
        let fits = self.store.values().len() == cells
            && self.store.changed().len() == cells
            && self.come.len() == self.schema.families.len()
            && policy.threads.iter().all(|(thread, _)| self.node_at(*thread).is_some());
        (fits && self.policy.restore(&policy)).then_some(())
    }

    fn node_at(&self, slot: ThreadId) -> Option<NodeId> {
        self.slots.get(slot.index()).copied().flatten()
    }

    /// Nodes that have not come again since the master was restored.
    pub fn absent(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().filter(|(_, member)| member.absent).map(|(&node, _)| node)
    }
}

/// A slot beyond it is no master's.
const LAST_SLOT: usize = 1 << 20;

fn write_member(to: &mut Writer, member: &Member) {
    to.u32(member.slot.0);
    to.u32(member.family as u32);
    to.u64(member.key);
    write_done(to, &member.done);
    to.list(&member.values, |to, &value| to.value(value));
    to.u64(member.heard as u64);
    to.u32(member.open.len() as u32);
    for (property, operation) in member.open.iter() {
        to.u16(property);
        to.operation(operation);
    }
    to.option(member.sent.as_ref(), Writer::orders);
    to.u64(member.last_orders);
    to.flag(member.resumed);
}

fn read_member(from: &mut Reader<'_>) -> Option<Member> {
    Some(Member {
        slot: ThreadId(from.u32()?),
        family: from.u32()? as usize,
        key: from.u64()?,
        done: read_done(from)?,
        values: from.list(Reader::value)?,
        heard: from.u64()? as Time,
        confirmed: 0,
        told: (0, 0, false),
        open: {
            let mut open = Writes::<Property>::default();
            for (property, operation) in from.list(|from| Some((from.u16()?, from.operation()?)))? {
                open.push(property, operation);
            }
            open
        },
        sent: from.option(Reader::orders)?,
        last_orders: from.u64()?,
        absent: true,
        resumed: from.flag()?,
    })
}

fn write_done(to: &mut Writer, done: &Done) {
    to.u64(done.counted);
    to.u64(done.needs_from);
    to.u32(done.answers.len() as u32);
    for (&number, &value) in &done.answers {
        to.u64(number);
        to.value(value);
    }
}

fn read_done(from: &mut Reader<'_>) -> Option<Done> {
    let (counted, needs_from) = (from.u64()?, from.u64()?);
    let answers = from.list(|from| Some((from.u64()?, from.value()?)))?;
    Some(Done { counted, needs_from, answers: BTreeMap::from_iter(answers) })
}

fn write_policy(to: &mut Writer, policy: &Snapshot) {
    to.list(&policy.containers, |to, elements| {
        to.list(elements, |to, threads| to.list(threads, |to, thread| to.u32(thread.0)));
    });
    to.list(&policy.globals, |to, values| to.list(values, |to, &value| to.value(value)));
    to.list(&policy.threads, |to, (thread, values)| {
        to.u32(thread.0);
        to.list(values, |to, &value| to.value(value));
    });
}

fn read_policy(from: &mut Reader<'_>) -> Option<Snapshot> {
    let thread = |from: &mut Reader<'_>| from.u32().map(ThreadId);
    Some(Snapshot {
        containers: from.list(|from| from.list(|from| from.list(thread)))?,
        globals: from.list(|from| from.list(Reader::value))?,
        threads: from.list(|from| Some((thread(from)?, from.list(Reader::value)?)))?,
        // A figure for people; the policy cannot read it.
        divisions_by_zero: 0,
    })
}
