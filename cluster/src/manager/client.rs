//! A connection of the manager, and what it is still to be told.

use std::collections::VecDeque;
use std::io::ErrorKind;

use attune_cluster_local::packets::{ToManager, ToNode};
use attune_linux::process::Process;
use attune_linux::socket::{Connection, Credentials};
use attune_linux::time::Time;
use attune_replica::messages::{Answer, News, NodeId};

use super::absent::Identity;

pub struct Client {
    pub connection: Connection,
    pub peer: Credentials,
    /// None where the kernel cannot say: then the closed socket alone tells the end.
    pub process: Option<Process>,
    pub node: Option<NodeId>,
    /// How another manager finds the node's process again.
    pub identity: Option<Identity>,
    /// It is to hear news although there are none: a heartbeat, or the socket had no room.
    pub again: bool,
    pub gone: bool,
    /// What it has said that is not kept yet, and which node it was before: where managers share
    /// the master's state, another one may be sooner.
    pub unkept: Vec<ToManager>,
    pub kept_node: Option<NodeId>,
    /// What it is to be told once the master's state is kept.
    untold: VecDeque<ToNode>,
    /// Its socket had no room for all of that.
    full: bool,
    /// It hears no news before.
    next_news: Time,
}

impl Client {
    pub fn new(connection: Connection, peer: Credentials) -> Client {
        let process = Process::peer(&connection).ok();
        Client {
            connection,
            peer,
            process,
            node: None,
            identity: None,
            again: false,
            gone: false,
            unkept: Vec::new(),
            kept_node: None,
            untold: VecDeque::new(),
            full: false,
            next_news: 0,
        }
    }

    pub fn is_node(&mut self, node: NodeId) {
        self.node = Some(node);
        self.identity = Some(Identity::of(self.peer.process));
    }

    pub fn tell(&mut self, message: ToNode) {
        self.untold.push_back(message);
    }

    pub fn answer(&mut self, answer: Answer) {
        match self.untold.back_mut() {
            Some(ToNode::Answers(None, answers)) => answers.push(answer),
            _ => self.untold.push_back(ToNode::Answers(None, vec![answer])),
        }
    }

    /// News go along with answers, so that a node which has an answer has seen what it counts.
    pub fn tell_news(&mut self, news: News, next: Time) {
        self.next_news = next;
        match self.untold.back_mut() {
            Some(ToNode::Answers(along, _)) => *along = Some(news),
            _ => self.untold.push_back(ToNode::News(news)),
        }
    }

    /// What it has said since the state was kept has had no effect.
    pub fn take_back(&mut self) {
        self.node = self.kept_node;
        self.untold.clear();
        self.full = false;
    }

    /// Whether it may be told news: there is room, and nothing that must come first.
    pub fn takes_news(&self) -> bool {
        let along = |message: &ToNode| matches!(message, ToNode::Answers(None, _));
        !self.full && self.untold.iter().all(along)
    }

    /// It waits for the word that its batch has been counted, before it sends the next one.
    pub fn hurry(&mut self) {
        self.next_news = 0;
    }

    /// Whether its time for news has come, or it is told something anyway.
    pub fn may_hear(&self, now: Time) -> bool {
        now >= self.next_news || !self.untold.is_empty()
    }

    /// Whether the manager may listen to it: one that does not hear does not speak either.
    pub fn hears(&self) -> bool {
        !self.full
    }

    /// Sends what the socket has room for. News that it has no room for are dropped: later ones say
    /// more.
    pub fn send(&mut self) {
        self.full = false;
        while let Some(message) = self.untold.pop_front() {
            match self.connection.send(&message.bytes(), None) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.again = true;
                    if !matches!(message, ToNode::News(_)) {
                        self.untold.push_front(message);
                        self.full = true;
                        return;
                    }
                }
                Err(_) => self.gone = true,
            }
        }
    }
}
