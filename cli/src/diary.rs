//! What a run writes down of itself, for `attune status` and for the service: that it schedules,
//! and why it ended ([`Record`]). The service's run also keeps what is set ([`Kept`]), so that it
//! starts again as it was.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use attune_daemon::policy::keeper::STANDBY;
use attune_daemon::policy::kept::Kept;
use attune_daemon::policy::record::wall_clock;
use attune_daemon::policy::turn::{self, Turn};
use attune_daemon::policy::{Cause, Joined, Record, Runs};
use attune_daemon::state_folder;
use attune_kernel::{Running, Values, support};

use crate::failure::Failure;
use crate::output::tell;

/// So long the kernel has to detach what a process held that is gone.
pub const DETACHED: Duration = Duration::from_secs(10);

pub fn wait_until_detached() {
    let asked = Instant::now();
    while support::busy().is_some() && asked.elapsed() < DETACHED {
        sleep(Duration::from_millis(2));
    }
}

pub struct Diary {
    folder: PathBuf,
    record: Record,
    /// The service's run keeps what is set.
    kept: Option<Kept>,
    /// The right to hold the service's policy.
    turn: Option<Turn>,
    begun: bool,
    /// This run has joined another one, which writes down what happens to both.
    joins: bool,
}

impl Diary {
    /// Nothing is written yet. `service`: this is the service's run.
    pub fn new(scheduler: &Path, service: bool) -> Diary {
        let folder = state_folder();
        let words = std::env::args().skip(1).filter(|word| word != STANDBY);
        let words = service.then(|| words.collect::<Vec<String>>());
        let kept = words.as_ref().map(|words| Kept::read(&folder, words));
        let record = Record::new(scheduler.display().to_string(), words);
        Diary { folder, record, kept, turn: None, begun: false, joins: false }
    }

    /// Whether `attuned` has started what runs.
    pub fn service_runs() -> bool {
        Runs::read(&state_folder()).now.is_some_and(|run| run.words.is_some())
    }

    /// The kernel has room for a policy, and this is to be the one.
    pub fn begins(&mut self) -> Result<(), Failure> {
        if self.kept.is_some() {
            let turn = turn::take(&self.folder).map_err(unable)?;
            let another = || Failure::usage("another process of the service holds its policy");
            self.has_turn(turn.ok_or_else(another)?);
        }
        Ok(())
    }

    /// Waits until the process is gone that holds the service's policy. False: this one is not to
    /// take its place.
    pub fn stands_by(&mut self) -> Result<bool, Failure> {
        let Some(turn) = turn::stand_by(&self.folder).map_err(unable)? else {
            return Ok(false);
        };
        self.has_turn(turn);
        wait_until_detached();
        Ok(true)
    }

    fn has_turn(&mut self, turn: Turn) {
        self.turn = Some(turn);
        self.begun = true;
        let words = self.record.words.iter().next();
        // What was set meanwhile counts.
        self.kept = words.map(|words| Kept::read(&self.folder, words));
        note(self.record.begin(&self.folder));
    }

    /// The policy schedules from now on.
    pub fn schedules(&mut self, scheduler: String) {
        self.begun = true;
        self.record.scheduler = scheduler;
        self.record.since = Some(wall_clock());
        if !self.joins {
            note(self.record.begin(&self.folder));
        }
    }

    pub fn joins(&mut self) {
        self.joins = true;
    }

    /// The machine has changed hands before this run had it.
    pub fn begins_anew(&mut self) {
        self.joins = false;
    }

    /// The run that this one has joined has ended. Another may go on that it had joined: then that
    /// one writes.
    pub fn is_left_alone(&mut self) {
        let another = || Runs::read(&self.folder).now.is_some_and(|it| it.alive().is_some());
        if self.joins && !another() {
            self.joins = false;
            note(self.record.begin(&self.folder));
        }
    }

    /// Which runs have joined this one, the one first that has joined it directly.
    pub fn lends(&mut self, joined: Vec<Joined>) {
        self.record.joined = joined;
        if !self.joins {
            note(self.record.begin(&self.folder));
        }
    }

    pub fn joined(&self) -> &[Joined] {
        &self.record.joined
    }

    pub fn ends(&mut self, cause: Cause, why: &str) {
        if self.joins {
            return;
        }
        note(self.record.end(&self.folder, cause, why.trim().to_owned()));
    }

    /// Somebody said stop before the policy was attached. The service's run has said that it
    /// begins.
    pub fn ends_unbegun(&mut self) {
        if self.begun {
            self.ends(Cause::Asked, "it was asked to end before it began");
        }
    }

    /// The run was none. Another's record stays as it is.
    pub fn failed(&mut self, failure: &Failure) {
        let service = self.kept.is_some();
        if self.record.ended.is_none()
            && (self.begun || (service && Runs::read(&self.folder).now.is_none()))
        {
            let said = failure.message();
            let empty = "its text has errors: `attune check` says which";
            self.ends(Cause::Start, if said.is_empty() { empty } else { said });
        }
    }

    /// Sets again what was set while the service's run went on before. A setting that does not fit
    /// any more is told.
    pub fn set_again(&self, running: &Running) {
        for setting in self.kept.iter().flat_map(|kept| &kept.settings) {
            if let Err(error) = running.set(std::slice::from_ref(setting)) {
                tell!("attune: {}={} was set before: {error}", setting.0, setting.1);
            }
        }
    }

    /// What is set from now on is kept.
    pub fn listens(&self, values: Values) -> Values {
        let Some(mut kept) = self.kept.clone() else { return values };
        let folder = self.folder.clone();
        values.when_set(move |settings| note(kept.add(&folder, settings)))
    }
}

fn unable(error: std::io::Error) -> Failure {
    Failure::file("lock", &state_folder().join("holder.lock"), error)
}

/// The run goes on without its diary.
fn note(written: std::io::Result<()>) {
    if let Err(error) = written {
        tell!("attune: cannot write down the run in {}: {error}", state_folder().display());
    }
}
