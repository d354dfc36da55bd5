//! A node's end of a cluster: its copy of what is shared, and the socket that keeps it fresh.
//!
//! No call waits. While the manager is away the copy gives what was heard last, writes gather and
//! merge, requests wait, and now and then the node looks whether a manager listens again.
//!
//! Invariant: what is open is said again to every manager that comes, and it counts once.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;

use attune_language::ir::Value;
use attune_linux::process;
use attune_linux::socket::{Connection as Socket, Received};
use attune_replica::Operation;
use attune_replica::messages::{Ask, News, Property, Shared};
use attune_replica::{Replica, Schema, Time};

use crate::packets::{LONGEST, ToManager, ToNode};

/// How long a node waits before it looks for the manager again, and for another manager after one
/// has refused it. Nanoseconds.
const RETRY: Time = 100_000_000;
const RETRY_REFUSED: Time = 5_000_000_000;
/// How long the manager may not know what a node has heard, which it then repeats with what is new.
/// Nanoseconds.
const CONFIRM: Time = 10_000_000;
/// How soon a packet is tried again that the socket had no room for. Nanoseconds.
const RESEND: Time = 5_000_000;

pub struct Connection {
    replica: Replica,
    path: PathBuf,
    socket: Option<Socket>,
    /// The run of the manager that knew the node last; 0: none did.
    run: u64,
    /// When to look for the manager again.
    retry_at: Time,
    /// The socket had no room; what it did not take is sent again at that time.
    resend_at: Option<Time>,
    /// The manager is to hear something, whatever it is.
    answers: bool,
    /// When to say what was heard, if nothing else is said before.
    confirm_at: Time,
    /// The last request that this manager was sent.
    asked: u64,
    /// The last refusal, until it was told.
    refused: Option<String>,
    told: Option<String>,
    buffer: Vec<u8>,
}

/// What came from the manager.
#[derive(Debug, Default, PartialEq)]
pub struct Heard {
    /// Handlers may read other values now.
    pub news: bool,
    /// Writes to the node's variables, and commands.
    pub orders: Vec<(Property, Operation)>,
    /// Answers to requests, by their numbers.
    pub answers: Vec<(u64, Value)>,
}

impl Connection {
    /// A node that the manager at `path` has not heard of yet.
    pub fn new(schema: Arc<Schema>, family: usize, path: PathBuf) -> Connection {
        Connection {
            replica: Replica::new(schema, family, key()),
            path,
            socket: None,
            run: 0,
            retry_at: Time::MIN,
            resend_at: None,
            answers: false,
            confirm_at: Time::MIN,
            asked: 0,
            refused: None,
            told: None,
            buffer: vec![0; LONGEST],
        }
    }

    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    pub fn replica_mut(&mut self) -> &mut Replica {
        &mut self.replica
    }

    /// The socket, which is readable when there is something to hear.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.socket.as_ref().map(|socket| socket.as_fd().as_raw_fd())
    }

    /// When to call [`Connection::exchange`] again although nothing has come.
    pub fn next(&self) -> Option<Time> {
        match self.socket {
            None => Some(self.retry_at),
            Some(_) => {
                let confirms = self.replica.has_news().then_some(self.confirm_at);
                self.resend_at.into_iter().chain(confirms).min()
            }
        }
    }

    /// Why the manager has refused the node, once for each reason.
    pub fn take_refusal(&mut self) -> Option<String> {
        let refused = self.refused.take()?;
        (self.told.as_ref() != Some(&refused)).then(|| self.told.insert(refused).clone())
    }

    /// Hears what has come, sends what there is to say, looks for a manager if there is none.
    pub fn exchange(&mut self, now: Time) -> Heard {
        let mut heard = Heard::default();
        self.connect_if_due(now);
        while let Some(socket) = &self.socket {
            match socket.receive(&mut self.buffer) {
                Ok(Received::Packet(length, _)) => match ToNode::read(&self.buffer[..length]) {
                    Some(message) => self.take(message, &mut heard, now),
                    None => self.lose(now + RETRY),
                },
                Ok(Received::Nothing) => break,
                Ok(Received::TooLong | Received::Ended) | Err(_) => self.lose(now + RETRY),
            }
        }
        self.say(now);
        heard
    }

    /// As [`Connection::exchange`] where it is known that nothing has come: the descriptor has not
    /// become readable since the last one.
    pub fn speak(&mut self, now: Time) -> Heard {
        self.connect_if_due(now);
        self.say(now);
        Heard::default()
    }

    /// Asks the owner of a shared variable, now or as soon as there is a manager: see
    /// [`Replica::ask`]. The answer is among those of [`Connection::exchange`].
    pub fn ask(&mut self, variable: Shared, writes: Vec<(Shared, Operation)>, now: Time) -> u64 {
        let number = self.replica.ask(variable, writes);
        self.say(now);
        number
    }

    /// The node departs, and comes again with a later [`Connection::exchange`]. What it has
    /// written counts once.
    pub fn depart(&mut self, now: Time) {
        self.lose(now.saturating_add(RETRY));
    }

    fn connect_if_due(&mut self, now: Time) {
        // A clock that has jumped back must not keep the node away.
        self.retry_at = self.retry_at.min(now.saturating_add(RETRY_REFUSED));
        self.confirm_at = self.confirm_at.min(now.saturating_add(CONFIRM));
        if self.socket.is_none() && now >= self.retry_at {
            self.connect(now);
        }
    }

    fn connect(&mut self, now: Time) {
        self.retry_at = now.saturating_add(RETRY);
        let Ok(socket) = Socket::at_once(&self.path) else { return };
        if self.replica.node().is_some() {
            self.replica.forgotten(key());
        }
        self.socket = Some(socket);
        self.greet(now);
    }

    fn greet(&mut self, now: Time) {
        if let Some(hello) = self.replica.hello() {
            self.send(&ToManager::Hello(hello, self.run), now);
        }
    }

    fn take(&mut self, message: ToNode, heard: &mut Heard, now: Time) {
        match message {
            ToNode::Welcome(welcome, run) => {
                // The master knows how long its store is, and so does the text that both run.
                if welcome.values.len() != self.replica.schema().initial_store().len() {
                    return self.lose(now + RETRY_REFUSED);
                }
                self.run = run;
                self.told = None;
                self.asked = 0;
                self.replica.welcome(&welcome, now);
                heard.news = true;
            }
            ToNode::News(news) => {
                // So that the manager hears of a node that has nothing to say, too.
                self.answers |= news.cells.is_empty();
                self.take_news(&news, heard, now);
            }
            ToNode::Answers(news, answers) => {
                if let Some(news) = news {
                    self.take_news(&news, heard, now);
                }
                for answer in answers {
                    let value = self.replica.answer(&answer);
                    heard.answers.extend(value.map(|value| (answer.number, value)));
                }
            }
            // It may answer several packets so: the node comes again once.
            ToNode::Unknown if self.replica.node().is_none() => {}
            ToNode::Unknown => {
                self.replica.forgotten(key());
                self.greet(now);
            }
            ToNode::Refused(why) => {
                self.refused = Some(why);
                self.lose(now + RETRY_REFUSED);
            }
        }
    }

    fn take_news(&mut self, news: &News, heard: &mut Heard, now: Time) {
        heard.orders.extend(self.replica.receive(news, now));
        heard.news = true;
    }

    fn say(&mut self, now: Time) {
        if self.socket.is_none() {
            return;
        }
        let resends = self.resend_at.take_if(|at| *at <= now).is_some();
        if resends {
            self.greet(now);
        }
        let again = std::mem::take(&mut self.answers) || resends;
        if (again || self.replica.has_writes() || now >= self.confirm_at)
            && let Some(report) = self.replica.report(again)
        {
            self.confirm_at = now.saturating_add(CONFIRM);
            self.send(&ToManager::Report(report), now);
        }
        let asks: Vec<Ask> = self.replica.asks(self.asked + 1).collect();
        for ask in asks {
            let number = ask.number;
            if !self.send(&ToManager::Ask(ask), now) {
                break;
            }
            self.asked = number;
        }
    }

    /// False: the socket has no room, or is gone.
    fn send(&mut self, message: &ToManager, now: Time) -> bool {
        let Some(socket) = &self.socket else { return false };
        match socket.send(&message.bytes(), None) {
            Ok(()) => return true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.resend_at = Some(now.saturating_add(RESEND));
            }
            // The manager is gone. What it said last is heard before its end: perhaps a refusal.
            Err(_) => {}
        }
        false
    }

    fn lose(&mut self, retry_at: Time) {
        self.socket = None;
        self.resend_at = None;
        self.retry_at = retry_at;
    }
}

/// A number that no other node has: processes that were forked from one have different ones, too.
fn key() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u32(process::this_thread());
    hasher.write_u64(attune_linux::time::now());
    hasher.finish()
}
