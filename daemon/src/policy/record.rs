//! What is known of the run that holds a policy in the kernel, and of the one before it: two files
//! in the state folder, `run.json` and `last-run.json`.
//!
//! The process that holds the policy writes them, so they are true also while no service runs.
//! A record without an end whose process is gone tells that the process was killed. Times are
//! seconds since 1970.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use attune_linux::process::Process;
use attune_linux::procfs;
use serde::{Deserialize, Serialize};

use super::files;

/// A run of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The process that holds it, and when that started, in clock ticks since boot.
    pub process: u32,
    pub start: u64,
    /// The policy's name; of two, both.
    pub scheduler: String,
    /// `attuned` started it with these words.
    pub words: Option<Vec<String>>,
    /// When the policy began to schedule; None: it has not yet.
    pub since: Option<u64>,
    pub ended: Option<End>,
    /// The runs that have joined it, in their order; the last one holds all policies now.
    #[serde(default)]
    pub joined: Vec<Joined>,
}

/// A run that has joined another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    pub process: u32,
    pub scheduler: String,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub at: u64,
    pub cause: Cause,
    /// For a person.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A user or the service ended it, or its command is over.
    Asked,
    /// The kernel threw the policy out.
    Kernel,
    /// It never began to schedule.
    Start,
    /// Its process was killed, and nobody wrote down why.
    Killed,
}

/// What is running, and what ran before.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Runs {
    pub now: Option<Record>,
    pub last: Option<Record>,
}

fn now_file(folder: &Path) -> PathBuf {
    folder.join("run.json")
}

fn last_file(folder: &Path) -> PathBuf {
    folder.join("last-run.json")
}

/// In seconds since 1970.
pub fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Record {
    /// A run that this process holds.
    pub fn new(scheduler: String, words: Option<Vec<String>>) -> Record {
        let process = std::process::id();
        let start = procfs::start_time(process).unwrap_or(0);
        Record { process, start, scheduler, words, since: None, ended: None, joined: Vec::new() }
    }

    /// Its process, if that lives.
    pub fn alive(&self) -> Option<Process> {
        let process = Process::open(self.process).ok()?;
        (procfs::start_time(self.process) == Some(self.start) && process.lives()).then_some(process)
    }

    /// From now on this is the run; what was it before is the last one.
    pub fn begin(&self, folder: &Path) -> io::Result<()> {
        if let Some(before) = files::read::<Record>(&now_file(folder))
            && before.process != self.process
        {
            files::write(&last_file(folder), &before.told())?;
        }
        files::write(&now_file(folder), self)
    }

    pub fn end(&mut self, folder: &Path, cause: Cause, why: String) -> io::Result<()> {
        self.ended = Some(End { at: wall_clock(), cause, why });
        self.begin(folder)
    }

    /// The record with an end, if its process is gone.
    fn told(mut self) -> Record {
        if self.ended.is_none() && self.alive().is_none() {
            let why = format!("its process {} was killed", self.process);
            self.ended = Some(End { at: wall_clock(), cause: Cause::Killed, why });
        }
        self
    }
}

impl Runs {
    pub fn read(folder: &Path) -> Runs {
        let newest = files::read::<Record>(&now_file(folder)).map(Record::told);
        match newest {
            Some(ended) if ended.ended.is_some() => Runs { now: None, last: Some(ended) },
            now => Runs { now, last: files::read(&last_file(folder)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_ends_becomes_the_last_one_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Record::new("fair".to_owned(), None);
        run.begin(folder.path()).unwrap();
        assert_eq!(Runs::read(folder.path()), Runs { now: Some(run.clone()), last: None });
        run.end(folder.path(), Cause::Kernel, "a check failed".to_owned()).unwrap();
        let runs = Runs::read(folder.path());
        let end = runs.last.unwrap().ended.unwrap();
        assert_eq!(
            (runs.now, end.cause, end.why.as_str()),
            (None, Cause::Kernel, "a check failed")
        );
    }

    #[test]
    fn a_process_that_wrote_no_end_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let mut gone = Record::new("edf".to_owned(), None);
        (gone.process, gone.start) = (child.id(), 1);
        child.wait().unwrap();
        gone.begin(folder.path()).unwrap();
        let last = Runs::read(folder.path()).last.unwrap();
        assert_eq!(last.ended.unwrap().cause, Cause::Killed);
        // The next run does not hide it.
        let now = Record::new("fair".to_owned(), None);
        now.begin(folder.path()).unwrap();
        let runs = Runs::read(folder.path());
        assert_eq!(runs.now, Some(now));
        assert_eq!(runs.last.unwrap().ended.unwrap().cause, Cause::Killed);
    }

    #[test]
    fn a_half_written_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(now_file(folder.path()), "{\"process\":").unwrap();
        assert_eq!(Runs::read(folder.path()), Runs::default());
    }
}
