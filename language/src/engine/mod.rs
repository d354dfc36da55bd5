//! What the front end knows of engines: the handlers that they call and in which order, what each
//! requires of a scheduler, and what it says of one.
//!
//! - [`event`]: the events and queries
//! - [`protocol`]: which handler may follow which
//! - [`requirements`]: what an engine refuses, and why; [`limits`]: what the kernel engine cannot
//!   have
//! - [`report`]: what an engine says of a checked scheduler
//!
//! Invariant: nothing here computes what a policy means; the analyses do, by these rules.

pub mod event;
pub mod limits;
pub mod protocol;
pub(crate) mod report;
pub mod requirements;

use std::fmt;

/// An engine, as the front end knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    Simulator,
    Threads,
    Embedded,
    Kernel,
}

impl Engine {
    pub const ALL: [Engine; 4] =
        [Engine::Simulator, Engine::Threads, Engine::Embedded, Engine::Kernel];

    pub fn name(self) -> &'static str {
        match self {
            Engine::Simulator => "simulator",
            Engine::Threads => "threads",
            Engine::Embedded => "embedded",
            Engine::Kernel => "kernel",
        }
    }

    pub fn from_name(name: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
