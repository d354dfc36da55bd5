//! The socket: connections in, requests to the registry, answers out. One thread serves all clients
//! and never blocks on one of them.
//!
//! Invariant: what one round costs does not depend on how many clients and processes there are, but
//! for the rare ones that look for idle clients or write down what the next engine needs. A client
//! is watched, or its user has used up its part and the client is put off, or its list of hints is
//! at work.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attune_linux::epoll::{Epoll, Readiness};
use attune_linux::places::Places;
use attune_linux::process::Process;
use attune_linux::time::{self, MILLISECOND, NEVER, SECOND, Time};
use attune_linux::{namespace, poll};
use attune_values::enclosed;
use attune_values::socket::{Connection, Credentials, Listener, Received};
use attune_values::wire::{self, Hint, Refusal, Reply, Request, VERSION};

use crate::kept::Known;
use crate::meter::Meter;
use crate::peer::Peer;
use crate::ready::Ready;
use crate::refused::{Answer, Refused};
use crate::registry::Registry;
use crate::store::Store;

/// Connections that have no place and still wait to be told so. The first of more is closed at
/// once.
const TURNED_AWAY: usize = 32;

/// A connection that asks nothing and supplies nothing for so long gives its place up.
const IDLE: Time = 60 * SECOND;
/// How often such ones are looked for.
const LOOK_FOR_IDLE: Time = 10 * SECOND;

/// Connections that are accepted in one round.
const COMERS: usize = 8;
/// How long none is accepted after a round with one of a user who has used up its part: only an
/// accepted connection says whose it is.
const REST: Time = 2 * MILLISECOND;
/// The same when no descriptor is left: others have to end first.
const LONG_REST: Time = 20 * MILLISECOND;

/// How long a change waits to be written down, so that many are written at once.
const WRITE_AFTER: Time = 10 * MILLISECOND;
/// The same, as a multiple of what the last time took: among many processes it takes long.
const WRITE_SELDOM: Time = 20;

/// Hints of a list that are given in one round.
const HINTS_AT_ONCE: usize = 64;

fn unable(error: impl ToString) -> Refused {
    Refused::new(Refusal::Unable, error.to_string())
}

struct Client {
    connection: Connection,
    peer: Peer,
    /// The process that connected, by the kernel's word.
    process: Option<Process>,
    /// It supplies values, or did until its process connected anew.
    greeted: bool,
    /// The table that it supplies.
    table: Option<u32>,
    /// It has one of the places for connections that supply no values.
    seated: bool,
    /// Why it has no place: the answer to its first request, before which the kernel would not
    /// deliver it.
    turned_away: Option<String>,
    /// When it asked last.
    asked: Time,
}

/// A list of hints, some of which are given in each round.
struct List {
    client: u64,
    hints: std::vec::IntoIter<Hint>,
    given: usize,
    refused: Vec<wire::Refused>,
}

pub struct Service<S: Store> {
    registry: Registry<S>,
    listener: Listener,
    epoll: Epoll,
    clients: BTreeMap<u64, Client>,
    /// How many clients there have been.
    comers: u64,
    /// By process: the client that supplies its values.
    supplying: BTreeMap<i32, u64>,
    places: Places,
    turned_away: VecDeque<u64>,
    /// Clients that are not watched until then.
    put_off: BTreeSet<(Time, u64)>,
    lists: VecDeque<List>,
    /// When it is time to look for idle clients.
    idle_at: Time,
    kept: Option<PathBuf>,
    /// Clients of the engine before that have not come yet, by process, and how many there are.
    awaited: BTreeMap<i32, Known>,
    missing: Arc<AtomicUsize>,
    /// When something changed that is not written down yet, and how long it may wait.
    changed: Option<Time>,
    write_after: Time,
    meter: Meter,
    /// CPU time of this thread that users are charged with already.
    computed: Time,
    /// When connections are accepted again, if none is now.
    accepts_from: Option<Time>,
}

impl<S: Store> Service<S> {
    /// `places`: those for connections that supply nothing. `awaited`: clients of the engine
    /// before; `missing` says how many of them have not come yet.
    pub fn new(
        registry: Registry<S>,
        listener: Listener,
        epoll: Epoll,
        places: Places,
        kept: Option<PathBuf>,
        awaited: Vec<Known>,
        missing: Arc<AtomicUsize>,
    ) -> Service<S> {
        Service {
            registry,
            listener,
            epoll,
            clients: BTreeMap::new(),
            comers: 0,
            supplying: BTreeMap::new(),
            places,
            turned_away: VecDeque::new(),
            put_off: BTreeSet::new(),
            lists: VecDeque::new(),
            idle_at: time::now() + LOOK_FOR_IDLE,
            kept,
            awaited: awaited.into_iter().map(|known| (known.process.0, known)).collect(),
            missing,
            changed: None,
            write_after: WRITE_AFTER,
            meter: Meter::default(),
            computed: 0,
            accepts_from: None,
        }
    }

    /// Until [`Ready::Stop`].
    pub fn run(&mut self) {
        // Those that have hints of the engine before.
        self.watch_processes();
        loop {
            let next = self.write_down().min(self.next_due());
            if poll::wait(&mut [poll::readable(self.epoll.as_fd().as_raw_fd())], next).is_err() {
                // Interrupted.
                continue;
            }
            let mut ready = Vec::new();
            // Where it fails, memory for the question will be found again.
            let _ = self.epoll.collect(|key, _| ready.push(Ready::of(key)));
            let mut comers = false;
            for ready in ready {
                match ready {
                    Ready::Stop => {
                        self.write_after = 0;
                        self.write_down();
                        return;
                    }
                    Ready::Listener => comers = true,
                    Ready::Process(number) => {
                        self.end(number);
                    }
                    Ready::Client(number) => self.hear(number),
                }
            }
            if comers {
                self.accept();
            }
            self.work_on_lists();
            let now = time::now();
            self.watch_again(now);
            self.drop_idle(now);
            self.watch_processes();
        }
    }

    /// How long until something is to be done that no descriptor announces.
    fn next_due(&self) -> Time {
        let now = time::now();
        let put_off = self.put_off.first().map(|(until, _)| *until);
        let user_of = |list: &List| self.clients.get(&list.client).map(|client| client.peer);
        let lists =
            self.lists.iter().map(|list| user_of(list).map_or(0, |it| self.served_from(it)));
        let all = lists.chain(put_off).chain(self.accepts_from).chain([self.idle_at]);
        all.min().map_or(NEVER, |due| due.saturating_sub(now))
    }

    /// Writes down what has changed, when it is time. How long the next change has until then.
    fn write_down(&mut self) -> Time {
        let Some((path, changed)) = self.kept.as_ref().zip(self.changed) else { return NEVER };
        let began = time::now();
        let left = (changed + self.write_after).saturating_sub(began);
        if left > 0 {
            return left;
        }
        self.changed = None;
        // The next engine does without.
        let _ = self.registry.kept().write(path);
        self.write_after = WRITE_AFTER.max(WRITE_SELDOM * (time::now() - began));
        NEVER
    }

    /// Whether it was one of those that are still to come.
    fn notice(&mut self, process: i32) {
        if self.awaited.get(&process).is_some_and(|known| self.registry.has_come(known)) {
            self.awaited.remove(&process);
            self.missing.store(self.awaited.len(), Ordering::Release);
        }
    }

    /// When a request of the peer's user is to be served. It may be in the past.
    fn served_from(&self, peer: Peer) -> Time {
        if peer.preferred { 0 } else { self.meter.served_from(peer.user) }
    }

    /// Charges the peer's user with what this thread has computed since it charged a user last.
    fn charge(&mut self, peer: Peer) {
        let before = std::mem::replace(&mut self.computed, time::thread_cpu_time());
        if !peer.preferred {
            self.meter.charge(peer.user, self.computed - before, time::now());
        }
    }

    fn watch(&self, number: u64) {
        if let Some(client) = self.clients.get(&number) {
            let fd = client.connection.as_fd().as_raw_fd();
            // A client that cannot be watched is found idle.
            let _ = self.epoll.add(fd, Ready::Client(number).key(), Readiness::IN);
        }
    }

    fn watch_no_more(&self, number: u64) {
        if let Some(client) = self.clients.get(&number) {
            let _ = self.epoll.remove(client.connection.as_fd().as_raw_fd());
        }
    }

    /// Those whose users are served again, and the listener.
    fn watch_again(&mut self, now: Time) {
        while let Some(&(until, number)) = self.put_off.first()
            && until <= now
        {
            self.put_off.pop_first();
            self.watch(number);
        }
        if self.accepts_from.is_some_and(|from| from <= now) {
            self.accepts_from = None;
            let fd = self.listener.as_fd().as_raw_fd();
            let _ = self.epoll.add(fd, Ready::Listener.key(), Readiness::IN);
        }
    }

    /// The ends of processes that have been given pages.
    fn watch_processes(&mut self) {
        for (number, process) in self.registry.fresh() {
            let fd = process.as_fd().as_raw_fd();
            let _ = self.epoll.add(fd, Ready::Process(number).key(), Readiness::IN);
        }
    }

    fn drop_idle(&mut self, now: Time) {
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

    fn accept(&mut self) {
        for _ in 0..COMERS {
            match self.listener.accept() {
                Ok(Some(connection)) => self.seat(connection),
                Ok(None) => return,
                Err(_) => return self.rest(LONG_REST),
            }
        }
    }

    /// Accepts nobody for so long.
    fn rest(&mut self, time: Time) {
        if self.accepts_from.is_none() {
            let _ = self.epoll.remove(self.listener.as_fd().as_raw_fd());
        }
        self.accepts_from = Some(time::now() + time);
    }

    fn seat(&mut self, connection: Connection) {
        let Ok(Credentials { process, user, .. }) = connection.peer() else { return };
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
        self.watch(number);
        if self.turned_away.len() > TURNED_AWAY
            && let Some(first) = self.turned_away.pop_front()
        {
            self.leave(first);
        }
        self.charge(peer);
        if self.served_from(peer) > time::now() {
            self.rest(REST);
        }
    }

    /// The process has ended, and its connection with it, even if another process holds that.
    fn end(&mut self, process: i32) {
        if self.registry.ended(process)
            && let Some(client) = self.supplying.get(&process).copied()
        {
            self.leave(client);
        }
        self.changed.get_or_insert_with(time::now);
    }

    /// The client's connection is over.
    fn leave(&mut self, number: u64) {
        let Some(client) = self.clients.remove(&number) else { return };
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

    /// Something has come from the client.
    fn hear(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let (peer, now) = (client.peer, time::now());
        client.asked = now;
        let from = self.served_from(peer);
        if from > now {
            self.watch_no_more(number);
            self.put_off.insert((from, number));
            return;
        }
        if !self.serve(number) {
            self.leave(number);
        }
        self.notice(peer.process);
        self.charge(peer);
    }

    /// Serves one request. False: the connection is over.
    fn serve(&mut self, number: u64) -> bool {
        let Some(client) = self.clients.get_mut(&number) else { return false };
        let (request, descriptor) = match client.connection.receive::<Request>() {
            Ok(Received::Message(request, descriptor)) => (request, descriptor),
            Ok(Received::Nothing) => return true,
            Ok(Received::Garbled) => {
                let reply =
                    Refused::new(Refusal::Garbled, "this is no request that is known here").into();
                return self.reply(number, &reply, None);
            }
            Ok(Received::Ended) | Err(_) => return false,
        };
        if let Some(why) = client.turned_away.take() {
            self.turned_away.retain(|other| *other != number);
            self.reply(number, &Refused::new(Refusal::Full, why).into(), None);
            return false;
        }
        let control =
            matches!(request, Request::Set { .. } | Request::Tunables | Request::Snapshot);
        let answer = self.answer(number, request, descriptor);
        // What is refused changes nothing, however often it is asked.
        if answer.is_ok() && !control {
            self.changed.get_or_insert_with(time::now);
        }
        match answer {
            Ok(Some((reply, memory))) => self.reply(number, &reply, memory),
            Ok(None) => true,
            Err(refused) => self.reply(number, &refused.into(), None),
        }
    }

    /// Answers one request, with the descriptor that goes along; None: the answer comes later.
    fn answer(
        &mut self,
        number: u64,
        request: Request,
        descriptor: Option<OwnedFd>,
    ) -> Answer<Option<(Reply, Option<OwnedFd>)>> {
        let Some(peer) = self.clients.get(&number).map(|client| client.peer) else {
            return Ok(None);
        };
        match request {
            Request::Hello { version: VERSION } => return self.welcome(number).map(Some),
            Request::Table { version: VERSION, columns } => {
                return self.table(number, descriptor, &columns).map(|reply| Some((reply, None)));
            }
            Request::Hello { version } | Request::Table { version, .. } => {
                let message = format!("version {version} of the protocol; here it is {VERSION}");
                return Err(Refused::new(Refusal::Garbled, message));
            }
            Request::Hint(hint) => self.registry.hint(peer.user, &peer.means(hint)?)?,
            Request::Hints => return self.begin_list(number, descriptor).map(|()| None),
            Request::Set { settings } => {
                let control = self.registry.control(peer.user)?;
                control.set(&settings).map_err(|why| Refused::new(Refusal::Unsuitable, why))?;
            }
            Request::Tunables => {
                let tunables = self.registry.control(peer.user)?.tunables();
                return enclosed(&serde_json::to_vec(&tunables).map_err(unable)?).map(Some);
            }
            Request::Snapshot => {
                let text = self.registry.control(peer.user)?.snapshot().map_err(unable)?;
                return enclosed(&text).map(Some);
            }
            // The newest connection of a process counts.
            _ if self.supplying.get(&peer.process) != Some(&number) => {
                return Err(Refused::new(Refusal::Garbled, "hello comes first"));
            }
            Request::Declare { word, name } => self.registry.declare(peer.process, word, &name)?,
            Request::Bind { row, thread } => {
                let thread = peer.thread(peer.process, thread)?;
                self.registry.bind(peer.process, row, thread)?
            }
            Request::Unbind { row } => self.registry.unbind(peer.process, row)?,
        }
        Ok(Some((Reply::Done, None)))
    }

    /// Takes a list of hints. Its client is not heard until they are given.
    fn begin_list(&mut self, number: u64, list: Option<OwnedFd>) -> Answer<()> {
        let peer = self.clients.get(&number).map(|client| client.peer);
        let has_one = |list: &List| {
            self.clients.get(&list.client).map(|it| it.peer.user) == peer.map(|it| it.user)
        };
        if !peer.is_some_and(|peer| peer.preferred) && self.lists.iter().any(has_one) {
            let message = "another list of hints of this user is at work: wait for its answer";
            return Err(Refused::new(Refusal::Full, message));
        }
        let hints = enclosed::read_hints(list).map_err(|it| Refused::new(Refusal::Garbled, it))?;
        self.watch_no_more(number);
        let (hints, refused) = (hints.into_iter(), Vec::new());
        self.lists.push_back(List { client: number, hints, given: 0, refused });
        Ok(())
    }

    /// Gives some hints of each list whose user is served now.
    fn work_on_lists(&mut self) {
        for _ in 0..self.lists.len() {
            let Some(mut list) = self.lists.pop_front() else { return };
            let Some(client) = self.clients.get(&list.client) else { continue };
            let peer = client.peer;
            if self.served_from(peer) > time::now() {
                self.lists.push_back(list);
                continue;
            }
            // To find a process by its number in a container takes a look at all there are.
            let at_once = if peer.foreign { 1 } else { HINTS_AT_ONCE };
            let mut before = None;
            for hint in list.hints.by_ref().take(at_once) {
                let given = peer.means(hint).and_then(|hint| {
                    match before.replace(hint.process) == Some(hint.process) {
                        true => self.registry.hint_also(peer.user, &hint),
                        false => self.registry.hint(peer.user, &hint),
                    }
                });
                if let Err(Refused(why, message)) = given {
                    before = None;
                    list.refused.push(wire::Refused { index: list.given, why, message });
                }
                list.given += 1;
            }
            self.changed.get_or_insert_with(time::now);
            if list.hints.len() > 0 {
                self.lists.push_back(list);
            } else {
                self.end_list(&list);
            }
            self.charge(peer);
        }
    }

    fn end_list(&mut self, list: &List) {
        let text = serde_json::to_vec(&list.refused).map_err(unable);
        let sent = match text.and_then(|text| enclosed(&text)) {
            Ok((reply, memory)) => self.reply(list.client, &reply, memory),
            Err(refused) => self.reply(list.client, &refused.into(), None),
        };
        match sent {
            true => self.watch(list.client),
            false => self.leave(list.client),
        }
    }

    fn table(
        &mut self,
        number: u64,
        map: Option<OwnedFd>,
        columns: &[Option<String>],
    ) -> Answer<Reply> {
        let unknown = || Refused::new(Refusal::Garbled, "the connection is over");
        let client = self.clients.get_mut(&number).ok_or_else(unknown)?;
        if client.table.is_some() {
            let message = "this connection supplies a table already: open another one";
            return Err(Refused::new(Refusal::Garbled, message));
        }
        let missing = || Refused::new(Refusal::Garbled, "the table's descriptor is missing");
        let map = map.ok_or_else(missing)?;
        let (table, columns) = self.registry.open_table(client.peer.user, map, columns)?;
        client.table = Some(table);
        let scheduler = self.registry.store().scheduler().to_owned();
        Ok(Reply::Reads { scheduler, columns })
    }

    fn welcome(&mut self, number: u64) -> Answer<(Reply, Option<OwnedFd>)> {
        let unknown = || {
            Refused::new(
                Refusal::Forbidden,
                "the kernel does not say which process you are (it needs Linux 6.5), or hello came \
                 twice",
            )
        };
        let client = self.clients.get_mut(&number).ok_or_else(unknown)?;
        let (peer, process) = (client.peer, client.process.take().ok_or_else(unknown)?);
        let page = self.registry.welcome(peer.process, peer.user, process)?;
        let page = page.try_clone_to_owned().map_err(unable)?;
        client.greeted = true;
        // From now on it holds one of the slots. A connection of the process that held it before
        // needs the place: else one process could have any number of connections.
        let seated = std::mem::take(&mut client.seated);
        let before = self.supplying.insert(peer.process, number);
        match before.and_then(|before| self.clients.get_mut(&before)) {
            Some(before) => before.seated = seated,
            None if seated => self.places.give_back(peer.user),
            None => {}
        }
        let reply = Reply::Welcome {
            scheduler: self.registry.store().scheduler().to_owned(),
            imports: self.registry.store().imports().to_vec(),
        };
        Ok((reply, Some(page)))
    }

    /// Sends a reply. False: it cannot be delivered.
    fn reply(&self, number: u64, reply: &Reply, memory: Option<OwnedFd>) -> bool {
        let memory = memory.as_ref().map(AsFd::as_fd);
        self.clients
            .get(&number)
            .is_some_and(|client| client.connection.send(reply, memory).is_ok())
    }
}

fn enclosed(text: &[u8]) -> Answer<(Reply, Option<OwnedFd>)> {
    let memory = enclosed::enclose(text).map_err(unable)?;
    Ok((Reply::Enclosed, Some(memory)))
}
