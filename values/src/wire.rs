//! The messages between a process and an engine, one packet each, as JSON: which import a word of
//! the page stands for, which thread a row belongs to, values that one process gives for another;
//! and the settings and questions of the user who runs the engine.
//!
//! ```text
//!     process                                    engine
//!     hello ────────────────────────────────▶   welcome, with the page's descriptor
//!     declare word 1 = "deadline" ──────────▶   done, or refused (no such import)
//!     bind row 4 to thread 1234 ────────────▶   done, or refused (not a thread of this process)
//!
//!     owner of the run, or root                 engine
//!     set period = 10ms ────────────────────▶   done, or refused (no such tunable)
//!     snapshot ─────────────────────────────▶   enclosed, with the descriptor of a text
//!     table, with its descriptor ───────────▶   reads, or refused (taken, no such layout)
//! ```
//!
//! The kernel says which process the peer is (SO_PEERCRED); nothing that a peer says about itself
//! counts. When the connection ends, so does everything that was agreed on it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The version of the protocol; both sides must have the same.
pub const VERSION: u32 = 2;
/// The longest packet, in bytes.
pub const PACKET: usize = 8192;
/// The longest list of hints, in bytes: as much as an engine reads in between.
pub const HINTS: u64 = 2 << 20;
/// Where an engine listens, unless `ATTUNE_VALUES` says otherwise.
pub const DEFAULT_PATH: &str = "/run/attune/values";
/// The environment variable that names another place.
pub const PATH_VARIABLE: &str = "ATTUNE_VALUES";

/// The longest name of an import, in bytes.
pub const NAME: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Asks for the page of the calling process.
    Hello {
        version: u32,
    },
    /// A word of the calling process's rows stands for that thread import from now on.
    Declare {
        word: u8,
        name: String,
    },
    /// A row holds the values of that thread of the calling process, until it ends or `unbind`.
    Bind {
        row: u16,
        thread: i32,
    },
    Unbind {
        row: u16,
    },
    /// Values for another process or one of its threads.
    Hint(Hint),
    /// Many of them: the descriptor of a text comes along ([`crate::enclosed`]), a list of
    /// [`Hint`], at most [`HINTS`] bytes. One that is refused does not keep the others from being
    /// given: enclosed with the answer is a list of [`Refused`].
    Hints,
    /// Changes tunables and global imports, as `attune run --set` does: `("period", "10ms")`. All
    /// of them or none. This and the following requests are for root and for the owner of the run.
    Set {
        settings: Vec<(String, String)>,
    },
    /// Asks what can be set: enclosed is a list of [`Tunable`].
    Tunables,
    /// Asks for a snapshot of the scheduler: enclosed is the engine's description.
    Snapshot,
    /// Supplies values for processes from now on until the connection ends: the descriptor of a
    /// [`table`](crate::table) comes along. For each word of a row, the thread import that it
    /// stands for, in order; None: it is the writer's own. A connection supplies one table.
    Table {
        version: u32,
        columns: Vec<Option<String>>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// The page's descriptor comes along.
    Welcome {
        scheduler: String,
        imports: Vec<Import>,
    },
    Done,
    /// The answer is the text in the memory whose descriptor comes along ([`crate::enclosed`]): it
    /// may be long.
    Enclosed,
    /// The engine reads the table. The scheduler imports these of its columns; another scheduler
    /// may import others.
    Reads {
        scheduler: String,
        columns: Vec<String>,
    },
    Refused {
        why: Refusal,
        message: String,
    },
}

/// Values that one process gives for another one (all its threads) or one of its threads; None
/// takes one back. The giver must be the same user, or root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hint {
    pub process: i32,
    pub thread: Option<i32>,
    pub values: Vec<(String, Option<i64>)>,
}

/// One of many that was not given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// Its place in the list, from 0.
    pub index: usize,
    pub why: Refusal,
    pub message: String,
}

/// A thread import of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    pub name: String,
    /// Holds for a thread without a value of its own; a time is in nanoseconds.
    pub default: i64,
    /// Only root's processes and those of the user who runs the scheduler may supply it.
    pub by_loader: bool,
}

/// What can be set while a scheduler runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunable {
    /// The scheduler that declares it.
    pub scheduler: String,
    /// Where two schedulers share a machine, the one it is: `command` or `others`.
    pub role: Option<String>,
    pub name: String,
    pub storage: Storage,
    #[serde(rename = "type")]
    pub ty: Type,
    /// A number, or a time in nanoseconds.
    pub value: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    Tunable,
    /// A global import.
    Import,
}

/// The type of a number, in a scheduler that has no floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    Int,
    Time,
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The message makes no sense, or comes out of turn.
    Garbled,
    /// The scheduler has no thread import of that name.
    UnknownImport,
    /// There is no such process, or no such thread in it.
    NoSuchThread,
    /// It belongs to another user.
    Forbidden,
    /// No page, row, word or table is left.
    Full,
    /// Another table supplies it already.
    Taken,
    /// There is no tunable of that name, or it cannot have that value.
    Unsuitable,
    /// The engine cannot do it now.
    Unable,
}

/// Where an engine listens.
pub fn path() -> PathBuf {
    std::env::var_os(PATH_VARIABLE).map_or_else(|| DEFAULT_PATH.into(), Into::into)
}

/// Where an engine that listens at `path` listens for one user alone, if it does: its door. No
/// other user's connections wait in front of it.
pub fn door(path: &Path, user: u32) -> PathBuf {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".users");
    PathBuf::from(folder).join(user.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_short_and_plain() {
        let json = |request: &Request| serde_json::to_string(request).unwrap();
        assert_eq!(json(&Request::Hello { version: 1 }), r#"{"hello":{"version":1}}"#);
        assert_eq!(
            json(&Request::Hint(Hint {
                process: 7,
                thread: None,
                values: vec![("urgent".into(), Some(1))]
            })),
            r#"{"hint":{"process":7,"thread":null,"values":[["urgent",1]]}}"#
        );
        assert!(
            serde_json::from_str::<Request>(r#"{"bind":{"row":1,"thread":2,"uid":0}}"#).is_err()
        );
    }
}
