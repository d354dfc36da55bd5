//! What outlives an engine: the hints that were given, and which processes supply values, in a file
//! that the next engine reads. So a hint stays until its process ends, and the next engine can wait
//! until the programs have come that were there before.
//!
//! Invariant: an entry belongs to one process, told from a later one of its number by its start.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use attune_linux::procfs;
use serde::{Deserialize, Serialize};

/// A process, and the time at which it started, in clock ticks since boot.
type Who = (i32, u64);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    pub clients: Vec<Known>,
    pub hints: Vec<Hint>,
}

/// A process that supplies values itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    pub process: Who,
    /// How many words it has named, and for how many threads: so much is to come.
    pub words: usize,
    pub rows: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    pub process: Who,
    pub thread: Option<i32>,
    pub name: String,
    pub value: i64,
    /// The user who gave it: the next engine asks again whether that one may.
    pub giver: u32,
}

fn lives((number, start): Who) -> bool {
    procfs::start_time(number as u32) == Some(start)
}

impl Kept {
    /// What is kept of processes that live. A file that is not there, or is none of ours, holds
    /// nothing.
    pub fn read(path: &Path) -> Kept {
        let kept = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let mut kept: Kept = kept.unwrap_or_default();
        kept.clients.retain(|client| lives(client.process));
        kept.hints.retain(|hint| lives(hint.process));
        kept
    }

    /// A reader sees the old file or the new one.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        fs::write(&fresh, serde_json::to_vec(self)?)?;
        fs::rename(&fresh, path)
    }
}

/// The hints that hold now, whether or not this engine's scheduler has the import.
#[derive(Debug, Default)]
pub struct Hints(BTreeMap<(i32, Option<i32>, String), Given>);

#[derive(Debug)]
struct Given {
    giver: u32,
    /// When the process started.
    start: u64,
    value: i64,
}

impl Hints {
    pub fn set(&mut self, hint: Hint) {
        let Hint { process: (process, start), thread, name, value, giver } = hint;
        self.0.insert((process, thread, name), Given { giver, start, value });
    }

    /// It was taken back.
    pub fn unset(&mut self, process: i32, thread: Option<i32>, name: &str) {
        self.0.remove(&(process, thread, name.to_owned()));
    }

    /// The process has ended.
    pub fn forget(&mut self, process: i32) {
        let first = (process, None, String::new());
        let theirs = self.0.range(first..).take_while(|(key, _)| key.0 == process);
        for key in theirs.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.0.remove(&key);
        }
    }

    /// Those of processes that live. `known` says which live; the kernel is asked of the others.
    pub fn all(&self, known: impl Fn(i32) -> bool) -> Vec<Hint> {
        let hint = |(key, given): (&(i32, Option<i32>, String), &Given)| Hint {
            process: (key.0, given.start),
            thread: key.1,
            name: key.2.clone(),
            value: given.value,
            giver: given.giver,
        };
        let lives = |hint: &Hint| known(hint.process.0) || lives(hint.process);
        self.0.iter().map(hint).filter(lives).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_for_processes_that_live() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        let own = std::process::id() as i32;
        let start = procfs::start_time(own as u32).unwrap();
        let mut hints = Hints::default();
        let hint = |thread, name: &str, value| {
            let (process, name) = ((own, start), name.to_owned());
            Hint { process, thread, name, value, giver: 0 }
        };
        hints.set(hint(None, "urgent", 1));
        hints.set(hint(Some(own), "urgent", 2));
        hints.set(hint(Some(own), "deadline", 3));
        hints.unset(own, Some(own), "deadline");
        let client = |start| Known { process: (own, start), words: 1, rows: 1 };
        let kept =
            Kept { clients: vec![client(start), client(start + 1)], hints: hints.all(|_| false) };
        kept.write(&path).unwrap();
        let read = Kept::read(&path);
        assert_eq!(read.clients, [client(start)]);
        let values: Vec<i64> = read.hints.iter().map(|hint| hint.value).collect();
        assert_eq!(values, [1, 2]);
        fs::write(&path, "{\"clients\": 7}").unwrap();
        assert_eq!(Kept::read(&path), Kept::default());
    }
}
