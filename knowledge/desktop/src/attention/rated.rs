//! The ratings of one process, how they move, and why it has them.

use serde::Serialize;

use crate::observation::{Handed, Time};
use crate::process::Process;
use crate::rating::{Class, smoothed};

/// Why a process has a rating.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It came this way, from a client of the display to this process; a path of one is the
    /// client's own.
    Path(Vec<Process>),
    /// It is the display server of this client.
    Serves(Process),
    /// It is the sound server that plays what comes from this client.
    Plays(Process),
    /// The kernel's program handed it on, between two seconds.
    Handed { from: Process, how: Handed },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rating {
    pub value: f64,
    /// What reached it in the last second; below `value` it fades.
    pub new: f64,
    /// The highest value since the process is rated.
    pub highest: f64,
    pub cause: Option<Cause>,
}

impl Rating {
    /// The processes by which it came.
    pub(super) fn through(&self) -> &[Process] {
        match &self.cause {
            Some(Cause::Path(path)) => path,
            Some(
                Cause::Serves(other) | Cause::Plays(other) | Cause::Handed { from: other, .. },
            ) => std::slice::from_ref(other),
            None => &[],
        }
    }

    pub(super) fn follow(&mut self, new: f64, cause: Option<Cause>) {
        self.value = smoothed(self.value, new);
        self.new = new;
        self.highest = self.highest.max(self.value);
        if cause.is_some() {
            self.cause = cause;
        }
    }

    pub(super) fn lift(&mut self, value: f64, cause: Cause) {
        if value > self.value {
            self.value = value;
            self.new = value;
            self.highest = self.highest.max(value);
            self.cause = Some(cause);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rated {
    pub input: Rating,
    pub output: Rating,
    pub class: Class,
    /// Since when it has been rated without a break.
    pub since: Time,
}

/// The ratings that a process had until they faded away.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    pub rated: Rated,
    pub until: Time,
}

impl Rated {
    pub(super) fn fresh(since: Time) -> Rated {
        let (input, output) = (Rating::default(), Rating::default());
        Rated { input, output, class: Class::Hidden, since }
    }
}
