//! The node as the cluster's manager sees it: it asks the device again and again, and is its mouth.
//!
//! A question brings the device what its handlers should read, the answer what they have written
//! ([`attune_replica::Exchange`]); each has a number within a session, and a question is repeated
//! until it is answered. A device says hello after a reset: its node departs, and arrives anew.
//!
//! Invariant: an answer is taken once.

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;

use attune_cluster_local::connection::Connection;
use attune_replica::{Change, Exchange, Replica, Schema, Time};

use crate::frame::{self, Frame, Reader};

/// How often a device is asked that has nothing to tell. Nanoseconds, as all below.
const LOOK: Time = 250_000_000;
/// How soon a question is said again that was not answered.
const REPEAT: Time = 100_000_000;
/// Two exchanges are no closer than that.
const SHORTEST: Time = 1_000_000;
/// A device that says nothing for so long has departed.
const SILENT: Time = 3_000_000_000;

/// What becomes of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is there, and what it was built from is right.
    Heard,
    /// It was built from other texts, or for another family: what it says of itself.
    Foreign(String),
    /// It says nothing any more.
    Silent,
    /// The manager does not take it: why.
    Refused(String),
    /// The manager has taken it into its cluster.
    Joined,
}

pub struct Gateway {
    connection: Connection,
    exchange: Exchange,
    reader: Reader,
    /// What the right firmware says of itself.
    text: String,
    /// Whether the device has said so.
    known: bool,
    session: u32,
    /// The last question, and whether it waits for its answer.
    number: u32,
    question: Option<Frame>,
    /// Whether the session had an answer: the device's own numbers are known.
    answered: bool,
    asked_at: Time,
    heard_at: Time,
    /// There is something to exchange.
    due: bool,
    said: Option<Told>,
}

impl Gateway {
    /// `session` is any number: another one for each gateway.
    pub fn new(schema: Arc<Schema>, family: usize, path: PathBuf, session: u32) -> Gateway {
        let described = &schema.families[family];
        Gateway {
            exchange: Exchange::new(described),
            text: schema.text(family),
            connection: Connection::new(schema.clone(), family, path),
            reader: Reader::default(),
            known: false,
            session: session.max(1),
            number: 0,
            question: None,
            answered: false,
            asked_at: Time::MIN,
            heard_at: Time::MIN,
            due: false,
            said: None,
        }
    }

    pub fn replica(&self) -> &Replica {
        self.connection.replica()
    }

    /// The manager's socket.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.connection.descriptor()
    }

    /// When to call [`Gateway::turn`] again although nothing has come.
    pub fn next(&self) -> Time {
        let wait = match (&self.question, self.known) {
            (Some(_), _) => REPEAT,
            (None, true) if self.due => SHORTEST,
            (None, _) => LOOK,
        };
        let own = self.asked_at.saturating_add(wait);
        self.connection.next().filter(|_| self.speaks()).map_or(own, |other| own.min(other))
    }

    /// Takes what has come from the device, and returns what to say to it.
    pub fn turn(&mut self, came: &[u8], now: Time, told: &mut dyn FnMut(Told)) -> Vec<u8> {
        for frame in self.reader.read(came) {
            self.hear(frame, now, told);
        }
        if self.speaks() && now.saturating_sub(self.heard_at) > SILENT {
            self.connection.depart(now);
            self.known = false;
            self.tell(Told::Silent, told);
        }
        if self.speaks() {
            let heard = self.connection.exchange(now);
            for (property, operation) in heard.orders {
                self.exchange.obey(property, operation);
            }
            self.due |= heard.news;
            if let Some(why) = self.connection.take_refusal() {
                self.tell(Told::Refused(why), told);
            } else if self.connection.replica().node().is_some() {
                self.tell(Told::Joined, told);
            }
        }
        self.say(now)
    }

    /// Whether the device takes part: what it is now is known.
    fn speaks(&self) -> bool {
        self.known && self.answered
    }

    fn tell(&mut self, news: Told, told: &mut dyn FnMut(Told)) {
        if self.said.as_ref() != Some(&news) {
            self.said = Some(news.clone());
            told(news);
        }
    }

    fn hear(&mut self, frame: Frame, now: Time, told: &mut dyn FnMut(Told)) {
        match frame.kind {
            frame::HELLO if frame.body == self.text.as_bytes() => {
                self.begin(now);
                self.tell(Told::Heard, told);
            }
            frame::HELLO => {
                self.known = false;
                let text = String::from_utf8_lossy(&frame.body).into_owned();
                self.tell(Told::Foreign(text), told);
            }
            frame::ANSWER => self.take(&frame, now),
            frame::NEWS if frame.session == self.session => {
                self.heard_at = now;
                self.due = true;
            }
            _ => {}
        }
    }

    /// A device that begins.
    fn begin(&mut self, now: Time) {
        if self.answered {
            self.connection.depart(now);
            let replica = self.connection.replica();
            self.exchange = Exchange::new(&replica.schema().families[replica.family()]);
        }
        self.session = self.session.wrapping_add(1).max(1);
        self.number = 0;
        self.question = None;
        (self.known, self.answered, self.due) = (true, false, true);
        self.heard_at = now;
        self.asked_at = Time::MIN;
    }

    fn take(&mut self, answer: &Frame, now: Time) {
        let asked = (self.session, self.number);
        if (answer.session, answer.number) != asked || self.question.is_none() {
            return;
        }
        let numbers = self.exchange.numbers();
        let shared = self.exchange.shared();
        let words: Vec<i64> = words(&answer.body).collect();
        if words.len() != 2 * shared + (numbers.len() - shared) {
            return;
        }
        let (changes, own) = words.split_at(2 * shared);
        let changes = changes.chunks(2).map(|it| Change { scale: it[0], shift: it[1] });
        let changes: Vec<Change> = changes.collect();
        self.question = None;
        (self.known, self.answered, self.heard_at) = (true, true, now);
        self.due |= self.exchange.finish(&changes, own, self.connection.replica_mut());
    }

    fn say(&mut self, now: Time) -> Vec<u8> {
        if !self.known && self.question.is_none() {
            if now.saturating_sub(self.asked_at) < LOOK {
                return Vec::new();
            }
            self.asked_at = now;
            return Frame { kind: frame::WHO, session: 0, number: 0, body: Vec::new() }.bytes();
        }
        let waited = now.saturating_sub(self.asked_at);
        match &self.question {
            Some(_) if waited < REPEAT => return Vec::new(),
            Some(_) => {}
            None if waited < if self.due { SHORTEST } else { LOOK } => return Vec::new(),
            None => self.ask(),
        }
        self.asked_at = now;
        let age = self.connection.replica().age(now);
        self.question.as_mut().map_or_else(Vec::new, |question| {
            question.body[..8].copy_from_slice(&age.to_le_bytes());
            question.bytes()
        })
    }

    fn ask(&mut self) {
        self.due = false;
        self.number = self.number.wrapping_add(1);
        let shared = self.exchange.shared();
        let numbers = self.exchange.begin(self.connection.replica());
        let (values, own) = numbers.split_at(shared);
        let values = values.iter().map(|it| it.number);
        let orders = own.iter().flat_map(|it| [it.change.scale, it.change.shift]);
        // The age is filled in when it is said.
        let words = std::iter::once(0).chain(values).chain(orders);
        let body = words.flat_map(i64::to_le_bytes).collect();
        let (session, number) = (self.session, self.number);
        self.question = Some(Frame { kind: frame::ASK, session, number, body });
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = i64> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word))
}
