//! What is observed of a desktop, as data: the only thing that ratings depend on. A recording is a
//! sequence of these, and a replay gives the same ratings again.

pub use attune_linux::time::{SECOND, Time};
use serde::{Deserialize, Serialize};

use crate::process::Process;

/// In this time a client changes a pixel once or not at all.
pub const INTERVAL: Time = 40_000_000;

/// A kind of interaction. Which key it was is never observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interaction {
    Key,
    Click,
    Scroll,
    Motion,
    /// One of its windows has the focus.
    Focus,
    /// It has the focus, and the display server woke it: perhaps for input.
    Woken,
}

impl Interaction {
    /// A person meant this program when a key was pressed or a button was clicked. A pointer
    /// crosses windows on its way.
    pub fn is_deliberate(self) -> bool {
        matches!(self, Interaction::Key | Interaction::Click)
    }
}

/// An event that a display delivered to a client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub process: Process,
    pub interaction: Interaction,
    pub at: Time,
}

/// What a client of a display or a sound server shows and is, over one second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Client {
    pub process: Process,
    /// The part of the screen that it changed, visibly, in the mean interval: 0 to 1.
    pub changed: f64,
    /// The part of the screen that its windows fill and nothing covers: 0 to 1.
    pub visible: f64,
    pub focused: bool,
    /// It plays sound that can be heard.
    #[serde(default)]
    pub audible: bool,
    /// The display tells its input and what it changes. Otherwise, as on Wayland, both are guessed
    /// from the wake-ups between the client and the display server.
    #[serde(default = "yes")]
    pub told: bool,
}

fn yes() -> bool {
    true
}

impl Client {
    /// A process that shows nothing.
    pub fn unseen(process: Process) -> Client {
        Client { process, changed: 0.0, visible: 0.0, focused: false, audible: false, told: true }
    }
}

/// So many times a thread of one process woke a thread of the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wakes {
    pub from: Process,
    pub to: Process,
    pub count: u64,
}

/// How the kernel's program handed ratings on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handed {
    /// A rated process woke one that was not.
    Wake,
    /// A rated process started one.
    Fork,
}

/// Ratings that a process was handed since the last second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handover {
    pub from: Process,
    pub to: Process,
    pub how: Handed,
    pub input: f64,
    pub output: f64,
    pub at: Time,
}

/// A process that was seen for the first time, or has another name now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    pub process: Process,
    pub name: String,
    pub parent: Option<Process>,
}

/// CPU time that a process used, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Used {
    pub process: Process,
    pub time: Time,
}

/// All that was observed in one second, input apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    pub at: Time,
    /// Each client of each display, and each process that can be heard, as of now.
    pub clients: Vec<Client>,
    /// Display servers: hubs, as important as the most important of their clients.
    pub servers: Vec<Process>,
    /// Sound servers: as important as the most important process that they play.
    #[serde(default)]
    pub sound_servers: Vec<Process>,
    pub wakes: Vec<Wakes>,
    pub handovers: Vec<Handover>,
    pub programs: Vec<Program>,
    pub ended: Vec<Process>,
    /// What processes computed, those with the most; only for recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<Used>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    Input(Input),
    Second(Second),
}
