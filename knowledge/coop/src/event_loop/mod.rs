//! An event loop that shares the CPU politely.
//!
//! It holds timer events and best-effort events (see [`When`]). Due timers come first, always, in
//! the order of their release; then the most important best-effort event. The *other* programs'
//! work has its place in the same order: a release at the time by which this program should poll,
//! and best-effort work of the others' importance. When that comes before our own work, the loop
//! gives up the CPU by [`Transport::poll`]; it also does when a **proxy** comes first, an event
//! that only yields. More important work of others in the group counts once a turn has lasted
//! [`TURN`]: otherwise, with all equally far, each event would take a switch.
//!
//! ```text
//! ┌─▶ what comes first ──our event──▶ callback ──┐
//! │          │others, a proxy, nothing           │
//! │          ▼                                   │
//! ├── poll: let others run, or sleep             │
//! └──────────────────────────────────────────────┘
//! ```
//!
//! Invariants: a submitted timer is dispatched once, not before its release, unless it is cancelled
//! or moved. After a poll that says it is our turn, an event of our own runs before others count
//! again, so that polling makes progress.
//!
//! A callback may take microseconds, so the loop's own work for it is some hundred instructions: it
//! reads the clock once for each, after it, and once more where descriptors are watched.

mod descriptors;
mod queue;
mod trace;

use std::fmt;
use std::io;
use std::os::fd::RawFd;

use attune_linux::poll;

pub use descriptors::Readiness;
pub use queue::{EventId, EventQueue, Rank, When};
pub use trace::{Executions, Trace};

use crate::offer::{Importance, NOTHING, Offer};
use crate::probe;
use crate::time::{Clock, Monotonic, NEVER, Time};
use crate::transport::{self, Transport, Wanted};
use descriptors::Descriptors;
use slotmap::SlotMap;
use trace::Name;

/// A turn lasts so long whatever work the others in the group have, unless its time is up before.
pub const TURN: Time = 1_000_000;

type Callback = Box<dyn FnMut(&mut EventLoop, EventId)>;
type DescriptorCallback = Box<dyn FnMut(&mut EventLoop, EventId, Readiness)>;

/// An event that the loop knows; it happens only while it is submitted.
struct Event {
    name: Name,
    /// None while the callback runs.
    kind: Option<Kind>,
}

enum Kind {
    Callback(Callback),
    Descriptor {
        fd: RawFd,
        wanted: Readiness,
        importance: i64,
        ready: Readiness,
        callback: DescriptorCallback,
    },
    Proxy,
}

/// See the module.
pub struct EventLoop {
    /// Submitted events of our own, and submitted proxies.
    own: EventQueue,
    proxies: EventQueue,
    events: SlotMap<EventId, Event>,
    descriptors: Descriptors,
    trace: Trace,
    transport: Box<dyn Transport>,
    clock: Box<dyn Clock>,
    group: u32,
    /// The time, when it was last read: after each poll and each callback.
    now: Time,
    /// The importance of the others' work in our group.
    others: Importance,
    /// Events of our own may run: the last poll gave us the turn.
    turn: bool,
    /// When it did.
    turn_began: Time,
    /// No event of our own has run since.
    fresh: bool,
    stopping: bool,
}

impl EventLoop {
    /// A loop whose polls go where `wanted` says; events of one `group` (not 0) are compared by
    /// importance, also between programs.
    ///
    /// Fails when the transport that is wanted by name cannot be had, and says why.
    pub fn new(wanted: Wanted, group: u32) -> io::Result<EventLoop> {
        Ok(EventLoop::with(transport::open(wanted)?, Box::new(Monotonic), group))
    }

    /// A loop over a transport and a clock of the caller's.
    pub fn with(transport: Box<dyn Transport>, clock: Box<dyn Clock>, group: u32) -> EventLoop {
        EventLoop {
            own: EventQueue::default(),
            proxies: EventQueue::default(),
            events: SlotMap::default(),
            descriptors: Descriptors::default(),
            trace: Trace::default(),
            transport,
            clock,
            group,
            now: 0,
            others: NOTHING,
            turn: false,
            turn_began: 0,
            fresh: false,
            stopping: false,
        }
    }

    /// Makes an event; it happens when it is submitted. `name` is for the trace; several events may
    /// have the same.
    pub fn event(
        &mut self,
        name: &str,
        callback: impl FnMut(&mut EventLoop, EventId) + 'static,
    ) -> EventId {
        self.add(name, Kind::Callback(Box::new(callback)))
    }

    /// Makes an event that yields to the other programs when it is dispatched.
    pub fn proxy(&mut self, name: &str) -> EventId {
        self.add(name, Kind::Proxy)
    }

    /// Whenever `fd` is ready for what is `wanted`, a best-effort event of this importance runs the
    /// callback. The descriptor stays the caller's: [`EventLoop::remove`] the event before closing
    /// it. Fails as epoll does: EPERM for plain files, which are always ready, EEXIST for a
    /// descriptor that is there already.
    pub fn descriptor(
        &mut self,
        fd: RawFd,
        wanted: Readiness,
        importance: i64,
        name: &str,
        callback: impl FnMut(&mut EventLoop, EventId, Readiness) + 'static,
    ) -> io::Result<EventId> {
        let callback = Box::new(callback);
        let kind =
            Kind::Descriptor { fd, wanted, importance, ready: Readiness::default(), callback };
        let event = self.add(name, kind);
        self.descriptors.add(fd, wanted, event).inspect_err(|_| drop(self.events.remove(event)))?;
        Ok(event)
    }

    fn add(&mut self, name: &str, kind: Kind) -> EventId {
        let name = self.trace.name(name);
        self.events.insert(Event { name, kind: Some(kind) })
    }

    /// Has the event happen when `when` says, once. Submitted already: it moves there; to the same
    /// place: nothing changes. False: there is no such event (any more).
    pub fn submit(&mut self, event: EventId, when: When) -> bool {
        match self.events.get(event) {
            None => return false,
            Some(Event { kind: Some(Kind::Proxy), .. }) => self.proxies.submit(event, when),
            Some(_) => self.own.submit(event, when),
        }
        true
    }

    /// The event does not happen after all. Not submitted: nothing changes.
    pub fn cancel(&mut self, event: EventId) {
        self.own.cancel(event);
        self.proxies.cancel(event);
    }

    /// When the event is to happen, if it is submitted.
    pub fn when(&self, event: EventId) -> Option<When> {
        self.own.when(event).or_else(|| self.proxies.when(event))
    }

    /// Forgets the event; its callback is dropped (after it has returned, if it runs).
    pub fn remove(&mut self, event: EventId) {
        self.cancel(event);
        if let Some(Event { kind: Some(Kind::Descriptor { fd, .. }), .. }) =
            self.events.remove(event)
        {
            self.descriptors.remove(fd);
        }
    }

    /// Runs events until [`EventLoop::stop`], or until nothing can happen any more: nothing is
    /// submitted, no descriptor is watched. Fails when the kernel refuses to wait, or when a
    /// watched descriptor was closed.
    pub fn run(&mut self) -> io::Result<()> {
        self.stopping = false;
        self.now = self.clock.now();
        while !self.stopping && self.anything_can_happen() {
            self.step()?;
        }
        Ok(())
    }

    /// Makes `run` return when the callback that runs has.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// By when a callback should be done: the others' earliest release, or the end of our slice.
    /// May fall while it runs.
    pub fn until(&self) -> Time {
        self.transport.until()
    }

    /// How long the callbacks took.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    fn anything_can_happen(&self) -> bool {
        !self.descriptors.is_empty() || !self.own.is_empty()
    }

    /// Dispatches one event, or polls.
    fn step(&mut self) -> io::Result<()> {
        self.collect_descriptors()?;
        match self.next() {
            Some(event) => self.dispatch(event),
            None => self.poll(),
        }
    }

    fn collect_descriptors(&mut self) -> io::Result<()> {
        if self.descriptors.is_empty() {
            return Ok(());
        }
        self.now = self.clock.now();
        let (events, own, now) = (&mut self.events, &mut self.own, self.now);
        self.descriptors.collect(|event, readiness| {
            let kind = events.get_mut(event).and_then(|event| event.kind.as_mut());
            if let Some(Kind::Descriptor { importance, ready, .. }) = kind {
                *ready = readiness;
                own.submit(event, When::BestEffort { importance: *importance, release: now });
            }
        })
    }

    /// The event of our own that comes first. None: poll, since it is not our turn, or there is no
    /// event, or others come before it.
    fn next(&mut self) -> Option<EventId> {
        if !self.turn {
            return None;
        }
        let own = self.own.next(self.now);
        if self.fresh {
            return own.map(|(_, event)| event);
        }
        let comes_first = |rank: Rank| own.is_none_or(|(own, _)| rank < own);
        if let Some((rank, proxy)) = self.proxies.next(self.now)
            && comes_first(rank)
        {
            self.proxies.cancel(proxy);
            return None;
        }
        if self.others().is_some_and(comes_first) { None } else { own.map(|(_, event)| event) }
    }

    /// The others' work that counts now.
    fn others(&self) -> Option<Rank> {
        let until = self.transport.until();
        if until <= self.now {
            Some(Rank::Due(until))
        } else if self.now >= self.turn_began.saturating_add(TURN) && self.others != NOTHING {
            Some(Rank::BestEffort(self.others, NEVER))
        } else {
            None
        }
    }

    fn first_timer(&self) -> Time {
        self.own.first_timer().map_or(NEVER, |(release, _)| release)
    }

    fn poll(&mut self) -> io::Result<()> {
        let offer = Offer {
            group: self.group,
            timer: self.first_timer(),
            best_effort: self.own.first_best_effort().map_or(NOTHING, |(importance, _)| importance),
        };
        let mut ready = self.descriptors.wake().map(poll::readable);
        self.turn = false;
        let answer = match self.transport.poll(&offer, ready.as_mut_slice()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            answer => answer?,
        };
        (self.turn, self.fresh) = (answer.turn, answer.turn);
        self.others = answer.others;
        self.turn_began = self.trace.begin_turn(self.now, &*self.clock);
        self.now = self.turn_began;
        Ok(())
    }

    fn dispatch(&mut self, event: EventId) -> io::Result<()> {
        self.fresh = false;
        let submitted = self.own.cancel(event);
        if let Some(When::At(release)) = submitted {
            probe::attune_coop_timer(release);
            self.transport.tell_timer(self.first_timer());
        }
        let Some(mut kind) = self.events.get_mut(event).and_then(|event| event.kind.take()) else {
            return Ok(());
        };
        match &mut kind {
            Kind::Callback(callback) => callback(self, event),
            Kind::Descriptor { ready, callback, .. } => callback(self, event, *ready),
            Kind::Proxy => {}
        }
        if let Some(When::At(_)) = submitted {
            self.transport.tell_timer(self.first_timer());
        }
        let began = std::mem::replace(&mut self.now, self.clock.now());
        let Some(known) = self.events.get_mut(event) else {
            // It removed itself.
            if let Kind::Descriptor { fd, .. } = kind {
                self.descriptors.remove(fd);
            }
            return Ok(());
        };
        self.trace.record(known.name, began, self.now, &*self.clock);
        if let Kind::Descriptor { fd, wanted, .. } = kind {
            self.descriptors.arm(fd, wanted, event).map_err(|error| {
                let name = self.trace.text(known.name);
                io::Error::new(
                    error.kind(),
                    format!(
                        "waiting for descriptor {fd} of `{name}`: {error}; remove its event before \
                         closing it"
                    ),
                )
            })?;
        }
        known.kind = Some(kind);
        Ok(())
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("EventLoop")
            .field("transport", &self.transport.name())
            .finish_non_exhaustive()
    }
}
