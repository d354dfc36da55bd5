//! Clients that come and go: which of them finds a place, and which loses its own.

use attune_linux::namespace;
use attune_linux::process::Process;
use attune_linux::time::{self, MILLISECOND, SECOND, Time};
use attune_values::socket::{Connection, Credentials};

use super::{Client, LOOK_FOR_IDLE, Service};
use crate::peer::Peer;
use crate::ready::Ready;
use crate::store::Store;

/// Connections that have no place and still wait to be told so. The first of more is closed at
/// once.
const TURNED_AWAY: usize = 32;
/// A connection that asks nothing and supplies nothing for so long gives its place up.
const IDLE: Time = 60 * SECOND;
/// Connections that are accepted in one round.
const COMERS: usize = 8;
/// How long none is accepted at the place for all after a round with one of a user who has used up
/// its part: only an accepted connection says whose it is.
const REST: Time = 2 * MILLISECOND;
/// The same when no descriptor is left: others have to end first.
const LONG_REST: Time = 20 * MILLISECOND;

impl<S: Store> Service<S> {
    pub(super) fn drop_idle(&mut self, now: Time) {
        if now < self.idle_at {
            return;
        }
        self.idle_at = now + LOOK_FOR_IDLE;
        let is_idle = |number: u64, client: &Client| {
            let waits = || self.lists.iter().any(|list| list.client == number);
            let supplies = client.greeted || client.table.is_some();
            client.asked + IDLE < now && !supplies && !waits()
        };
        let idle = self.clients.iter().filter(|(number, client)| is_idle(**number, client));
        for number in idle.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.leave(number);
        }
    }

    /// Those that have come to the place that is for all. Their users have doors from now on.
    pub(super) fn accept(&mut self) {
        let mut flooded = false;
        for _ in 0..COMERS {
            match self.doors.common().accept() {
                Ok(Some(connection)) => {
                    let Some(peer) = self.seat(connection) else { continue };
                    flooded |= self.served_from(peer.user) > time::now();
                    if self.doors.open(peer.user) {
                        self.watch(Ready::Door(peer.user));
                    }
                }
                Ok(None) => break,
                Err(_) => return self.put_off(Ready::Listener, time::now() + LONG_REST),
            }
        }
        if flooded {
            self.put_off(Ready::Listener, time::now() + REST);
        }
    }

    /// Those that have come to the user's door, as long as the user's part lasts.
    pub(super) fn accept_at_door(&mut self, user: u32) {
        for _ in 0..COMERS {
            let now = time::now();
            let until = self.served_from(user);
            if until > now {
                return self.put_off(Ready::Door(user), until);
            }
            match self.doors.of(user).map(|door| door.accept()) {
                Some(Ok(Some(connection))) => {
                    self.seat(connection);
                }
                Some(Ok(None)) | None => return,
                Some(Err(_)) => return self.put_off(Ready::Door(user), now + LONG_REST),
            }
        }
    }

    /// A client from now on. None: it has ended already.
    fn seat(&mut self, connection: Connection) -> Option<Peer> {
        let Credentials { process, user, .. } = connection.peer().ok()?;
        let preferred = self.registry.is_preferred(user);
        let foreign = namespace::is_foreign(process);
        let peer = Peer { process: process as i32, user, preferred, foreign };
        self.comers += 1;
        let number = self.comers;
        let (process, turned_away) = match self.places.take(user, preferred) {
            Ok(()) => (Process::peer(&connection).ok(), None),
            Err(why) => {
                self.turned_away.push_back(number);
                (None, Some(why))
            }
        };
        let seated = turned_away.is_none();
        let (greeted, table, asked) = (false, None, time::now());
        let client =
            Client { connection, peer, process, greeted, table, seated, turned_away, asked };
        self.clients.insert(number, client);
        self.watch(Ready::Client(number));
        if self.turned_away.len() > TURNED_AWAY
            && let Some(first) = self.turned_away.pop_front()
        {
            self.leave(first);
        }
        self.charge(peer.user);
        Some(peer)
    }

    /// The process has ended, and its connection with it, even if another process holds that.
    pub(super) fn end(&mut self, process: i32) {
        if self.registry.ended(process)
            && let Some(client) = self.supplying.get(&process).copied()
        {
            self.leave(client);
        }
        self.changed.get_or_insert_with(time::now);
    }

    /// The client's connection is over.
    pub(super) fn leave(&mut self, number: u64) {
        let rank = self.rank(Ready::Client(number));
        let Some(client) = self.clients.remove(&number) else { return };
        if let Some(line) = self.lines.get_mut(&client.peer.user) {
            line.remove(&(rank, number));
        }
        if client.seated {
            self.places.give_back(client.peer.user);
        }
        if self.supplying.get(&client.peer.process) == Some(&number) {
            self.supplying.remove(&client.peer.process);
            self.registry.farewell(client.peer.process);
            self.changed.get_or_insert_with(time::now);
        }
        if let Some(table) = client.table {
            self.registry.close_table(table);
        }
    }
}
