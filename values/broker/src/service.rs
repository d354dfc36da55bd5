//! The socket: connections in, requests to the registry, answers out. One thread serves all clients
//! and never blocks on one of them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use attune_linux::event::Event;
use attune_linux::namespace;
use attune_linux::places::Places;
use attune_linux::poll;
use attune_linux::process::{self, Process};
use attune_linux::time::{self, MILLISECOND, NEVER, Time};
use attune_values::enclosed;
use attune_values::socket::{Connection, Credentials, Listener, Received};
use attune_values::wire::{Refusal, Reply, Request, VERSION};

use crate::kept::{Kept, Known};
use crate::meter::Meter;
use crate::refused::{Answer, Refused};
use crate::registry::Registry;
use crate::store::Store;

/// Connections at a time. Root and the user who runs the scheduler always find a place.
const PLACES: Places = Places { of_user: 128, of_all: 1024, kept_free: 32 };
/// Connections beyond them that still wait to be told so. The first of more is closed at once.
const TURNED_AWAY: usize = 32;

/// A descriptor that `poll` leaves out.
const NOT_YET: RawFd = -1;

/// Connections that are accepted in one round.
const COMERS: usize = 8;
/// How long none is accepted after a round with one of a user who has used up its part: only an
/// accepted connection says whose it is.
const REST: Time = 2 * MILLISECOND;
/// The same when no descriptor is left: others have to end first.
const LONG_REST: Time = 20 * MILLISECOND;

/// How long a change waits to be written down, so that many are written at once.
const WRITE_AFTER: Time = 10 * MILLISECOND;

/// A service that runs until this is dropped.
#[derive(Debug)]
pub struct Broker {
    stop: Event,
    /// Clients of the engine before that have not come yet.
    missing: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Broker {
    /// Listens at `path`. Errors: the socket cannot be made, another engine listens there
    /// (`AddrInUse`).
    pub fn start(path: &Path, store: impl Store + 'static) -> io::Result<Broker> {
        Broker::keeping(None, path, store)
    }

    /// The same, with a file for what the next engine needs ([`Kept`]). What is there already
    /// counts from the start.
    pub fn keeping(
        kept: Option<&Path>,
        path: &Path,
        store: impl Store + 'static,
    ) -> io::Result<Broker> {
        // Every client is a descriptor, and every process another.
        process::raise_descriptor_limit();
        let listener = Listener::at(path)?;
        let stop = Event::new()?;
        let stopped = stop.share()?;
        let before = kept.map(Kept::read).unwrap_or_default();
        let missing = Arc::new(AtomicUsize::new(before.clients.len()));
        let mut registry = Registry::new(store);
        before.hints.iter().for_each(|hint| registry.hint_again(hint));
        let (kept, awaited) = (kept.map(Path::to_owned), before.clients);
        let mut service = Service {
            registry,
            listener,
            clients: Vec::new(),
            kept,
            awaited,
            missing: missing.clone(),
            changed: None,
            meter: Meter::default(),
            computed: 0,
            accepts_from: 0,
        };
        let thread = std::thread::Builder::new()
            .name("attune-values".to_owned())
            .spawn(move || service.run(&stopped))?;
        Ok(Broker { stop, missing, thread: Some(thread) })
    }

    /// Waits until the clients of the engine before have come, those that still live, but no longer
    /// than that.
    pub fn wait_for_clients(&self, at_most: Duration) {
        let end = Instant::now() + at_most;
        while self.missing.load(Ordering::Acquire) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported already.
            let _ = thread.join();
        }
    }
}

fn unable(error: impl ToString) -> Refused {
    Refused::new(Refusal::Unable, error.to_string())
}

#[derive(Clone, Copy)]
struct Peer {
    process: i32,
    user: u32,
    /// Root, or the user who runs the scheduler: it always finds a place and is never kept waiting.
    preferred: bool,
}

impl Peer {
    /// The process that it calls `process`, and the thread of that process. In a container numbers
    /// differ from those here.
    fn means(self, process: i32, thread: Option<i32>) -> Answer<(i32, Option<i32>)> {
        let none = || Refused::new(Refusal::NoSuchThread, format!("there is no process {process}"));
        let here = namespace::process(self.process as u32, process as u32).ok_or_else(none)? as i32;
        let thread = thread.map(|thread| self.thread(here, thread)).transpose()?;
        Ok((here, thread))
    }

    /// The thread of `process` that it calls `thread`.
    fn thread(self, process: i32, thread: i32) -> Answer<i32> {
        let here = namespace::thread(self.process as u32, process as u32, thread as u32);
        let none = || Refused::new(Refusal::NoSuchThread, format!("there is no thread {thread}"));
        Ok(here.ok_or_else(none)? as i32)
    }
}

struct Client {
    connection: Connection,
    peer: Peer,
    /// The process that connected, by the kernel's word.
    process: Option<Process>,
    greeted: bool,
    /// The table that it supplies.
    table: Option<u32>,
    /// Why it has no place: the answer to its first request, before which the kernel would not
    /// deliver it.
    turned_away: Option<String>,
}

struct Service<S: Store> {
    registry: Registry<S>,
    listener: Listener,
    clients: Vec<Client>,
    kept: Option<PathBuf>,
    /// Clients of the engine before, and how many of them have not come yet.
    awaited: Vec<Known>,
    missing: Arc<AtomicUsize>,
    /// When something changed that is not written down yet.
    changed: Option<Time>,
    meter: Meter,
    /// CPU time of this thread that users are charged with already.
    computed: Time,
    /// When connections are accepted again.
    accepts_from: Time,
}

impl<S: Store> Service<S> {
    fn run(&mut self, stop: &Event) {
        loop {
            let processes: Vec<(i32, RawFd)> = self
                .registry
                .processes()
                .map(|(number, process)| (number, process.as_fd().as_raw_fd()))
                .collect();
            let comers = (self.accepts_from, self.listener.as_fd().as_raw_fd());
            let clients = self.clients.iter().map(|client| {
                (self.served_from(client.peer), client.connection.as_fd().as_raw_fd())
            });
            let (now, mut next) = (time::now(), NEVER);
            let mut when_due = |(from, fd): (Time, RawFd)| {
                if from <= now {
                    return fd;
                }
                next = next.min(from - now);
                NOT_YET
            };
            let mut waits: Vec<poll::pollfd> = [stop.as_fd().as_raw_fd(), when_due(comers)]
                .into_iter()
                .chain(processes.iter().map(|(_, fd)| *fd))
                .chain(clients.map(when_due))
                .map(poll::readable)
                .collect();
            if poll::wait(&mut waits, self.write_down().min(next)).is_err() {
                // Interrupted; memory for the question will be found again.
                continue;
            }
            let happened = |wait: &poll::pollfd| wait.revents != 0;
            let (fixed, rest) = waits.split_at(2);
            let (ends, requests) = rest.split_at(processes.len());
            if happened(&fixed[0]) {
                self.changed = self.changed.map(|_| 0);
                self.write_down();
                return;
            }
            for ((number, _), _) in processes.iter().zip(ends).filter(|(_, wait)| happened(wait)) {
                self.registry.forget(*number);
                self.changed.get_or_insert_with(time::now);
            }
            // From the end, so that removing one does not move the others that are still to be
            // served.
            for (index, _) in requests.iter().enumerate().rev().filter(|(_, wait)| happened(wait)) {
                let peer = self.clients[index].peer;
                if !self.serve(index) {
                    let client = self.clients.swap_remove(index);
                    if client.greeted {
                        self.registry.farewell(client.peer.process);
                        self.changed.get_or_insert_with(time::now);
                    }
                    if let Some(table) = client.table {
                        self.registry.close_table(table);
                    }
                }
                self.charge(peer);
            }
            if happened(&fixed[1]) {
                self.accept();
            }
            self.notice_comers();
        }
    }

    /// Writes down what has changed, when it is time. How long the next change has until then.
    fn write_down(&mut self) -> Time {
        let Some((path, changed)) = self.kept.as_ref().zip(self.changed) else { return NEVER };
        let left = (changed + WRITE_AFTER).saturating_sub(time::now());
        if left > 0 {
            return left;
        }
        self.changed = None;
        // The next engine does without.
        let _ = self.registry.kept().write(path);
        NEVER
    }

    fn notice_comers(&mut self) {
        if !self.awaited.is_empty() {
            let registry = &self.registry;
            self.awaited.retain(|known| !registry.has_come(known));
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

    fn accept(&mut self) {
        for _ in 0..COMERS {
            match self.listener.accept() {
                Ok(Some(connection)) => self.seat(connection),
                Ok(None) => return,
                Err(_) => return self.accepts_from = time::now() + LONG_REST,
            }
        }
    }

    fn seat(&mut self, connection: Connection) {
        let Ok(Credentials { process, user, .. }) = connection.peer() else { return };
        let preferred = user == 0 || self.registry.control(user).is_ok();
        let peer = Peer { process: process as i32, user, preferred };
        let seated = self.clients.iter().filter(|client| client.turned_away.is_none());
        let place = PLACES.find(user, preferred, seated.map(|client| client.peer.user));
        let (process, turned_away) = match place {
            Ok(()) => (Process::peer(&connection).ok(), None),
            Err(why) => {
                self.keep_few_turned_away();
                (None, Some(why))
            }
        };
        let (greeted, table) = (false, None);
        self.clients.push(Client { connection, peer, process, greeted, table, turned_away });
        self.charge(peer);
        let now = time::now();
        if self.served_from(peer) > now {
            self.accepts_from = now + REST;
        }
    }

    fn keep_few_turned_away(&mut self) {
        let turned_away = |&place: &usize| self.clients[place].turned_away.is_some();
        let mut waiting = (0..self.clients.len()).filter(turned_away);
        if let Some(first) = waiting.next()
            && waiting.count() + 1 >= TURNED_AWAY
        {
            self.clients.remove(first);
        }
    }

    /// Serves one request. False: the connection is over.
    fn serve(&mut self, index: usize) -> bool {
        let (request, descriptor) = match self.clients[index].connection.receive::<Request>() {
            Ok(Received::Message(request, descriptor)) => (request, descriptor),
            Ok(Received::Nothing) => return true,
            Ok(Received::Garbled) => {
                let reply =
                    Refused::new(Refusal::Garbled, "this is no request that is known here").into();
                return self.reply(index, &reply);
            }
            Ok(Received::Ended) | Err(_) => return false,
        };
        if let Some(why) = self.clients[index].turned_away.take() {
            self.reply(index, &Refused::new(Refusal::Full, why).into());
            return false;
        }
        let control =
            matches!(request, Request::Set { .. } | Request::Tunables | Request::Snapshot);
        let answer = self.answer(index, request, descriptor);
        // What is refused changes nothing, however often it is asked.
        if answer.is_ok() && !control {
            self.changed.get_or_insert_with(time::now);
        }
        match answer {
            Ok(Some(reply)) => self.reply(index, &reply),
            Ok(None) => true,
            Err(refused) => self.reply(index, &refused.into()),
        }
    }

    /// Answers one request; None: the answer is sent already.
    fn answer(
        &mut self,
        index: usize,
        request: Request,
        descriptor: Option<OwnedFd>,
    ) -> Answer<Option<Reply>> {
        let peer = self.clients[index].peer;
        match request {
            Request::Hello { version: VERSION } => return self.welcome(index).map(|()| None),
            Request::Table { version: VERSION, columns } => {
                return self.table(index, descriptor, &columns).map(Some);
            }
            Request::Hello { version } | Request::Table { version, .. } => {
                let message = format!("version {version} of the protocol; here it is {VERSION}");
                return Err(Refused::new(Refusal::Garbled, message));
            }
            Request::Hint { process, thread, values } => {
                let (process, thread) = peer.means(process, thread)?;
                self.registry.hint(peer.user, process, thread, &values)?
            }
            Request::Set { settings } => {
                let control = self.registry.control(peer.user)?;
                control.set(&settings).map_err(|why| Refused::new(Refusal::Unsuitable, why))?;
            }
            Request::Tunables => {
                let tunables = self.registry.control(peer.user)?.tunables();
                let text = serde_json::to_vec(&tunables).map_err(unable)?;
                return self.enclose(index, &text).map(|()| None);
            }
            Request::Snapshot => {
                let text = self.registry.control(peer.user)?.snapshot().map_err(unable)?;
                return self.enclose(index, &text).map(|()| None);
            }
            _ if !self.clients[index].greeted => {
                return Err(Refused::new(Refusal::Garbled, "hello comes first"));
            }
            Request::Declare { word, name } => self.registry.declare(peer.process, word, &name)?,
            Request::Bind { row, thread } => {
                let thread = peer.thread(peer.process, thread)?;
                self.registry.bind(peer.process, row, thread)?
            }
            Request::Unbind { row } => self.registry.unbind(peer.process, row)?,
        }
        Ok(Some(Reply::Done))
    }

    fn table(
        &mut self,
        index: usize,
        map: Option<OwnedFd>,
        columns: &[Option<String>],
    ) -> Answer<Reply> {
        let client = &mut self.clients[index];
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

    fn welcome(&mut self, index: usize) -> Answer<()> {
        let client = &mut self.clients[index];
        let peer = client.peer;
        let unknown = || {
            Refused::new(
                Refusal::Forbidden,
                "the kernel does not say which process you are (it needs Linux 6.5), or hello came \
                 twice",
            )
        };
        let process = client.process.take().ok_or_else(unknown)?;
        // The newest connection of a process counts.
        for other in self.clients.iter_mut().filter(|other| other.peer.process == peer.process) {
            other.greeted = false;
        }
        let reply = Reply::Welcome {
            scheduler: self.registry.store().scheduler().to_owned(),
            imports: self.registry.store().imports().to_vec(),
        };
        let page = self.registry.welcome(peer.process, peer.user, process)?;
        let sent = self.clients[index].connection.send(&reply, Some(page.as_fd()));
        self.clients[index].greeted = true;
        // A client that does not take the answer will be found gone.
        drop(sent);
        Ok(())
    }

    fn enclose(&self, index: usize, text: &[u8]) -> Answer<()> {
        let memory = enclosed::enclose(text).map_err(unable)?;
        // A client that does not take the answer will be found gone.
        let _ = self.clients[index].connection.send(&Reply::Enclosed, Some(memory.as_fd()));
        Ok(())
    }

    /// Sends a reply. False: it cannot be delivered.
    fn reply(&self, index: usize, reply: &Reply) -> bool {
        self.clients[index].connection.send(reply, None).is_ok()
    }
}
