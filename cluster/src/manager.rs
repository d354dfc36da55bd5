//! The manager: one master, and the nodes that connect to its socket.
//!
//! One thread serves all; it waits for the next event and for none of them. A node departs when its
//! socket closes or its process ends, by the kernel's word; a child that inherits the socket does
//! not keep it in.
//!
//! A manager that is killed is followed by one of the same name and texts, which goes on as the
//! same master: see [`kept`]. Managers of several machines share one master: see [`common`].
//! docs/internals/cluster.md says why so.
//!
//! Invariant: a node is told nothing that the master's kept state does not know.

mod absent;
mod client;
mod common;
mod happening;
mod kept;
mod nodes;
mod start;
mod state;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;

use attune_cluster_local::packets::writer::Writer;
use attune_cluster_local::packets::{LONGEST, ToManager, ToNode};
use attune_linux::event::Event;
use attune_linux::poll;
use attune_linux::process;
use attune_linux::socket::{Listener, Received};
use attune_linux::time::{self, MILLISECOND, NEVER};
use attune_replica::Schema;
use attune_replica::messages::NodeId;
use attune_simulator::interpreter::Failure;
use attune_simulator::scheduler::Time;

use crate::Master;
use crate::master::MasterError;
use absent::{Identity, Processes};
use client::Client;
use common::Common;
pub use common::Join;
pub use happening::Happening;
use kept::Kept;
pub use start::{Error, Texts};
use start::{kept_beside, unless_taken};
use state::Former;

/// Connections in all, and packets that one may send before the others have their turn.
const CONNECTIONS: usize = 4096;
const PACKETS: usize = 32;
/// How soon a packet is tried again that a socket had no room for, and a state that the disk had no
/// room for.
const RESEND: time::Time = 5 * MILLISECOND;
const KEEP_AGAIN: time::Time = 100 * MILLISECOND;
/// A node hears of what others do at most once in that time, so that many nodes do not wake each
/// other for each of their writes. What it is answered comes at once.
const PACE: time::Time = MILLISECOND;
/// How often a node hears something although nothing has changed, so that `age` tells a manager
/// that lives from one that hangs.
const HEARTBEAT: time::Time = 250 * MILLISECOND;

pub struct Manager {
    master: Master,
    listener: Listener,
    clients: Vec<Client>,
    processes: Processes,
    kept: Kept,
    /// What of the master is kept: [`Master::changes`]; None: nothing.
    kept_changes: Option<u64>,
    /// The last attempt to keep it failed, or has not succeeded yet.
    stuck: bool,
    /// Where the master's state is shared with other machines.
    common: Option<Common>,
    /// What the master's time is ahead of this machine's.
    time_offset: Time,
    /// Some node is to hear news a little later.
    paced: bool,
    /// The number of this run, which nodes tell one by that knows nothing of them.
    run: u64,
    happened: Vec<Happening>,
    /// What has happened and is kept: it is told whatever comes next.
    settled: Vec<Happening>,
    buffer: Vec<u8>,
}

impl Manager {
    /// Listens at `path`, and goes on as the manager that was killed there, if it had the same
    /// texts and a node of it lives.
    pub fn new(texts: &Texts<'_>, schema: Arc<Schema>, path: &Path) -> Result<Manager, Error> {
        let (kept, listener) = take_place(path)?;
        let former = kept.read().map(|bytes| state::read(&bytes, texts, &schema)).transpose()?;
        let mut processes = Processes::default();
        let mut lost = Vec::new();
        for &(node, process) in former.iter().flatten().flat_map(|former| &former.nodes) {
            match process.open() {
                Some(open) => processes.wait_for(node, process, open),
                None => lost.push((node, process.number)),
            }
        }
        let former = former.flatten().filter(|_| !processes.awaited.is_empty());
        let (run, master) = match former {
            Some(Former { run, master, .. }) => (run, master),
            None => {
                lost.clear();
                let Texts { cluster, sources, seed } = *texts;
                let master = Master::new(cluster, schema, sources, seed, time::now() as Time)?;
                (random(), master)
            }
        };
        let mut manager = Manager::with(master, run, listener, kept);
        manager.processes = processes;
        manager.depart_all(lost).map_err(MasterError::from)?;
        Ok(manager)
    }

    fn with(master: Master, run: u64, listener: Listener, kept: Kept) -> Manager {
        Manager {
            master,
            listener,
            clients: Vec::new(),
            processes: Processes::default(),
            kept,
            kept_changes: None,
            stuck: false,
            common: None,
            time_offset: 0,
            paced: false,
            run,
            happened: Vec::new(),
            settled: Vec::new(),
            buffer: vec![0; LONGEST],
        }
    }

    /// The master's time.
    fn now(&self) -> Time {
        time::now() as Time + self.time_offset
    }

    pub fn master(&self) -> &Master {
        &self.master
    }

    /// Nodes of a manager that was killed, which this one waits for.
    pub fn awaited(&self) -> usize {
        self.processes.awaited.len()
    }

    /// Serves until `stop` is set, or until a handler of the master fails a check. Then the cluster
    /// is over: a later manager begins anew.
    pub fn serve(
        &mut self,
        stop: &Event,
        tell: &mut dyn FnMut(&Master, Happening),
    ) -> Result<(), Failure> {
        let result = self.serve_all(stop, tell).and_then(|()| self.leave());
        self.kept.remove();
        result
    }

    fn serve_all(
        &mut self,
        stop: &Event,
        tell: &mut dyn FnMut(&Master, Happening),
    ) -> Result<(), Failure> {
        let mut next_beat = time::now();
        loop {
            let happened = self.wait(stop, next_beat);
            if happened.stop {
                return Ok(());
            }
            if happened.database {
                self.hear_database()?;
            }
            if time::now() >= next_beat {
                next_beat = time::now() + HEARTBEAT;
                self.beat()?;
            }
            if happened.listener {
                self.accept();
            }
            for index in happened.heard {
                self.hear(index)?;
            }
            // What a node said before its end counts.
            for index in happened.ended {
                self.clients[index].gone = true;
            }
            self.bury()?;
            if self.common.is_some() {
                self.share();
            } else {
                self.spread();
                self.keep();
                if !self.stuck {
                    self.clients.iter_mut().for_each(Client::send);
                }
            }
            let may_be_told = |it: &mut Happening| !self.stuck || it.is_of_managers();
            let mut told = std::mem::take(&mut self.settled);
            told.extend(self.happened.extract_if(.., may_be_told));
            for happening in told {
                tell(&self.master, happening);
            }
        }
    }

    /// Waits for something to happen, and says what has.
    fn wait(&self, stop: &Event, next_beat: time::Time) -> Happened {
        let mut waits = vec![
            poll::readable(stop.as_fd().as_raw_fd()),
            poll::readable(self.listener.as_fd().as_raw_fd()),
            poll::readable(self.database_descriptor()),
        ];
        let first = waits.len();
        for client in &self.clients {
            // A negative descriptor is passed over.
            let listens = !self.stuck && client.hears() && !client.gone;
            let socket = client.connection.as_fd().as_raw_fd();
            waits.push(poll::readable(if listens { socket } else { -1 }));
            let process = client.process.as_ref().filter(|_| !client.gone);
            let process = process.map_or(-1, |it| it.as_fd().as_raw_fd());
            waits.push(poll::readable(process));
        }
        let alone = self.clients.is_empty() && self.processes.awaited.is_empty();
        let mut wait = if alone { NEVER } else { next_beat.saturating_sub(time::now()) };
        if self.paced && !self.stuck {
            wait = wait.min(PACE);
        }
        if self.stuck {
            wait = wait.min(KEEP_AGAIN);
        } else if self.clients.iter().any(|client| client.again || !client.hears()) {
            wait = wait.min(RESEND);
        }
        if let Some(next_put) = self.next_put() {
            wait = wait.min(next_put.saturating_sub(time::now()));
        }
        if poll::wait(&mut waits, wait).is_err() {
            return Happened::default();
        }
        let happened = |index: usize| waits[index].revents != 0;
        let clients = 0..self.clients.len();
        Happened {
            stop: happened(0),
            listener: happened(1),
            database: happened(2),
            heard: clients.clone().filter(|index| happened(first + 2 * index)).collect(),
            ended: clients.filter(|index| happened(first + 1 + 2 * index)).collect(),
        }
    }

    /// What is done now and then.
    fn beat(&mut self) -> Result<(), Failure> {
        if self.common.is_none() {
            self.clients.iter_mut().for_each(|client| client.again = true);
        }
        let given_up = self.processes.given_up();
        self.depart_all(given_up)?;
        for node in self.processes.ended() {
            self.master.forget(node);
        }
        Ok(())
    }

    fn depart_all(&mut self, nodes: Vec<(NodeId, u32)>) -> Result<(), Failure> {
        for (node, process) in nodes {
            self.master.depart(node, self.now())?;
            self.happened.push(Happening::Departed { node, process });
        }
        Ok(())
    }

    /// Keeps the master's state, if it has changed.
    fn keep(&mut self) {
        let changes = self.master.changes();
        if self.kept_changes == Some(changes) {
            return;
        }
        let mut nodes: Vec<(NodeId, Identity)> = self
            .clients
            .iter()
            .filter_map(|client| Some((client.node?, client.identity?)))
            .collect();
        let awaited = self.processes.awaited.iter();
        nodes.extend(awaited.map(|absent| (absent.node, absent.identity)));
        let mut to = Writer::default();
        state::write(&mut to, self.run, &self.master, &nodes);
        match self.kept.write(&to.bytes) {
            Ok(()) => {
                self.kept_changes = Some(changes);
                if std::mem::take(&mut self.stuck) {
                    self.happened.push(Happening::KeptAgain);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.stuck, true) {
                    self.happened.push(Happening::NotKept(error.to_string()));
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok(Some(connection)) = self.listener.accept() {
            let Ok(peer) = connection.peer() else { continue };
            let own = process::effective_user();
            if peer.user != own && peer.user != 0 {
                let reason = format!("the cluster belongs to user {own}, and the node to another");
                // It is refused either way.
                let _ = connection.send(&ToNode::Refused(reason.clone()).bytes(), None);
                self.happened.push(Happening::Refused { process: peer.process, reason });
            } else if self.clients.len() < CONNECTIONS {
                self.clients.push(Client::new(connection, peer));
            }
        }
    }

    fn hear(&mut self, index: usize) -> Result<(), Failure> {
        for _ in 0..PACKETS {
            let received = self.clients[index].connection.receive(&mut self.buffer);
            let message = match received {
                Ok(Received::Packet(length, _)) => ToManager::read(&self.buffer[..length]),
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::TooLong) => None,
                Ok(Received::Ended) | Err(_) => {
                    self.clients[index].gone = true;
                    return Ok(());
                }
            };
            self.take(index, message)?;
            if self.clients[index].gone {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// What has happened, by the places of clients.
#[derive(Default)]
struct Happened {
    stop: bool,
    listener: bool,
    database: bool,
    heard: Vec<usize>,
    ended: Vec<usize>,
}

/// Makes the place at which one manager listens; nobody else has it then.
fn take_place(path: &Path) -> Result<(Kept, Listener), Error> {
    process::raise_descriptor_limit(0);
    let beside = kept_beside(path);
    if let Some(folder) = path.parent() {
        let unable = |error| Error::Place("make the folder", folder.to_owned(), error);
        std::fs::create_dir_all(folder).map_err(unable)?;
    }
    let kept = Kept::at(&beside)
        .map_err(|error| unless_taken("keep the master's state in", &beside, error))?;
    let listener = Listener::at(path).map_err(|error| unless_taken("listen at", path, error))?;
    Ok((kept, listener))
}

/// A number that no other manager chooses; 0 means none.
fn random() -> u64 {
    RandomState::new().hash_one(time::now()) | 1
}
