//! A manager that shares its master's state with the managers of other machines.
//!
//! All managers are equal. Each holds the master as the database has it, takes what its own nodes
//! say, and puts the changed master in the place of the one that it began with. When another one
//! was sooner, it goes on with that one's master and takes what its nodes said once more: a master
//! counts each hello, batch and request once. So it does not matter, either, whether a put whose
//! outcome was never heard took effect.
//!
//! A node belongs to the manager of its machine. A manager that the database does not hear of any
//! more is lost, and whichever other manager is soonest lets its nodes depart.
//!
//! Invariants: nodes are told nothing that the database does not have; nothing here waits for the
//! database, apart from the start and the end; the master's time runs forward on all machines, and
//! no clock of the day is asked.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use attune_cluster_local::packets::writer::Writer;
use attune_cluster_local::packets::{ToManager, ToNode};
use attune_linux::poll;
use attune_linux::time::{self, MILLISECOND, SECOND};
use attune_replica::Schema;
use attune_replica::messages::NodeId;
use attune_simulator::interpreter::Failure;
use attune_simulator::scheduler::Time;

use super::absent::Identity;
use super::start::{Error, Texts};
use super::state::Owner;
use super::{Happening, Manager, random, state};
use crate::Master;
use crate::database::{Database, ManagerId, State, Told};

/// Nodes' writes go into the database at most so often, merged.
const PACE: time::Time = 5 * MILLISECOND;
/// How often a manager says when it has heard its nodes, if the master asks for ages.
const AGES: time::Time = SECOND;
/// How long a manager that starts, or ends, waits for the database.
const START: time::Time = 10 * SECOND;
const END: time::Time = 3 * SECOND;
/// Departed nodes that may come back and have their writes counted once; of more, the first are
/// forgotten.
const DEPARTED: usize = 4096;

/// Makes a manager of that number take part in a database.
pub type Join<'a> = &'a mut dyn FnMut(ManagerId) -> std::io::Result<Box<dyn Database>>;

pub(super) struct Common {
    database: Box<dyn Database>,
    own: ManagerId,
    /// The revision of the state that the master goes on from.
    seen: u64,
    managers: Vec<ManagerId>,
    /// Owners of all nodes that the master knows, also of departed ones.
    owners: BTreeMap<NodeId, Owner>,
    /// The number of the last put, and whether its outcome is still to be told.
    puts: u64,
    putting: bool,
    /// What was put last: if it is there, it took effect, although nobody said so.
    put: Vec<u8>,
    /// The database could not be reached, and nothing has been kept since.
    away: bool,
    /// The next put, if nothing is urgent.
    next_put: time::Time,
    urgent: bool,
}

impl Manager {
    /// Listens at `path`, and shares the master's state with the managers that join the same
    /// database. They have the same texts and first values.
    pub fn sharing(
        texts: &Texts<'_>,
        schema: Arc<Schema>,
        path: &Path,
        join: Join<'_>,
    ) -> Result<Manager, Error> {
        let (mut kept, listener) = super::take_place(path)?;
        // A manager that was killed is followed by the same one, as its nodes may live.
        let own = kept.read().and_then(|bytes| state::read_own(&bytes)).unwrap_or_else(random);
        let unable = |error| Error::Place("keep the manager's number beside", path.into(), error);
        kept.write(&state::own(own)).map_err(unable)?;
        let mut database = join(own).map_err(Error::Database)?;
        let mut found = first_found(&mut *database)?;
        let others = found.managers.iter().any(|manager| *manager != own);
        if let Some(theirs) = state::other_version(&found.bytes, &schema) {
            if others {
                return Err(Error::Version { ours: schema.identity.clone(), theirs });
            }
            // Nobody is left of the cluster of that version.
            found.bytes.clear();
        }
        let Texts { cluster, sources, seed } = *texts;
        let master = Master::new(cluster, schema, sources, seed, time::now() as Time)?;
        let mut manager = Manager::with(master, random(), listener, kept);
        let begins = found.bytes.is_empty();
        manager.common = Some(Common {
            database,
            own,
            seen: if begins { found.revision } else { 0 },
            managers: Vec::new(),
            owners: BTreeMap::new(),
            puts: 0,
            putting: false,
            put: Vec::new(),
            away: false,
            next_put: 0,
            urgent: true,
        });
        manager.expect_former_nodes(&found);
        manager.find(found).map_err(crate::master::MasterError::from)?;
        Ok(manager)
    }

    /// Nodes of the manager that was killed here, whose processes live.
    fn expect_former_nodes(&mut self, found: &State) {
        let Some(common) = &self.common else { return };
        let Some(shared) = state::read_shared(&found.bytes, self.master.schema()) else { return };
        for (node, owner) in shared.owners {
            if owner.manager == common.own
                && let Some(process) = owner.identity.open()
            {
                self.processes.wait_for(node, owner.identity, process);
            }
        }
    }

    /// The managers that share the master's state, this one among them.
    pub fn managers(&self) -> usize {
        self.common.as_ref().map_or(1, |common| common.managers.len())
    }

    /// Takes what the database has told.
    pub(super) fn hear_database(&mut self) -> Result<(), Failure> {
        let Some(common) = &mut self.common else { return Ok(()) };
        for told in common.database.take() {
            let Some(common) = &mut self.common else { return Ok(()) };
            match told {
                Told::Put { number, revision } if common.putting && number == common.puts => {
                    common.seen = revision;
                    common.putting = false;
                    self.is_kept();
                }
                // The outcome of a put before the last: `Found` follows.
                Told::Put { .. } => {}
                Told::Found(state) => self.find(state)?,
                Told::Same => {
                    self.clients.iter_mut().for_each(|client| client.again = true);
                    // The others know from the state when this machine's nodes were heard.
                    if self.master.asks_ages() && time::now() >= common.next_put + AGES {
                        self.kept_changes = None;
                    }
                }
                Told::Away(reason) => {
                    self.stuck = true;
                    if !std::mem::replace(&mut common.away, true) {
                        self.happened.push(Happening::NotKept(reason));
                    }
                }
            }
        }
        Ok(())
    }

    /// What the database has is what the master is: nodes may be told.
    fn is_kept(&mut self) {
        self.stuck = false;
        if self.common.as_mut().is_some_and(|common| std::mem::take(&mut common.away)) {
            self.happened.push(Happening::KeptAgain);
        }
        self.settled.append(&mut self.happened);
        for client in &mut self.clients {
            client.unkept.clear();
            client.kept_node = client.node;
            client.send();
        }
    }

    /// Goes on with what is in the database.
    fn find(&mut self, found: State) -> Result<(), Failure> {
        let Some(common) = &mut self.common else { return Ok(()) };
        // A put that was not heard of may not have taken effect.
        let unsure = std::mem::take(&mut common.putting) || found.revision != common.seen;
        self.stuck = false;
        if common.managers != found.managers {
            self.happened.push(Happening::Managers(found.managers.len()));
            common.managers = found.managers;
        }
        let is_newer = found.revision > common.seen && !found.bytes.is_empty();
        if is_newer && found.bytes == common.put {
            common.seen = found.revision;
            self.is_kept();
            return self.let_lost_nodes_depart();
        }
        // An older state, or none, is not what the database said it would keep: what the master is
        // takes its place.
        common.seen = found.revision;
        if is_newer {
            self.take_over(&found.bytes)?;
        } else if unsure {
            // At once: what is not kept must not be told.
            self.kept_changes = None;
            common.urgent = true;
        }
        self.let_lost_nodes_depart()
    }

    /// Becomes the master that another manager has put, and hears what was not kept once more.
    fn take_over(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let schema = self.master.schema().clone();
        let taken = state::read_shared(bytes, &schema).and_then(|mut shared| {
            self.master.become_saved(&mut shared.rest)?;
            shared.rest.bytes.is_empty().then_some((shared.run, shared.clock, shared.owners))
        });
        let Some((run, clock, owners)) = taken else {
            let theirs = state::other_version(bytes, &schema).unwrap_or_default();
            let ours = schema.identity.clone();
            return Err(other_version(Error::Version { ours, theirs }.to_string()));
        };
        self.run = run;
        self.time_offset += (clock - self.now()).max(0);
        let Some(common) = &mut self.common else { return Ok(()) };
        common.owners = owners.into_iter().collect();
        // What was to be told was not kept.
        self.happened.retain(Happening::is_of_managers);
        self.kept_changes = Some(self.master.changes());
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            client.take_back();
            if let Some(node) = client.node
                && self.master.heard(node).is_none()
            {
                // The others have not heard of this machine for long: it may arrive anew.
                client.node = None;
                client.kept_node = None;
                client.tell(ToNode::Unknown);
            }
            for message in std::mem::take(&mut client.unkept) {
                self.take(index, Some(message))?;
            }
        }
        Ok(())
    }

    /// Nodes of managers that are not there any more, and own nodes that have gone.
    fn let_lost_nodes_depart(&mut self) -> Result<(), Failure> {
        let Some(common) = &mut self.common else { return Ok(()) };
        let connected: HashSet<NodeId> = self.clients.iter().filter_map(|it| it.node).collect();
        let mut lost = Vec::new();
        for (&node, owner) in &common.owners {
            let is_there = if owner.manager == common.own {
                connected.contains(&node) || self.processes.awaits(node).is_some()
            } else {
                common.managers.contains(&owner.manager)
            };
            if !is_there && self.master.heard(node).is_some() {
                lost.push((node, owner.identity.number));
            }
        }
        common.urgent |= !lost.is_empty();
        self.depart_all(lost)
    }

    /// Notes what has to be heard once more if another manager is sooner.
    pub(super) fn note(&mut self, index: usize, message: &ToManager) {
        let Some(common) = &mut self.common else { return };
        common.urgent |= !matches!(message, ToManager::Report(_));
        self.clients[index].unkept.push(message.clone());
    }

    /// Whether a process may say that it was that node.
    pub(super) fn may_have_been(&self, node: NodeId, process: u32) -> bool {
        self.common.as_ref().is_none_or(|common| {
            let claimed = Owner { manager: common.own, identity: Identity::of(process) };
            common.owners.get(&node) == Some(&claimed)
        })
    }

    pub(super) fn is_owner(&mut self, node: NodeId, identity: Identity) {
        if let Some(common) = &mut self.common {
            common.owners.insert(node, Owner { manager: common.own, identity });
        }
    }

    /// A node has gone.
    pub(super) fn is_urgent(&mut self) {
        if let Some(common) = &mut self.common {
            common.urgent = true;
        }
    }

    /// When to put although nothing happens.
    pub(super) fn next_put(&self) -> Option<time::Time> {
        let common = self.common.as_ref()?;
        (!self.stuck && self.kept_changes != Some(self.master.changes())).then_some(common.next_put)
    }

    pub(super) fn database_descriptor(&self) -> i32 {
        self.common.as_ref().map_or(-1, |common| common.database.wakes().as_raw_fd())
    }

    /// Puts what has changed, or tells what is kept.
    pub(super) fn share(&mut self) {
        let Some(common) = &self.common else { return };
        let changed = self.kept_changes != Some(self.master.changes());
        if self.stuck || changed && !common.urgent && time::now() < common.next_put {
            return;
        }
        self.spread();
        let changes = self.master.changes();
        if self.kept_changes == Some(changes) {
            self.is_kept();
            return;
        }
        while self.master.departed().len() > DEPARTED
            && let Some(first) = self.master.departed().min()
        {
            self.master.forget(first);
        }
        let (run, clock) = (self.run, self.now());
        let Some(common) = &mut self.common else { return };
        let known = |node| self.master.heard(node).is_some() || self.master.has_departed(node);
        common.owners.retain(|&node, _| known(node));
        let mut to = Writer::default();
        state::write_shared(&mut to, run, clock, &self.master, &common.owners);
        self.kept_changes = Some(self.master.changes());
        common.puts += 1;
        common.put.clone_from(&to.bytes);
        common.database.put(common.puts, common.seen, to.bytes);
        common.putting = true;
        common.urgent = false;
        common.next_put = time::now() + PACE;
        self.stuck = true;
    }

    /// Lets the own nodes depart, and the cluster end with its last manager.
    pub(super) fn leave(&mut self) -> Result<(), Failure> {
        if self.common.is_none() {
            return Ok(());
        }
        for client in &mut self.clients {
            client.gone = true;
            client.unkept.clear();
        }
        let awaited = self.processes.no_longer_awaited();
        self.depart_all(awaited)?;
        self.bury()?;
        let until = time::now() + END;
        loop {
            self.share();
            let left = until.saturating_sub(time::now());
            if !self.stuck || left == 0 {
                break;
            }
            // Ended early by a signal, it looks at the clock and waits again.
            let _ = poll::wait(&mut [poll::readable(self.database_descriptor())], left);
            self.hear_database()?;
        }
        if let Some(common) = &mut self.common {
            common.database.leave(common.seen);
        }
        Ok(())
    }
}

/// The first that a database tells of what is there.
fn first_found(database: &mut dyn Database) -> Result<State, Error> {
    let until = time::now() + START;
    let mut reason = "it does not answer".to_owned();
    loop {
        let mut found = None;
        for told in database.take() {
            match told {
                Told::Found(state) => found = Some(state),
                Told::Away(why) => reason = why,
                Told::Put { .. } | Told::Same => {}
            }
        }
        if let Some(found) = found {
            return Ok(found);
        }
        let left = until.saturating_sub(time::now());
        if left == 0 {
            return Err(Error::Database(std::io::Error::other(reason)));
        }
        // Ended early by a signal, it looks at the clock and waits again.
        let _ = poll::wait(&mut [poll::readable(database.wakes().as_raw_fd())], left);
    }
}

fn other_version(message: String) -> Failure {
    Failure { check: None, place: None, message }
}
