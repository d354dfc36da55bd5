//! Which handler may follow which: the engines' protocols, as data.
//!
//! A CPU is in one of three [`Phase`]s between handlers:
//!
//! ```text
//!             init
//!   (start) ───────▶ Idle ──schedule──▶ Running       a thread was dispatched
//!                     ▲  ╲__schedule__╱   │  ▲
//!                     │   (left idle)     │  └─ newthread, event_raised, suspend, resume,
//!      the same ──────┘                   │     alarm: of another thread
//!      handlers, while                    ▼  set_waiting, set_dead, suspend_thread,
//!      the CPU is idle                 Choosing  set_next_thread, quantum_expired, then
//!                                         │      switch_out, at once
//!                                         ├──schedule, at once──▶ Running or Idle
//!                                         └──nothing──▶ Idle      kernel: the other policy, or
//!                                                                 the engine, has the CPU next
//! ```
//!
//! Where two policies share a machine, a CPU on which the other one's thread runs is idle to this
//! one, and so is a CPU on which the kernel engine itself runs a thread that waited too long.
//!
//! An [`Occasion`] is one reason for an engine to call handlers: the handlers in their order, the
//! thread that each is about, and what becomes of that thread. Between the calls of one occasion,
//! and between `switch_out` and `schedule`, no other handler runs on that CPU. A handler that the
//! policy lacks is left out of its occasion; the occasion happens all the same. Aspects around a
//! handler that the policy lacks are called as a handler is.
//!
//! Invariant: every handler that an engine can call stands in one of its occasions or is a query.

use super::Engine;
use super::event::Event;
use crate::ir::Program;

/// Where a CPU is between two occasions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No thread runs; `schedule` is called after each event.
    Idle,
    /// `switch_out` has just returned; only `schedule` can follow, or the CPU goes to another
    /// policy.
    Choosing,
    /// A thread runs: the one that `schedule` dispatched.
    Running,
}

impl Phase {
    pub const ALL: [Phase; 3] = [Phase::Idle, Phase::Choosing, Phase::Running];
}

/// What an engine knows about a thread that does not run on this CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Ready,
    Waiting,
    /// Suspended; would be ready.
    SuspendedReady,
    /// Suspended while it waits.
    SuspendedWaiting,
    /// Runs on another CPU.
    Elsewhere,
}

impl Class {
    pub const ALL: [Class; 5] = [
        Class::Ready,
        Class::Waiting,
        Class::SuspendedReady,
        Class::SuspendedWaiting,
        Class::Elsewhere,
    ];
}

/// What an occasion makes of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Becomes(Class),
    /// The engine removes it from wherever it is, if no handler destroyed it.
    Dies,
    /// The engine removes it from wherever it is; it goes on in another instance of the policy, or
    /// for a while without one.
    GoesOver,
}

/// The thread that a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The scheduler as a whole: `init`, `schedule`.
    Nobody,
    /// A thread that sits in no container yet, and is ready afterwards.
    New,
    /// The thread that runs on this CPU.
    Running,
    /// A thread that does not run on this CPU: of one of these classes, and what it becomes.
    Other(&'static [(Class, Fate)]),
    /// A thread that comes from another instance of the policy, or back to this one, where it was
    /// of one of these classes. It sits in no container yet.
    Arriving(&'static [(Class, Fate)]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub event: Event,
    pub subject: Subject,
}

/// One reason to call handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occasion {
    /// In words, after "when": `a thread wakes`.
    pub what: &'static str,
    pub phases: &'static [Phase],
    pub calls: Vec<Call>,
    /// What becomes of the running thread, which stops; None: it goes on, or there is none.
    pub stops: Option<Fate>,
    /// The CPU is idle to the policy from then on.
    pub idles: bool,
}

impl Occasion {
    /// Whether the policy chooses the next thread: a thread runs then, or the CPU is idle.
    pub fn chooses(&self) -> bool {
        self.calls.iter().any(|call| call.event == Event::Schedule)
    }
}

/// How many CPUs an engine may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    One,
    /// Handlers are atomic, but those of different CPUs interleave.
    Many,
}

/// How one engine treats one policy.
#[derive(Clone, Debug)]
pub struct Protocol {
    pub cpus: Cpus,
    pub occasions: Vec<Occasion>,
    /// Queries that may be asked in phases [`Phase::Idle`] and [`Phase::Running`], about any living
    /// thread.
    pub queries: Vec<Event>,
}

const BETWEEN: &[Phase] = &[Phase::Idle, Phase::Running];
const RUNNING: &[Phase] = &[Phase::Running];

use Class::{Elsewhere, Ready, SuspendedReady, SuspendedWaiting, Waiting};
use Fate::{Becomes, Dies, GoesOver};

const WAKES: Subject =
    Subject::Other(&[(Waiting, Becomes(Ready)), (SuspendedWaiting, Becomes(SuspendedReady))]);
const SUSPENDED: Subject =
    Subject::Other(&[(Ready, Becomes(SuspendedReady)), (Waiting, Becomes(SuspendedWaiting))]);
const RESUMED: Subject =
    Subject::Other(&[(SuspendedReady, Becomes(Ready)), (SuspendedWaiting, Becomes(Waiting))]);
const NAMED_NEXT: Subject = Subject::Other(&[(Ready, Becomes(Ready))]);
const ANY_HERE: Subject = Subject::Other(&[
    (Ready, Becomes(Ready)),
    (Waiting, Becomes(Waiting)),
    (SuspendedReady, Becomes(SuspendedReady)),
    (SuspendedWaiting, Becomes(SuspendedWaiting)),
]);
/// A thread that runs never goes over.
const LEAVES: Subject = Subject::Other(&[
    (Ready, GoesOver),
    (Waiting, GoesOver),
    (SuspendedReady, GoesOver),
    (SuspendedWaiting, GoesOver),
]);
/// The kernel engine runs a thread that waited too long; it is away while it is blocked, too.
const RESCUED: Subject = Subject::Other(&[(Ready, GoesOver)]);
const RETURNS: Subject = Subject::Arriving(&[(Ready, Becomes(Ready))]);
const ARRIVES: Subject = Subject::Arriving(&[
    (Ready, Becomes(Ready)),
    (Waiting, Becomes(Waiting)),
    (SuspendedReady, Becomes(SuspendedReady)),
    (SuspendedWaiting, Becomes(SuspendedWaiting)),
]);
/// Any living thread but this CPU's own.
pub const ANY: Subject = Subject::Other(&[
    (Ready, Becomes(Ready)),
    (Waiting, Becomes(Waiting)),
    (SuspendedReady, Becomes(SuspendedReady)),
    (SuspendedWaiting, Becomes(SuspendedWaiting)),
    (Elsewhere, Becomes(Elsewhere)),
]);
const KILLED: Subject = Subject::Other(&[
    (Ready, Dies),
    (Waiting, Dies),
    (SuspendedReady, Dies),
    (SuspendedWaiting, Dies),
    (Elsewhere, Dies),
]);

impl Protocol {
    /// Whether the other engine does the same to a policy, apart from queries that it never asks.
    pub fn covers(&self, other: &Protocol) -> bool {
        self.cpus == other.cpus
            && self.occasions == other.occasions
            && other.queries.iter().all(|query| self.queries.contains(query))
    }

    /// What a cluster may do to a master: nodes come and go, one at a time.
    pub fn of_master(program: &Program) -> Protocol {
        let mut occasions = Vec::new();
        for (what, event, subject) in [
            ("a node comes", Event::NewThread, Subject::New),
            ("a node goes", Event::SetDead, KILLED),
        ] {
            if program.handler(event).is_some() {
                let calls = vec![Call { event, subject }];
                let phases = &[Phase::Idle];
                occasions.push(Occasion { what, phases, calls, stops: None, idles: false });
            }
        }
        Protocol { cpus: Cpus::One, occasions, queries: Vec::new() }
    }

    /// What `engine` may do to a policy with the handlers of `program`.
    pub fn of(engine: Engine, program: &Program) -> Protocol {
        let cpus = match engine {
            Engine::Simulator | Engine::Kernel => Cpus::Many,
            Engine::Threads | Engine::Embedded => Cpus::One,
        };
        let called = |event: Event| calls(engine, event) && program.handler(event).is_some();
        let mut occasions = Vec::new();
        let mut add = |what, phases, calls: &[(Event, Subject)], stops: Option<Fate>| {
            let calls = calls.iter().filter(|(event, _)| called(*event));
            let calls: Vec<Call> = calls.map(|&(event, subject)| Call { event, subject }).collect();
            if !calls.is_empty() || stops.is_some() {
                occasions.push(Occasion { what, phases, calls, stops, idles: false });
            }
        };

        add(
            "the CPU needs a thread",
            &[Phase::Idle, Phase::Choosing],
            &[(Event::Schedule, Subject::Nobody)],
            None,
        );
        add("a thread is created", BETWEEN, &[(Event::NewThread, Subject::New)], None);

        let out = (Event::SwitchOut, Subject::Running);
        add("the running thread yields", RUNNING, &[out], Some(Becomes(Ready)));
        add(
            "the running thread's slice is used up",
            RUNNING,
            &[(Event::QuantumExpired, Subject::Running), out],
            Some(Becomes(Ready)),
        );
        add(
            "the running thread yields to another by name",
            RUNNING,
            &[(Event::SetNextThread, NAMED_NEXT), out],
            Some(Becomes(Ready)),
        );
        add(
            "the running thread blocks",
            RUNNING,
            &[(Event::SetWaiting, Subject::Running), out],
            Some(Becomes(Waiting)),
        );
        let suspend = [(Event::SuspendThread, Subject::Running), out];
        add("the running thread suspends itself", RUNNING, &suspend, Some(Becomes(SuspendedReady)));
        add(
            "the running thread ends",
            RUNNING,
            &[(Event::SetDead, Subject::Running), out],
            Some(Dies),
        );

        add("what a thread waited for has come", BETWEEN, &[(Event::EventRaised, WAKES)], None);
        add("a thread is suspended", BETWEEN, &[(Event::SuspendThread, SUSPENDED)], None);
        add("a thread is resumed", BETWEEN, &[(Event::ResumeThread, RESUMED)], None);
        // A policy that does not know of waiting is told by the handlers for suspending.
        if !called(Event::SetWaiting) && called(Event::SuspendThread) {
            add("the running thread blocks", RUNNING, &suspend, Some(Becomes(Waiting)));
        }
        if !called(Event::EventRaised) && called(Event::ResumeThread) {
            add(
                "what a thread waited for has come",
                BETWEEN,
                &[(Event::ResumeThread, WAKES)],
                None,
            );
        }

        let living = if cpus == Cpus::Many { ANY } else { ANY_HERE };
        add("another thread's alarm is due", BETWEEN, &[(Event::Alarm, living)], None);
        add(
            "the running thread's alarm is due",
            RUNNING,
            &[(Event::Alarm, Subject::Running)],
            None,
        );
        if engine == Engine::Kernel {
            add("another thread is killed", BETWEEN, &[(Event::SetDead, KILLED)], None);
            add(
                "the running thread is taken away",
                RUNNING,
                &[(Event::SetDead, Subject::Running)],
                Some(Dies),
            );
            // `set_dead` ran on another CPU. No handler is called about the thread any more.
            add("the running thread is taken away from elsewhere", RUNNING, &[], Some(Dies));
            occasions.push(Occasion {
                what: "another policy, or the engine, has the CPU next",
                phases: &[Phase::Choosing],
                calls: Vec::new(),
                stops: None,
                idles: true,
            });
        }

        // An engine runs a policy as several instances only if it says how threads arrive. The
        // default of `lifecycle` does not count. It does where the kernel engine runs a thread that
        // waited too long; a policy with none at all is told of an end and a new thread.
        let goes_and_comes = match () {
            () if !called(Event::Arrives) => None,
            () if program.may_be_split => Some([
                ("a thread goes over to another instance", LEAVES),
                ("a thread comes from another instance", ARRIVES),
            ]),
            () if engine == Engine::Kernel => Some([
                ("the engine runs a thread that has waited too long", RESCUED),
                ("a thread comes back that the engine has run", RETURNS),
            ]),
            () => None,
        };
        for (event, (what, subject)) in
            [Event::Leaves, Event::Arrives].into_iter().zip(goes_and_comes.into_iter().flatten())
        {
            let calls = vec![Call { event, subject }];
            occasions.push(Occasion { what, phases: BETWEEN, calls, stops: None, idles: false });
        }

        let queries =
            Event::ALL.into_iter().filter(|event| event.is_query() && called(*event)).collect();
        Protocol { cpus, occasions, queries }
    }
}

/// Whether the engine ever calls handlers of that name.
pub fn calls(engine: Engine, event: Event) -> bool {
    match engine {
        // A policy for threads is compiled once, for programs that opt into preemption and for
        // others. So what is proved of it holds where a thread may be stopped at any safe point.
        Engine::Simulator | Engine::Kernel | Engine::Threads => true,
        // It asks nothing but whether a thread may run next.
        Engine::Embedded => match event {
            Event::CanSwitchTo => true,
            Event::QuantumExpired => false,
            event => !event.is_query(),
        },
    }
}
