//! Whose turn it is: a user who has used up its part of this thread's time waits, and so do all its
//! clients, in one line.
//!
//! Invariant: what such a user's clients cost while they wait does not grow with their number: each
//! enters the line once, and one of them is served when the user's turn comes.

use std::os::fd::AsRawFd;

use attune_linux::epoll::Readiness;
use attune_linux::time::{self, Time};

use super::{Due, Service};
use crate::ready::Ready;
use crate::store::Store;

impl<S: Store> Service<S> {
    /// What has come is dealt with in this order: what clients ask that have a page, then what
    /// others ask, then those who come.
    pub(super) fn rank(&self, of: Ready) -> u8 {
        match of {
            Ready::Client(number) => {
                u8::from(!self.clients.get(&number).is_some_and(|client| client.greeted))
            }
            Ready::Listener | Ready::Door(_) => 2,
            Ready::Stop | Ready::Process(_) => 0,
        }
    }

    /// Something has come from the client.
    pub(super) fn hear(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let (user, now) = (client.peer.user, time::now());
        client.asked = now;
        let from = self.served_from(user);
        if from <= now && !self.lines.contains_key(&user) {
            return self.take_turn(number);
        }
        self.watch_no_more(Ready::Client(number));
        let place = (self.rank(Ready::Client(number)), number);
        if !self.lines.contains_key(&user) {
            self.due.insert((from, Due::Turn(user)));
        }
        self.lines.entry(user).or_default().insert(place);
    }

    /// It is the user's turn: the first in its line is served.
    pub(super) fn turn_of(&mut self, user: u32) {
        let from = self.served_from(user);
        if from <= time::now()
            && let Some((_, number)) = self.lines.get_mut(&user).and_then(|line| line.pop_first())
        {
            self.watch(Ready::Client(number));
            self.take_turn(number);
        }
        match self.lines.get(&user) {
            Some(line) if line.is_empty() => _ = self.lines.remove(&user),
            Some(_) => _ = self.due.insert((self.served_from(user), Due::Turn(user))),
            None => {}
        }
    }

    /// Serves one request of the client, if it is still there for the answer. What it asked before
    /// it gave up would take its time from the user's other clients, until those give up too.
    fn take_turn(&mut self, number: u64) {
        let Some(client) = self.clients.get(&number) else { return };
        let peer = client.peer;
        if client.has_gone() || !self.serve(number) {
            self.leave(number);
        }
        self.notice(peer.process);
        self.charge(peer.user);
    }

    /// When a request of the user is to be served. It may be in the past.
    pub(super) fn served_from(&self, user: u32) -> Time {
        if self.registry.is_preferred(user) { 0 } else { self.meter.served_from(user) }
    }

    /// Charges the user with what this thread has computed since it charged a user last.
    pub(super) fn charge(&mut self, user: u32) {
        let before = std::mem::replace(&mut self.computed, time::thread_cpu_time());
        if !self.registry.is_preferred(user) {
            self.meter.charge(user, self.computed - before, time::now());
        }
    }

    pub(super) fn watch(&self, socket: Ready) {
        if let Some(fd) = self.socket(socket) {
            // A client that cannot be watched is found idle.
            let _ = self.epoll.add(fd.as_raw_fd(), socket.key(), Readiness::IN);
        }
    }

    pub(super) fn watch_no_more(&self, socket: Ready) {
        if let Some(fd) = self.socket(socket) {
            let _ = self.epoll.remove(fd.as_raw_fd());
        }
    }

    /// The socket is not watched until then.
    pub(super) fn put_off(&mut self, socket: Ready, until: Time) {
        self.watch_no_more(socket);
        self.due.insert((until, Due::Watch(socket)));
    }

    /// Does what is due by now.
    pub(super) fn catch_up(&mut self, now: Time) {
        while let Some(&(at, due)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            match due {
                Due::Turn(user) => self.turn_of(user),
                Due::Watch(socket) => self.watch(socket),
            }
        }
    }
}
