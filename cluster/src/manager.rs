//! The manager: one master, and the nodes that connect to its socket.
//!
//! One thread serves all; it waits for the next event and for none of them. A node departs when its
//! socket closes or its process ends, by the kernel's word; a child that inherits the socket does
//! not keep it in.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use crate::Master;
use crate::master::Unknown;
use attune_linux::event::Event;
use attune_linux::poll;
use attune_linux::process::{self, Process};
use attune_linux::socket::{Connection, Credentials, Listener, Received};
use attune_linux::time::{self, MILLISECOND, NEVER};
use attune_replica::messages::{Hello, NodeId};
use attune_simulator::interpreter::Failure;
use attune_simulator::scheduler::Time;

use attune_cluster_local::packets::{LONGEST, ToManager, ToNode};

/// Connections in all, and packets that one may send before the others have their turn.
const CONNECTIONS: usize = 4096;
const PACKETS: usize = 32;
/// How soon a packet is tried again that a socket had no room for.
const RESEND: time::Time = 5 * MILLISECOND;
/// How often a node hears something although nothing has changed, so that `age` tells a manager
/// that lives from one that hangs.
const HEARTBEAT: time::Time = 250 * MILLISECOND;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    Arrived {
        node: NodeId,
        family: String,
        process: u32,
    },
    /// Its process has ended, or has closed the socket.
    Departed {
        node: NodeId,
        process: u32,
    },
    Refused {
        process: u32,
        reason: String,
    },
    /// The node's own refusal to speak the protocol.
    Dropped {
        process: u32,
    },
}

struct Client {
    connection: Connection,
    peer: Credentials,
    /// None where the kernel cannot say: then the closed socket alone tells the end.
    process: Option<Process>,
    node: Option<NodeId>,
    /// The socket had no room.
    again: bool,
    gone: bool,
}

pub struct Manager {
    master: Master,
    listener: Listener,
    clients: Vec<Client>,
    /// The number of this run, which nodes tell a later one by.
    run: u64,
    happened: Vec<Happening>,
    buffer: Vec<u8>,
}

impl Manager {
    /// Listens at `path`. `AddrInUse`: another manager does.
    pub fn new(master: Master, path: &Path) -> io::Result<Manager> {
        process::raise_descriptor_limit();
        let listener = Listener::at(path)?;
        // 0 means none.
        let run = RandomState::new().hash_one(time::now()) | 1;
        let buffer = vec![0; LONGEST];
        Ok(Manager { master, listener, clients: Vec::new(), run, happened: Vec::new(), buffer })
    }

    pub fn master(&self) -> &Master {
        &self.master
    }

    /// Serves until `stop` is set, or until a handler of the master fails a check.
    pub fn serve(
        &mut self,
        stop: &Event,
        tell: &mut dyn FnMut(&Master, Happening),
    ) -> Result<(), Failure> {
        let mut next_beat = time::now() + HEARTBEAT;
        loop {
            let mut waits = vec![
                poll::readable(stop.as_fd().as_raw_fd()),
                poll::readable(self.listener.as_fd().as_raw_fd()),
            ];
            for client in &self.clients {
                waits.push(poll::readable(client.connection.as_fd().as_raw_fd()));
                // A negative descriptor is passed over.
                let process = client.process.as_ref().map_or(-1, |it| it.as_fd().as_raw_fd());
                waits.push(poll::readable(process));
            }
            let busy = self.clients.iter().any(|client| client.again);
            let alone = self.clients.is_empty();
            let beat = if alone { NEVER } else { next_beat.saturating_sub(time::now()) };
            if poll::wait(&mut waits, if busy { RESEND.min(beat) } else { beat }).is_err() {
                continue;
            }
            let beats = time::now() >= next_beat;
            if beats {
                next_beat = time::now() + HEARTBEAT;
                self.clients.iter_mut().for_each(|client| client.again = true);
            }
            let happened = |index: usize| waits[index].revents != 0;
            if happened(0) {
                return Ok(());
            }
            let present = self.clients.len();
            if happened(1) {
                self.accept();
            }
            for index in 0..present {
                if happened(2 + 2 * index) {
                    self.hear(index)?;
                }
                // What it said before its end counts.
                self.clients[index].gone |= happened(3 + 2 * index);
            }
            self.bury()?;
            self.spread();
            for happening in std::mem::take(&mut self.happened) {
                tell(&self.master, happening);
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
                let process = Process::peer(&connection).ok();
                let (node, again, gone) = (None, false, false);
                self.clients.push(Client { connection, peer, process, node, again, gone });
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
            let now = time::now() as Time;
            match message {
                Some(ToManager::Hello(hello, run)) => self.arrive(index, hello, run, now)?,
                Some(ToManager::Report(report)) => {
                    // A node speaks for itself.
                    let result = match self.clients[index].node {
                        Some(node) if node == report.node => self.master.receive(&report, now),
                        Some(_) => Err(Unknown::Nonsense),
                        None => Err(Unknown::Node),
                    };
                    match result {
                        Ok(()) => {}
                        Err(Unknown::Node) => self.send(index, &ToNode::Unknown),
                        Err(Unknown::Nonsense) => self.drop(index),
                    }
                }
                None => self.drop(index),
            }
            if self.clients[index].gone {
                return Ok(());
            }
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        index: usize,
        mut hello: Hello,
        run: u64,
        now: Time,
    ) -> Result<(), Failure> {
        let process = self.clients[index].peer.process;
        // Another run gave its numbers to others.
        hello.former = hello.former.filter(|_| run == self.run);
        // A former self can only be one that has gone, or one whose end was not seen yet.
        if let Some(former) = hello.former {
            let own = self.clients.iter().position(|client| client.node == Some(former));
            if let Some(own) = own {
                if self.clients[own].peer.process != process {
                    self.drop(index);
                    return Ok(());
                }
                self.clients[own].gone = true;
                self.bury_one(own)?;
            }
        }
        let known = self.clients[index].node;
        match self.master.arrive(&hello, now)? {
            Ok(welcome) => {
                let node = welcome.node;
                if known.is_some_and(|known| known != node) {
                    // One connection, one node.
                    self.master.depart(node, now)?;
                    self.drop(index);
                    return Ok(());
                }
                if known.is_none() {
                    self.clients[index].node = Some(node);
                    let family = hello.family;
                    self.happened.push(Happening::Arrived { node, family, process });
                }
                self.send(index, &ToNode::Welcome(welcome, self.run));
            }
            Err(refusal) => {
                let reason = refusal.to_string();
                self.send(index, &ToNode::Refused(reason.clone()));
                self.happened.push(Happening::Refused { process, reason });
            }
        }
        Ok(())
    }

    fn drop(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.gone = true;
        self.happened.push(Happening::Dropped { process: client.peer.process });
    }

    fn send(&mut self, index: usize, message: &ToNode) {
        let client = &mut self.clients[index];
        match client.connection.send(&message.bytes(), None) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => client.again = true,
            Err(_) => client.gone = true,
        }
    }

    /// Tells every node what is new to it.
    fn spread(&mut self) {
        for index in 0..self.clients.len() {
            let Some(node) = self.clients[index].node else { continue };
            let again = std::mem::take(&mut self.clients[index].again);
            if let Some(news) = self.master.news(node, again) {
                self.send(index, &ToNode::News(news));
            }
        }
    }

    /// Lets those depart that have gone.
    fn bury(&mut self) -> Result<(), Failure> {
        for index in 0..self.clients.len() {
            if self.clients[index].gone {
                self.bury_one(index)?;
            }
        }
        self.clients.retain(|client| !client.gone);
        Ok(())
    }

    fn bury_one(&mut self, index: usize) -> Result<(), Failure> {
        let process = self.clients[index].peer.process;
        if let Some(node) = self.clients[index].node.take() {
            self.master.depart(node, time::now() as Time)?;
            self.happened.push(Happening::Departed { node, process });
        }
        Ok(())
    }
}
