//! An event loop that shares the CPU politely.
//!
//! It holds timer events and best-effort events (see [`When`]). Due timers come first, always, in the order of their release; then the
//! most important best-effort event. What the *other* programs want is in the same two orders, as **proxy** events: one timer at
//! the time by which this program should poll, one best-effort event of the importance of the others'. A proxy that comes to the
//! head is dispatched like any event; it has no callback, dispatching it yields the CPU by [`Transport::poll`]. What matters more to
//! others in the group counts once a turn has lasted [`TURN`]: else, with all equally far, each event would take a switch.
//!
//! ```text
//! ┌─▶ next event ──own──▶ callback ──┐
//! │        │proxy, or none           │
//! │        ▼                         │
//! └─── poll: sleep, let others run ◀─┘ (when a proxy is next)
//! ```
//!
//! Invariants: a submitted timer is dispatched once, not before its release, unless it is cancelled or moved. After a poll that
//! says it is our turn, an event of our own runs before a proxy counts again, so that polling makes progress.

mod descriptors;
mod queue;
mod trace;

use std::fmt;
use std::io;
use std::os::fd::RawFd;

pub use descriptors::Readiness;
pub use queue::{EventId, EventQueue, When};
pub use trace::{Executions, Trace};

use crate::offer::{NOTHING, Offer};
use crate::probe;
use crate::time::{Clock, Monotonic, NEVER, Time};
use crate::transport::{self, Transport, Wanted};
use descriptors::Descriptors;
use rustc_hash::FxHashMap;
use trace::Name;

/// So long a turn lasts, unless its time is up before, whatever the others in the group have.
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
    queue: EventQueue,
    events: FxHashMap<EventId, Event>,
    made: u64,
    descriptors: Descriptors,
    trace: Trace,
    transport: Box<dyn Transport>,
    clock: Box<dyn Clock>,
    group: u32,
    /// The proxies of the other programs.
    others_timer: EventId,
    others_best_effort: EventId,
    /// Events of our own may run: the last poll gave us the turn.
    turn: bool,
    /// When it did.
    turn_began: Time,
    /// None has run since.
    fresh: bool,
    stopping: bool,
}

impl EventLoop {
    /// A loop whose polls go where `wanted` says; events of one `group` (not 0) are compared by importance, also between programs.
    ///
    /// Fails when the transport that is wanted by name cannot be had, and says why.
    pub fn new(wanted: Wanted, group: u32) -> io::Result<EventLoop> {
        Ok(EventLoop::with(transport::open(wanted)?, Box::new(Monotonic), group))
    }

    /// A loop over a transport and a clock of the caller's.
    pub fn with(transport: Box<dyn Transport>, clock: Box<dyn Clock>, group: u32) -> EventLoop {
        let mut new = EventLoop {
            queue: EventQueue::default(),
            events: FxHashMap::default(),
            made: 0,
            descriptors: Descriptors::default(),
            trace: Trace::default(),
            transport,
            clock,
            group,
            others_timer: EventId(0),
            others_best_effort: EventId(0),
            turn: false,
            turn_began: 0,
            fresh: false,
            stopping: false,
        };
        new.others_timer = new.proxy("others' timer");
        new.others_best_effort = new.proxy("others' best effort");
        new
    }

    /// Makes an event; it happens when it is submitted. `name` is for the trace; several events may have the same.
    pub fn event(&mut self, name: &str, callback: impl FnMut(&mut EventLoop, EventId) + 'static) -> EventId {
        self.add(name, Kind::Callback(Box::new(callback)))
    }

    /// Makes an event that yields to the other programs when it is dispatched.
    pub fn proxy(&mut self, name: &str) -> EventId {
        self.add(name, Kind::Proxy)
    }

    /// Whenever `fd` is ready for what is `wanted`, a best-effort event of this importance runs the callback. The descriptor stays
    /// the caller's: [`EventLoop::remove`] the event before closing it. Fails as epoll does: EPERM for plain files, which are always
    /// ready, EEXIST for a descriptor that is there already.
    pub fn descriptor(
        &mut self,
        fd: RawFd,
        wanted: Readiness,
        importance: i64,
        name: &str,
        callback: impl FnMut(&mut EventLoop, EventId, Readiness) + 'static,
    ) -> io::Result<EventId> {
        self.descriptors.add(fd, wanted, EventId(self.made + 1))?;
        let callback = Box::new(callback);
        Ok(self.add(name, Kind::Descriptor { fd, wanted, importance, ready: Readiness::default(), callback }))
    }

    fn add(&mut self, name: &str, kind: Kind) -> EventId {
        self.made += 1;
        let event = EventId(self.made);
        let name = self.trace.name(name);
        self.events.insert(event, Event { name, kind: Some(kind) });
        event
    }

    /// Has the event happen when `when` says, once. Submitted already: it moves there; to the same place: nothing changes. False: there
    /// is no such event (any more).
    pub fn submit(&mut self, event: EventId, when: When) -> bool {
        let known = self.events.contains_key(&event);
        if known {
            self.queue.submit(event, when);
        }
        known
    }

    /// The event does not happen after all. Not submitted: nothing changes.
    pub fn cancel(&mut self, event: EventId) {
        self.queue.cancel(event);
    }

    /// When the event is to happen, if it is submitted.
    pub fn when(&self, event: EventId) -> Option<When> {
        self.queue.when(event)
    }

    /// Forgets the event; its callback is dropped (after it has returned, if it runs).
    pub fn remove(&mut self, event: EventId) {
        self.queue.cancel(event);
        if let Some(Event { kind: Some(Kind::Descriptor { fd, .. }), .. }) = self.events.remove(&event) {
            self.descriptors.remove(fd);
        }
    }

    /// Runs events until [`EventLoop::stop`], or until nothing can happen any more: nothing is submitted, no descriptor is
    /// watched. Fails when the kernel refuses to wait, or when a watched descriptor was closed.
    pub fn run(&mut self) -> io::Result<()> {
        self.stopping = false;
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

    /// By when a callback should be done: the others' earliest release, or the end of our slice. May fall while it runs.
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
        !self.descriptors.is_empty() || self.queue.first_timer(self.own()).is_some() || {
            self.queue.first_best_effort(self.own()).is_some()
        }
    }

    /// Which events are the program's, and no proxies.
    fn own(&self) -> impl Fn(EventId) -> bool + '_ {
        |event| !self.is_proxy(event)
    }

    fn is_proxy(&self, event: EventId) -> bool {
        matches!(self.events.get(&event), Some(Event { kind: Some(Kind::Proxy), .. }))
    }

    /// Dispatches one event, or polls.
    fn step(&mut self) -> io::Result<()> {
        self.collect_descriptors()?;
        self.follow_until();
        let now = self.clock.now();
        let next = match (self.turn, self.fresh) {
            (false, _) => None,
            (true, true) => self.queue.next(now, self.own()),
            (true, false) if now < self.turn_began.saturating_add(TURN) => {
                self.queue.next(now, |event| event != self.others_best_effort)
            }
            (true, false) => self.queue.next(now, |_| true),
        };
        match next {
            Some(event) if !self.is_proxy(event) => self.dispatch(event, now),
            Some(proxy) => {
                self.queue.cancel(proxy);
                self.poll()
            }
            None => self.poll(),
        }
    }

    fn collect_descriptors(&mut self) -> io::Result<()> {
        if self.descriptors.is_empty() {
            return Ok(());
        }
        let (events, queue) = (&mut self.events, &mut self.queue);
        let now = self.clock.now();
        self.descriptors.collect(|event, readiness| {
            let kind = events.get_mut(&event).and_then(|event| event.kind.as_mut());
            if let Some(Kind::Descriptor { importance, ready, .. }) = kind {
                *ready = readiness;
                queue.submit(event, When::BestEffort { importance: *importance, release: now });
            }
        })
    }

    /// The time by which to poll may have come nearer.
    fn follow_until(&mut self) {
        match self.transport.until() {
            NEVER => {
                self.queue.cancel(self.others_timer);
            }
            until => self.queue.submit(self.others_timer, When::At(until)),
        }
    }

    fn poll(&mut self) -> io::Result<()> {
        let timer = self.queue.first_timer(self.own());
        let best_effort = self.queue.first_best_effort(self.own());
        let offer = Offer {
            group: self.group,
            timer: timer.map_or(NEVER, |(_, release)| release),
            best_effort: best_effort.map_or(NOTHING, |(_, importance)| importance),
        };
        let mut ready =
            self.descriptors.wake().map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        self.turn = false;
        let answer = match self.transport.poll(&offer, ready.as_mut_slice()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            answer => answer?,
        };
        (self.turn, self.fresh) = (answer.turn, answer.turn);
        self.turn_began = self.trace.begin_turn(&*self.clock);
        match answer.others {
            NOTHING => {
                self.queue.cancel(self.others_best_effort);
            }
            importance => self.queue.submit(self.others_best_effort, When::best_effort(importance)),
        }
        Ok(())
    }

    fn dispatch(&mut self, event: EventId, began: Time) -> io::Result<()> {
        let when = self.queue.cancel(event);
        self.fresh = false;
        if let Some(When::At(release)) = when {
            probe::attune_coop_timer(release);
        }
        let Some(mut kind) = self.events.get_mut(&event).and_then(|event| event.kind.take()) else {
            return Ok(());
        };
        match &mut kind {
            Kind::Callback(callback) => callback(self, event),
            Kind::Descriptor { ready, callback, .. } => callback(self, event, *ready),
            Kind::Proxy => {}
        }
        let ended = self.clock.now();
        let Some(known) = self.events.get_mut(&event) else {
            // It removed itself.
            if let Kind::Descriptor { fd, .. } = kind {
                self.descriptors.remove(fd);
            }
            return Ok(());
        };
        self.trace.record(known.name, began, ended, &*self.clock);
        if let Kind::Descriptor { fd, wanted, .. } = kind {
            self.descriptors.arm(fd, wanted, event).map_err(|error| {
                let name = self.trace.text(known.name);
                io::Error::new(
                    error.kind(),
                    format!(
                        "waiting for descriptor {fd} of `{name}`: {error}; remove its event before closing it"
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
        f.debug_struct("EventLoop").field("transport", &self.transport.name()).finish_non_exhaustive()
    }
}
