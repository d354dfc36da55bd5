//! The events and queries that an engine may call.
//!
//! Invariant: the order of [`Event::ALL`] is the order of `enum attune_event` in the ABI of
//! compiled schedulers.

use std::fmt;

/// A handler's name: what happened (events), or what is asked (queries).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Event {
    Init,
    NewThread,
    Schedule,
    SwitchOut,
    EventRaised,
    SetNextThread,
    SetWaiting,
    SetDead,
    SuspendThread,
    ResumeThread,
    QuantumExpired,
    Alarm,
    TimesliceLeft,
    ThreadsNew,
    ThreadsReady,
    ThreadsWaiting,
    ThreadsSuspended,
    ThreadsTotal,
    IsNew,
    IsReady,
    IsWaiting,
    CanSwitchTo,
    FirstWaiting,
    Leaves,
    Arrives,
}

/// Whether a handler names the thread that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    None,
    /// `switch_out` or `switch_out(t)`.
    Optional,
    Required,
    /// Required, and the handler must not move the thread: written `(fixed t)`.
    Fixed,
}

/// What a handler answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An event: it acts and answers nothing.
    Nothing,
    Int,
    Time,
    /// A thread, or none.
    Thread,
}

impl Event {
    pub const ALL: [Event; 25] = [
        Event::Init,
        Event::NewThread,
        Event::Schedule,
        Event::SwitchOut,
        Event::EventRaised,
        Event::SetNextThread,
        Event::SetWaiting,
        Event::SetDead,
        Event::SuspendThread,
        Event::ResumeThread,
        Event::QuantumExpired,
        Event::Alarm,
        Event::TimesliceLeft,
        Event::ThreadsNew,
        Event::ThreadsReady,
        Event::ThreadsWaiting,
        Event::ThreadsSuspended,
        Event::ThreadsTotal,
        Event::IsNew,
        Event::IsReady,
        Event::IsWaiting,
        Event::CanSwitchTo,
        Event::FirstWaiting,
        Event::Leaves,
        Event::Arrives,
    ];

    /// The name as written in a scheduler.
    pub fn name(self) -> &'static str {
        match self {
            Event::Init => "init",
            Event::NewThread => "newthread",
            Event::Schedule => "schedule",
            Event::SwitchOut => "switch_out",
            Event::EventRaised => "event_raised",
            Event::SetNextThread => "set_next_thread",
            Event::SetWaiting => "set_waiting",
            Event::SetDead => "set_dead",
            Event::SuspendThread => "suspend_thread",
            Event::ResumeThread => "resume_thread",
            Event::QuantumExpired => "quantum_expired",
            Event::Alarm => "alarm",
            Event::TimesliceLeft => "timeslice_left",
            Event::ThreadsNew => "threads_new",
            Event::ThreadsReady => "threads_ready",
            Event::ThreadsWaiting => "threads_waiting",
            Event::ThreadsSuspended => "threads_suspended",
            Event::ThreadsTotal => "threads_total",
            Event::IsNew => "is_new",
            Event::IsReady => "is_ready",
            Event::IsWaiting => "is_waiting",
            Event::CanSwitchTo => "can_switch_to",
            Event::FirstWaiting => "first_waiting",
            Event::Leaves => "leaves",
            Event::Arrives => "arrives",
        }
    }

    pub fn from_name(name: &str) -> Option<Event> {
        Event::ALL.into_iter().find(|event| event.name() == name)
    }

    pub fn is_query(self) -> bool {
        self.answer() != Answer::Nothing
    }

    pub fn answer(self) -> Answer {
        match self {
            Event::FirstWaiting => Answer::Thread,
            Event::TimesliceLeft => Answer::Time,
            Event::Leaves | Event::Arrives => Answer::Nothing,
            event if event as u8 > Event::TimesliceLeft as u8 => Answer::Int,
            _ => Answer::Nothing,
        }
    }

    pub fn parameter(self) -> Parameter {
        match self {
            Event::SwitchOut => Parameter::Optional,
            Event::SetWaiting | Event::SetDead => Parameter::Fixed,
            Event::NewThread
            | Event::EventRaised
            | Event::SetNextThread
            | Event::SuspendThread
            | Event::ResumeThread
            | Event::QuantumExpired
            | Event::Alarm
            | Event::Leaves
            | Event::Arrives
            | Event::IsNew
            | Event::IsReady
            | Event::IsWaiting
            | Event::CanSwitchTo => Parameter::Required,
            _ => Parameter::None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
