//! Keeps the configured policy in the kernel: starts the process that holds it, and starts it again
//! when it has ended ([`super::pace`]). While none runs, the kernel's fair class has the machine.
//!
//! Invariant: at most one holder of this service lives. One that a killed service has left is taken
//! over if it holds what the configuration says now, and else ended first.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use attune_kernel::support;
use attune_linux::process::Process;
use attune_linux::signal;
use attune_linux::time::{self, MILLISECOND, SECOND, Time};
use serde::{Deserialize, Serialize};

use super::pace::Pace;
use super::{Cause, Policy, Record, Runs};

/// How often a holder is looked at.
pub const LOOK: Time = 50 * MILLISECOND;
/// How often the kernel is asked whether another's scheduler has left.
const LOOK_FOR_ROOM: Time = 200 * MILLISECOND;
/// The word of `attune run` for a process that stands by.
pub const STANDBY: &str = "--standby";
/// A process that stood by and ended is started again after so long.
const STANDBY_AGAIN: Time = 5 * SECOND;
/// So long the service waits for the process that stands by, after the holder was killed.
const REPLACED: Time = 20 * SECOND;
/// A holder that does not end for so long after SIGTERM is killed.
const PATIENCE: Time = 10 * SECOND;

pub struct Keeper {
    words: Vec<String>,
    scheduler: String,
    /// Paths of the configuration begin here.
    home: PathBuf,
    /// Where records lie.
    folder: PathBuf,
    holder: Option<Holder>,
    /// Has loaded the policy, and takes the holder's place if that is killed.
    standby: Option<Holder>,
    /// When one is started again.
    next_standby: Time,
    state: State,
    starts: u64,
    /// When it is started again.
    next: Time,
    pace: Pace,
}

struct Holder {
    process: Process,
    number: u32,
    /// None: an earlier service started it.
    child: Option<Child>,
}

/// How the service stands with its policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A process compiles or loads it.
    Starts,
    Runs,
    /// It is started again later, for this reason.
    Waits(String),
}

/// The service's policy, for `attune status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// As the configuration names it.
    pub scheduler: String,
    pub state: State,
    /// How often this service has started it.
    pub starts: u64,
    /// Until the next start.
    pub again_in_ms: Option<u64>,
}

impl Keeper {
    /// `home`: the configuration's folder. `folder`: where state lies.
    pub fn new(policy: &Policy, home: &Path, folder: &Path) -> Keeper {
        Keeper {
            words: policy.words(),
            scheduler: policy.scheduler.display().to_string(),
            home: home.to_owned(),
            folder: folder.to_owned(),
            holder: None,
            standby: None,
            next_standby: 0,
            state: State::Starts,
            starts: 0,
            next: 0,
            pace: Pace::default(),
        }
    }

    /// Takes a holder over that an earlier service has left, or ends it if it holds something else.
    /// What happened, for the log.
    pub fn take_over(&mut self) -> Option<String> {
        let (record, process) = left_over(&self.folder)?;
        if self.standby.as_ref().is_some_and(|standby| standby.number == record.process) {
            // It has the turn since the last look, and is no stranger.
            return None;
        }
        let holder = Holder { process, number: record.process, child: None };
        if record.words.as_ref() != Some(&self.words) {
            end(holder);
            return Some(format!("ended {}, which an earlier service had left", record.scheduler));
        }
        self.state = State::Starts;
        self.holder = Some(holder);
        Some(format!("takes over {}, which an earlier service has left", record.scheduler))
    }

    /// Looks at the holder, and starts one when it is time. What happened, for the log. To be
    /// called every [`LOOK`].
    pub fn step(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        match self.holder.take() {
            Some(holder) if holder.process.lives() => {
                let runs = Runs::read(&self.folder).now;
                let runs = runs.is_some_and(|it| it.process == holder.number && it.since.is_some());
                if runs && self.state != State::Runs {
                    notes.push(format!("{} schedules this machine", self.scheduler));
                    self.state = State::Runs;
                }
                self.holder = Some(holder);
            }
            Some(holder) => notes.extend(self.ended(holder)),
            None if self.is_replaced() => {
                self.holder = self.standby.take();
                self.state = State::Starts;
                self.starts += 1;
            }
            // The process that stood by for an earlier service may have the turn only now.
            None => match self.take_over() {
                Some(note) => notes.push(note),
                None if time::now() >= self.next => notes.extend(self.start()),
                None => {}
            },
        }
        self.keep_standby();
        notes
    }

    /// Whether the process that stood by has the turn now.
    fn is_replaced(&self) -> bool {
        let now = Runs::read(&self.folder).now.map(|run| run.process);
        self.standby.as_ref().is_some_and(|standby| now == Some(standby.number))
    }

    /// While the policy runs, one process stands by.
    fn keep_standby(&mut self) {
        if self.standby.as_ref().is_some_and(|standby| !standby.process.lives()) {
            self.standby.take().into_iter().for_each(end);
            self.next_standby = time::now() + STANDBY_AGAIN;
        }
        if self.state == State::Runs
            && self.standby.is_none()
            && time::now() >= self.next_standby
            // Without one the policy takes longer to come back, and that is all.
            && let Ok(standby) = self.spawn(true)
        {
            self.standby = Some(standby);
        }
    }

    /// The holder is gone.
    fn ended(&mut self, mut holder: Holder) -> Option<String> {
        if let Some(child) = &mut holder.child {
            // It has ended, so this does not wait.
            let _ = child.wait();
        }
        let last = Runs::read(&self.folder).last.filter(|it| it.process == holder.number);
        let since = last.as_ref().and_then(|last| last.since);
        let (cause, why, at) = match last.and_then(|last| last.ended) {
            Some(end) => (end.cause, end.why, end.at),
            // It said on standard error why.
            None => (Cause::Start, "it could not start: see the log".to_owned(), 0),
        };
        let ran = since.map(|since| at.saturating_sub(since) * SECOND);
        let delay = match cause {
            Cause::Killed if self.standby.is_some() => REPLACED,
            _ => self.pace.after(cause, ran),
        };
        self.next = time::now() + delay;
        self.wait_for(why.clone()).map(|why| {
            format!(
                "{} has ended and starts again within {} ms; until then the fair class schedules: \
                 {why}",
                self.scheduler,
                delay / MILLISECOND
            )
        })
    }

    /// The reason, if it is a new one.
    fn wait_for(&mut self, why: String) -> Option<String> {
        let state = State::Waits(why.clone());
        let new = self.state != state;
        self.state = state;
        new.then_some(why)
    }

    fn start(&mut self) -> Option<String> {
        let another = Runs::read(&self.folder).now.filter(|run| run.ended.is_none());
        let another = another.map(|run| format!("{} runs, process {}", run.scheduler, run.process));
        if let Some(why) = another.or_else(|| support::busy().map(|busy| busy.to_string())) {
            self.next = time::now() + LOOK_FOR_ROOM;
            return self.wait_for(why).map(|why| format!("{} waits: {why}", self.scheduler));
        }
        // It has had its time to take over.
        self.standby.take().into_iter().for_each(end);
        match self.spawn(false) {
            Ok(holder) => {
                self.holder = Some(holder);
                self.state = State::Starts;
                self.starts += 1;
                None
            }
            Err(error) => {
                self.next = time::now() + self.pace.after(Cause::Start, None);
                let why = format!("cannot start {}: {error}", program().display());
                self.wait_for(why).map(|why| format!("{} waits: {why}", self.scheduler))
            }
        }
    }

    fn spawn(&self, standby: bool) -> io::Result<Holder> {
        let child = Command::new(program())
            .args(&self.words)
            .args(standby.then_some(STANDBY))
            .current_dir(&self.home)
            .env("ATTUNE_STATE_DIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Ctrl-C is for the service.
            .process_group(0)
            .spawn()?;
        let process = Process::open(child.id())?;
        Ok(Holder { process, number: child.id(), child: Some(child) })
    }

    pub fn status(&self) -> Status {
        let waits = matches!(self.state, State::Waits(_));
        let again = self.next.saturating_sub(time::now()) / MILLISECOND;
        Status {
            scheduler: self.scheduler.clone(),
            state: self.state.clone(),
            starts: self.starts,
            again_in_ms: waits.then_some(again),
        }
    }
}

impl Drop for Keeper {
    /// The fair class has the machine again.
    fn drop(&mut self) {
        // In this order: the one would take the other's place.
        self.standby.take().into_iter().chain(self.holder.take()).for_each(end);
    }
}

/// Ends what an earlier service has left, for one whose configuration has no policy. Its name.
pub fn end_left_over(folder: &Path) -> Option<String> {
    let (record, process) = left_over(folder)?;
    end(Holder { process, number: record.process, child: None });
    Some(record.scheduler)
}

fn left_over(folder: &Path) -> Option<(Record, Process)> {
    let record = Runs::read(folder).now.filter(|record| record.words.is_some())?;
    let process = record.alive()?;
    Some((record, process))
}

/// Asks it to end, and waits until it has.
fn end(mut holder: Holder) {
    // It may end by itself just now.
    let _ = holder.process.signal(signal::TERMINATE);
    let asked = time::now();
    while holder.process.lives() {
        if time::now() > asked + PATIENCE {
            let _ = holder.process.signal(signal::KILL);
        }
        sleep(Duration::from_millis(5));
    }
    if let Some(child) = &mut holder.child {
        let _ = child.wait();
    }
}

/// The `attune` that came with this program, or the first of the PATH.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("attune")));
    beside.filter(|program| program.exists()).unwrap_or_else(|| "attune".into())
}

#[cfg(test)]
mod tests {
    use attune_linux::procfs;

    use super::*;

    #[test]
    fn a_holder_of_an_earlier_service_that_comes_late_is_taken_over_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let policy: Policy = toml::from_str("scheduler = \"fair\"").unwrap();
        let mut keeper = Keeper::new(&policy, folder.path(), folder.path());
        keeper.next = Time::MAX;
        assert_eq!(keeper.step(), [""; 0], "it waits");

        let mut late = Command::new("sleep").arg("60").spawn().unwrap();
        let mut record = Record::new("fair".to_owned(), Some(policy.words()));
        record.process = late.id();
        record.start = procfs::start_time(late.id()).unwrap();
        record.begin(folder.path()).unwrap();
        assert_eq!(keeper.step(), ["takes over fair, which an earlier service has left"]);
        assert_eq!(keeper.holder.as_ref().map(|holder| holder.number), Some(late.id()));
        // The service ends it when it ends itself.
        drop(keeper);
        assert!(!late.wait().unwrap().success());
    }
}
