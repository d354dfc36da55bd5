//! The writer's side of a table by process (`attune_values::table`): hands it to the engine that
//! runs, and to each that runs later.
//!
//! Needs root, or the user who runs the engine.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use attune_linux::poll;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{self, Refusal, Reply, Request, VERSION};

/// An engine that does not answer for so long is asked again later.
const PATIENCE: Duration = Duration::from_secs(1);

/// A table on its way to engines. Dropping it takes the table away from the engine that reads it.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Option<String>>,
    reader: Option<Connection>,
    /// What was told last, so that each thing is told once.
    refused: Option<String>,
}

/// What has changed about the reader of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The scheduler reads these columns from now on; it may be none.
    Read { scheduler: String, columns: Vec<String> },
    /// The scheduler has ended.
    Ended,
    /// An engine runs, and does not take the table, for this reason.
    Refused(String),
}

impl Table {
    /// `columns`: for each word of a row, the import that it is; None: it is the writer's own.
    pub fn new(columns: &[Option<&str>]) -> Table {
        let columns = columns.iter().map(|name| name.map(str::to_owned)).collect();
        Table { columns, reader: None, refused: None }
    }

    /// Whether an engine has the table now, as far as is known.
    pub fn is_read(&self) -> bool {
        self.reader.is_some()
    }

    /// Looks whether the reader is still there, or else for one; to be called now and then. `map`:
    /// the table. Waits for the answer of an engine that has just come, else not at all.
    pub fn keep(&mut self, map: BorrowedFd) -> Option<Change> {
        if let Some(reader) = &self.reader {
            if lives(reader) {
                return None;
            }
            self.reader = None;
            return Some(Change::Ended);
        }
        match self.offer(map) {
            Ok((reader, change)) => {
                self.refused = None;
                self.reader = Some(reader);
                Some(change)
            }
            // No engine runs, or it is about to end.
            Err(None) => {
                self.refused = None;
                None
            }
            Err(Some(why)) => {
                let new = self.refused.as_ref() != Some(&why);
                self.refused = Some(why.clone());
                new.then_some(Change::Refused(why))
            }
        }
    }

    fn offer(&self, map: BorrowedFd) -> Result<(Connection, Change), Option<String>> {
        let none = |_: io::Error| None;
        let reader = Connection::to(&wire::path(), PATIENCE).map_err(none)?;
        let request = Request::Table { version: VERSION, columns: self.columns.clone() };
        reader.send(&request, Some(map)).map_err(none)?;
        match reader.receive().map_err(none)? {
            Received::Message(Reply::Reads { scheduler, columns }, _) => {
                Ok((reader, Change::Read { scheduler, columns }))
            }
            Received::Message(Reply::Refused { why: Refusal::Garbled, message }, _) => {
                Err(Some(format!("{message} (is it of another version?)")))
            }
            Received::Message(Reply::Refused { message, .. }, _) => Err(Some(message)),
            _ => Err(None),
        }
    }
}

/// An engine says nothing more on this connection, so there is something to read only at its end.
fn lives(connection: &Connection) -> bool {
    !poll::is_readable(connection).unwrap_or(false)
}
