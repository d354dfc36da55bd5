//! The socket: connections in, requests to the registry, answers out. One thread serves all clients
//! and never blocks on one of them.
//!
//! Invariant: what one round costs does not depend on how many clients and processes there are, but
//! for the rare ones that look for idle clients or write down what the next engine needs. A client
//! is watched, or it waits in its user's line, or its list of hints is at work.
//!
//! | file | what it has |
//! |---|---|
//! | here | the round, and when something is due |
//! | `seats` | clients that come and go |
//! | `turns` | when a user's clients are served |
//! | `requests` | what clients ask, and what they are answered |
//! | `lists` | lists of hints, a part in each round |

mod lists;
mod requests;
mod seats;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attune_linux::epoll::{Epoll, Readiness};
use attune_linux::places::Places;
use attune_linux::poll;
use attune_linux::process::Process;
use attune_linux::time::{self, MILLISECOND, NEVER, SECOND, Time};
use attune_values::socket::Connection;
use attune_values::wire::Refusal;

use crate::doors::Doors;
use crate::kept::Known;
use crate::meter::Meter;
use crate::peer::Peer;
use crate::ready::Ready;
use crate::refused::Refused;
use crate::registry::Registry;
use crate::store::Store;
use lists::List;

/// How often idle clients are looked for.
const LOOK_FOR_IDLE: Time = 10 * SECOND;

/// How long a change waits to be written down, so that many are written at once.
const WRITE_AFTER: Time = 10 * MILLISECOND;
/// The same, as a multiple of what the last time took: among many processes it takes long.
const WRITE_SELDOM: Time = 100;

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

impl Client {
    /// The other end is closed.
    fn has_gone(&self) -> bool {
        let fd = self.connection.as_fd().as_raw_fd();
        let mut wait = [poll::pollfd { fd, events: poll::HUNG_UP, revents: 0 }];
        poll::wait(&mut wait, 0).is_ok_and(|ready| ready > 0)
    }
}

/// What is due at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The first in the user's line is served.
    Turn(u32),
    /// The socket is watched again.
    Watch(Ready),
}

pub struct Service<S: Store> {
    registry: Registry<S>,
    doors: Doors,
    epoll: Epoll,
    clients: BTreeMap<u64, Client>,
    /// How many clients there have been.
    comers: u64,
    /// By process: the client that supplies its values.
    supplying: BTreeMap<i32, u64>,
    places: Places,
    turned_away: VecDeque<u64>,
    /// What is to be done, and when.
    due: BTreeSet<(Time, Due)>,
    /// By user: its clients that wait for its turn, each with its rank. For each line, an empty one
    /// too, one [`Due::Turn`] is to come.
    lines: BTreeMap<u32, BTreeSet<(u8, u64)>>,
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
}

impl<S: Store> Service<S> {
    /// `places`: those for connections that supply nothing. `awaited`: clients of the engine
    /// before; `missing` says how many of them have not come yet.
    pub fn new(
        registry: Registry<S>,
        doors: Doors,
        epoll: Epoll,
        places: Places,
        kept: Option<PathBuf>,
        awaited: Vec<Known>,
        missing: Arc<AtomicUsize>,
    ) -> Service<S> {
        Service {
            registry,
            doors,
            epoll,
            clients: BTreeMap::new(),
            comers: 0,
            supplying: BTreeMap::new(),
            places,
            turned_away: VecDeque::new(),
            due: BTreeSet::new(),
            lines: BTreeMap::new(),
            lists: VecDeque::new(),
            idle_at: time::now() + LOOK_FOR_IDLE,
            kept,
            awaited: awaited.into_iter().map(|known| (known.process.0, known)).collect(),
            missing,
            changed: None,
            write_after: WRITE_AFTER,
            meter: Meter::default(),
            computed: 0,
        }
    }

    /// Until [`Ready::Stop`].
    pub fn run(&mut self) {
        self.watch(Ready::Listener);
        for user in self.doors.users().collect::<Vec<_>>() {
            self.watch(Ready::Door(user));
        }
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
            ready.sort_by_key(|ready| self.rank(*ready));
            for ready in ready {
                match ready {
                    Ready::Stop => {
                        self.write_after = 0;
                        self.write_down();
                        return;
                    }
                    Ready::Listener => self.accept(),
                    Ready::Door(user) => self.accept_at_door(user),
                    Ready::Process(number) => {
                        self.end(number);
                    }
                    Ready::Client(number) => self.hear(number),
                }
            }
            self.work_on_lists();
            let now = time::now();
            self.catch_up(now);
            self.drop_idle(now);
            self.watch_processes();
        }
    }

    /// How long until something is to be done that no descriptor announces.
    fn next_due(&self) -> Time {
        let now = time::now();
        let due = self.due.first().map(|(at, _)| *at);
        let user_of = |list: &List| self.clients.get(&list.client).map(|client| client.peer.user);
        let lists =
            self.lists.iter().map(|list| user_of(list).map_or(0, |it| self.served_from(it)));
        let all = lists.chain(due).chain([self.idle_at]);
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
        // It concerns all users: the one that is served next is not charged with it.
        self.computed = time::thread_cpu_time();
        NEVER
    }

    /// Whether it was one of those that are still to come.
    fn notice(&mut self, process: i32) {
        if self.awaited.get(&process).is_some_and(|known| self.registry.has_come(known)) {
            self.awaited.remove(&process);
            self.missing.store(self.awaited.len(), Ordering::Release);
        }
    }

    /// The socket of a client, a door, or the listener's. None: it is gone.
    fn socket(&self, of: Ready) -> Option<BorrowedFd<'_>> {
        match of {
            Ready::Listener => Some(self.doors.common().as_fd()),
            Ready::Door(user) => self.doors.of(user).map(AsFd::as_fd),
            Ready::Client(number) => self.clients.get(&number).map(|it| it.connection.as_fd()),
            Ready::Stop | Ready::Process(_) => None,
        }
    }

    /// The ends of processes that have been given pages.
    fn watch_processes(&mut self) {
        for (number, process) in self.registry.fresh() {
            let fd = process.as_fd().as_raw_fd();
            let _ = self.epoll.add(fd, Ready::Process(number).key(), Readiness::IN);
        }
    }
}
