//! Writes what the supervisor says: notes when something happens, and how everything stands. They
//! are for people and, as JSON, for programs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something happened. `process` is the program's number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// Threads that a killed tuner had left under reservation were given back.
    Repaired {
        threads: usize,
    },
    Listening {
        process: u32,
        name: String,
    },
    /// Nothing is heard, and it waits for a CPU; it has what it waits for while it is listened to.
    /// `waited`: threads that wait, on average.
    Trial {
        process: u32,
        name: String,
        waited: f64,
    },
    /// A beat was found, or another than before.
    Beat {
        process: u32,
        name: String,
        frequency_hz: f64,
        period_ms: f64,
        confidence: f64,
        after_ms: f64,
    },
    /// Nothing repeats in the program; the supervisor listens to it again later.
    NoBeat {
        process: u32,
        name: String,
        again_s: f64,
    },
    /// It kept its beat no longer and is scheduled as before.
    BeatLost {
        process: u32,
        name: String,
    },
    /// A thread cannot have a reservation.
    Refused {
        process: u32,
        thread: u32,
        name: String,
        why: String,
    },
    /// It used up whatever it was given, for seconds: no job of a beat does.
    Insatiable {
        process: u32,
        thread: u32,
        name: String,
        again_s: f64,
    },
    /// More is wanted than may be given: bandwidths in CPUs.
    Compressed {
        wanted: f64,
        bound: f64,
    },
    /// The guardian was killed; there is another.
    GuardianRestarted,
    /// The recording was too fast for us.
    Lost {
        events: u64,
    },
    Ended {
        process: u32,
        name: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Note::Repaired { threads } => {
                write!(
                    f,
                    "a tuner was killed earlier: {threads} threads have their old scheduling back"
                )
            }
            Note::Listening { process, name } => write!(f, "{name} ({process}): listening"),
            Note::Trial { process, name, waited } => write!(
                f,
                "{name} ({process}): {waited:.1} of its threads wait for a CPU; they have what \
                 they wait for while it is listened to"
            ),
            Note::Beat { process, name, frequency_hz, period_ms, confidence, after_ms } => write!(
                f,
                "{name} ({process}): {frequency_hz:.3} Hz, period {period_ms:.3} ms, confidence \
                 {confidence:.2}, after {after_ms:.0} ms"
            ),
            Note::NoBeat { process, name, again_s } => {
                write!(
                    f,
                    "{name} ({process}): no beat heard; it stays as it is, next try in \
                     {again_s:.0} s"
                )
            }
            Note::BeatLost { process, name } => {
                write!(f, "{name} ({process}): its beat is gone; it is scheduled as before")
            }
            Note::Refused { process, thread, name, why } => {
                write!(f, "{name} ({process}), thread {thread}: no reservation: {why}")
            }
            Note::Insatiable { process, thread, name, again_s } => write!(
                f,
                "{name} ({process}), thread {thread}: uses up whatever it is given; scheduled as \
                 before for {again_s:.0} s"
            ),
            Note::Compressed { wanted, bound } => {
                write!(
                    f,
                    "{wanted:.2} CPUs are wanted and {bound:.2} may be given: budgets are cut by \
                     weight"
                )
            }
            Note::GuardianRestarted => write!(f, "the guardian was killed; there is a new one"),
            Note::Lost { events } => {
                write!(f, "{events} events were lost while listening; the verdict waits")
            }
            Note::Ended { process, name } => write!(f, "{name} ({process}): ended"),
        }
    }
}

/// How everything stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Bandwidth that may be given and that is given, in CPUs.
    pub bound: f64,
    pub given: f64,
    pub guardian: u32,
    pub programs: Vec<ProgramStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramStatus {
    pub process: u32,
    pub name: String,
    pub weight: f64,
    pub listening: bool,
    pub frequency_hz: Option<f64>,
    pub period_ms: Option<f64>,
    pub confidence: Option<f64>,
    /// CPU time given and used by its threads under reservation so far, in ms.
    pub given_ms: f64,
    pub used_ms: f64,
    pub threads: Vec<TaskStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    pub thread: u32,
    pub name: String,
    /// None without a reservation.
    pub period_ms: Option<f64>,
    pub budget_ms: Option<f64>,
    /// Used in its last period.
    pub used_ms: f64,
    /// Why it has none.
    pub refused: Option<String>,
}
