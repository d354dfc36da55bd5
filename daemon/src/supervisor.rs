//! Drives all tuned programs together: one tracer, one journal, one guardian, one bound.

use std::io;
use std::path::PathBuf;

use attune_linux::scheduling::{Attributes, RESET_ON_FORK};
use attune_linux::time::{self, MILLISECOND, NEVER, SECOND, Time};
use attune_rhythm::Settings;
use attune_rhythm::controller::Law;
use attune_tracer::{Event, Tracer};

use crate::admission::{Account, Request, admit_by_account};
use crate::guardian::Guardian;
use crate::journal::{self, Journal};
use crate::kernel::{self, Kernel, Refusal};
use crate::program::{Beat, Program};
use crate::report::{Note, Status};
use crate::target::Target;
use crate::task::Seen;

#[derive(Clone, Debug)]
pub struct Options {
    pub law: Law,
    /// The period analyser's settings.
    pub settings: Settings,
    /// Share of each CPU that may be given, 0 to 1; the kernel's own bound is never exceeded.
    pub bound: f64,
    /// Share of each CPU that all programs on one user's account may be given together, 0 to 1.
    pub user_bound: f64,
    /// Where the journal lies.
    pub state: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            law: Law::default(),
            settings: Settings::default(),
            bound: 0.9,
            user_bound: USER_BOUND,
            state: crate::state_folder(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "reservations need the capability CAP_SYS_NICE, tracing CAP_BPF and CAP_PERFMON: run it as \
         root"
    )]
    NoPrivilege,
    #[error(transparent)]
    Tracer(#[from] attune_tracer::Error),
    #[error(
        "cannot keep the state file in {folder}: {error}; name another folder in ATTUNE_STATE_DIR"
    )]
    State { folder: String, error: io::Error },
    #[error("cannot start the guardian process: {0}")]
    Guardian(io::Error),
    #[error("there is no process {0}")]
    NoProcess(u32),
}

/// What a user's programs may be given, unless the administrator says otherwise: half of each CPU.
pub const USER_BOUND: f64 = 0.5;
/// Share of each CPU that may be given at most, where the kernel gives more: a person must be able
/// to end a program that loops.
const MOST: f64 = 0.95;
/// After the kernel refused, what may be given grows again by so much, so often.
const RECOVER: f64 = 1.5;
const RECOVER_EACH: u64 = 2 * SECOND;
/// How long an insatiable thread is left alone.
const BAN: u64 = 30 * SECOND;
/// A state that lasts is reported again after so long.
const TELL_AGAIN: u64 = 60 * SECOND;
/// How often the tracer's ring is emptied while a program is listened to, and the longest pause
/// otherwise.
const DRAIN: u64 = 20 * MILLISECOND;
const PAUSE: u64 = 100 * MILLISECOND;

/// The tuner's own reservation: a budget of each period, which is half the time between two looks
/// at the ring.
const OWN_BUDGET: u64 = MILLISECOND / 2;
const OWN_PERIOD: u64 = DRAIN / 2;

/// Tunes programs. Dropping it gives every thread its attributes back.
pub struct Supervisor {
    options: Options,
    tracer: Tracer,
    journal: Option<Journal>,
    guardian: Option<Guardian>,
    programs: Vec<Program>,
    events: Vec<Event>,
    lost: u64,
    kernel: Kernel,
    /// CPUs that may be given; less while the kernel refuses.
    bound: f64,
    limit: f64,
    /// CPUs that may be given on one user's account.
    user_bound: f64,
    recover: u64,
    /// When it was last told that budgets are cut.
    compressed: Option<u64>,
    notes: Vec<Note>,
}

impl Supervisor {
    /// Repairs what killed tuners left, and gets ready. Call it before starting other threads.
    pub fn start(options: Options) -> Result<Supervisor, Error> {
        let kernel = Kernel::of_this_machine();
        if !kernel::may_reserve() {
            return Err(Error::NoPrivilege);
        }
        let state = |error| Error::State { folder: options.state.display().to_string(), error };
        let repaired = journal::repair_all(&options.state).map_err(state)?;
        let tracer = Tracer::load(attune_tracer::Settings {
            exits: false,
            ..attune_tracer::Settings::default()
        })?;
        let journal = Journal::create(&options.state, "tuner").map_err(state)?;
        let guardian = Guardian::start(&journal).map_err(Error::Guardian)?;
        // The tuner needs little CPU time, but in time, also beside real-time programs: a twentieth
        // of one CPU, which the usual bound leaves. Without it, the tuner is late beside other
        // programs.
        let own = Attributes::reservation(OWN_BUDGET, OWN_PERIOD);
        if own.with_flags(RESET_ON_FORK).apply_to(0).is_err() {
            let _ = Attributes::round_robin(1).with_flags(RESET_ON_FORK).apply_to(0);
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let kernel_share = kernel::kernel_share();
        let bound =
            options.bound.clamp(0.01, 1.0).min(kernel_share.unwrap_or(1.0)).min(MOST) * cpus;
        let user_bound = options.user_bound.clamp(0.01, 1.0) * cpus;
        let notes =
            if repaired > 0 { vec![Note::Repaired { threads: repaired }] } else { Vec::new() };
        Ok(Supervisor {
            options,
            tracer,
            journal: Some(journal),
            guardian: Some(guardian),
            programs: Vec::new(),
            events: Vec::new(),
            lost: 0,
            kernel,
            bound,
            limit: bound,
            user_bound,
            recover: 0,
            compressed: None,
            notes,
        })
    }

    /// Tunes a process and its children from now on. `weight`: its part when there is not enough
    /// for all, above zero.
    pub fn add(&mut self, target: Target, account: Account, weight: f64) {
        self.insert(target, account, weight, false);
    }

    /// Gives a display server a share of its own, in the beat of the fastest program.
    pub fn add_display(&mut self, target: Target, weight: f64) {
        self.insert(target, Account::Machine, weight, true);
    }

    fn insert(&mut self, target: Target, account: Account, weight: f64, follows: bool) {
        if !self.has(target.process) {
            let weight = weight.max(1e-3);
            self.programs.push(Program::new(target, account, weight, follows, time::now()));
        }
    }

    /// Gives its threads back and forgets it. False if it was not tuned.
    pub fn remove(&mut self, process: u32) -> bool {
        let Some(index) = self.programs.iter().position(|program| program.process == process)
        else {
            return false;
        };
        let program = self.programs.remove(index);
        self.let_go(program);
        true
    }

    pub fn has(&self, process: u32) -> bool {
        self.programs.iter().any(|program| program.process == process)
    }

    /// Whether no program is left that is tuned for its own sake.
    pub fn is_empty(&self) -> bool {
        self.programs.iter().all(|program| program.follows)
    }

    fn let_go(&mut self, mut program: Program) {
        for &process in program.processes.keys() {
            self.tracer.deselect(process);
        }
        for task in program.tasks.values_mut() {
            if let Some(journal) = &mut self.journal {
                // Without a line in the journal the thread is given back all the same; a repair
                // would find nothing to do.
                let _ = task.give_back(journal);
            }
        }
    }

    /// Does what is due, and returns what happened. Call it again at [`Supervisor::next`].
    pub fn step(&mut self) -> Result<Vec<Note>, Error> {
        self.keep_guardian()?;
        let now = time::now();
        self.scan(now);
        self.listen(now)?;
        let mut changed = self.hear(now);
        changed |= self.look(now);
        if now >= self.recover && self.limit < self.bound {
            self.limit = (self.limit * RECOVER).min(self.bound);
            self.recover = now + RECOVER_EACH;
            changed = true;
        }
        if changed {
            self.allot(now);
        }
        Ok(std::mem::take(&mut self.notes))
    }

    /// When there is something to do again.
    pub fn next(&self) -> Time {
        let now = time::now();
        let pause = if self.tracer.is_attached() { DRAIN } else { PAUSE };
        let next = self.programs.iter().map(Program::next).min().unwrap_or(NEVER);
        next.clamp(now, now + pause)
    }

    fn keep_guardian(&mut self) -> Result<(), Error> {
        let alive = self.guardian.as_mut().is_some_and(Guardian::is_alive);
        if let (false, Some(journal)) = (alive, &self.journal) {
            self.guardian = Some(Guardian::start(journal).map_err(Error::Guardian)?);
            self.notes.push(Note::GuardianRestarted);
        }
        Ok(())
    }

    fn scan(&mut self, now: u64) {
        let mut index = 0;
        while index < self.programs.len() {
            if self.programs[index].scan(now) {
                index += 1;
            } else {
                let program = self.programs.remove(index);
                self.notes
                    .push(Note::Ended { process: program.process, name: program.name.clone() });
                self.let_go(program);
            }
        }
    }

    /// Attaches the tracer while a program is listened to, and passes the events on.
    fn listen(&mut self, now: u64) -> Result<(), Error> {
        for program in self.programs.iter_mut().filter(|program| program.wants_to_listen(now)) {
            self.tracer.attach()?;
            for &process in program.processes.keys() {
                self.tracer.select(process, true)?;
            }
            if program.is_new() {
                self.notes
                    .push(Note::Listening { process: program.process, name: program.name.clone() });
            }
            program.listen(now);
        }
        if !self.tracer.is_attached() {
            return Ok(());
        }
        if self.programs.iter().all(|program| program.listener.is_none()) {
            self.tracer.detach();
        }
        self.tracer.drain(&mut self.events);
        let lost = self.tracer.lost();
        if lost > self.lost {
            self.notes.push(Note::Lost { events: lost - self.lost });
            self.lost = lost;
        }
        for event in self.events.drain(..) {
            let of = self
                .programs
                .iter_mut()
                .find(|program| program.processes.contains_key(&event.process));
            if let Some(listener) = of.and_then(|program| program.listener.as_mut()) {
                listener.push(&event);
            }
        }
        Ok(())
    }

    fn hear(&mut self, now: u64) -> bool {
        let mut changed = false;
        for program in &mut self.programs {
            changed |= program.hear(now, &self.options.settings, self.options.law, &mut self.notes);
        }
        if changed {
            let beats = self.programs.iter().filter(|program| !program.follows);
            let paces = beats.filter_map(|program| program.beat.as_ref()).map(|beat| beat.pace);
            let fastest = paces.min_by_key(|pace| pace.period);
            for program in self.programs.iter_mut().filter(|program| program.follows) {
                program.set_beat(fastest.map(Beat::given), self.options.law);
            }
        }
        changed
    }

    fn look(&mut self, now: u64) -> bool {
        let mut changed = false;
        for program in &mut self.programs {
            let beat = program.beat.clone();
            let (process, name) = (program.process, program.name.clone());
            for task in program.tasks.values_mut().filter(|task| task.next <= now) {
                let pace = beat.as_ref().map(|beat| beat.of_thread(task.id.thread));
                match task.look(now, pace, self.options.law) {
                    Seen::Nothing | Seen::Gone => {}
                    Seen::Changed => changed = true,
                    Seen::Insatiable => {
                        task.ban(now + BAN);
                        let again_s = BAN as f64 / 1e9;
                        let thread = task.id.thread;
                        self.notes.push(Note::Insatiable {
                            process,
                            thread,
                            name: name.clone(),
                            again_s,
                        });
                        changed = true;
                    }
                }
            }
        }
        changed
    }

    /// Gives each thread what admission grants: first to threads that get less than before, so that
    /// there is room for the others.
    fn allot(&mut self, now: u64) {
        let Some(journal) = &mut self.journal else { return };
        let mut places = Vec::new();
        let mut requests = Vec::new();
        for (index, program) in self.programs.iter_mut().enumerate() {
            for (&thread, task) in &mut program.tasks {
                match task.request() {
                    Some((floor, wanted)) => {
                        places.push((index, thread));
                        let request = Request { floor, wanted, weight: program.weight };
                        requests.push((program.account, request));
                    }
                    None => {
                        // Without a line in the journal the thread is given back all the same.
                        let _ = task.give_back(journal);
                    }
                }
            }
        }
        let grants = admit_by_account(&requests, self.limit, self.user_bound);
        let wanted: f64 = requests.iter().map(|(_, request)| request.wanted).sum();
        let news = self.compressed.is_none_or(|told| now - told > TELL_AGAIN);
        if wanted > self.limit + 1e-9 && news {
            self.notes.push(Note::Compressed { wanted, bound: self.limit });
            self.compressed = Some(now);
        }

        let has = |programs: &[Program], (index, thread): (usize, u32)| {
            programs[index].tasks.get(&thread).map_or(0.0, |task| task.share())
        };
        let mut order: Vec<usize> = (0..places.len()).collect();
        let growth = |&place: &usize| grants[place] - has(&self.programs, places[place]);
        order.sort_by(|a, b| growth(a).total_cmp(&growth(b)));
        for place in order {
            let (index, thread) = places[place];
            let program = &mut self.programs[index];
            let Some(task) = program.tasks.get_mut(&thread) else { continue };
            let Err(refusal) = task.give(grants[place], self.kernel, journal) else { continue };
            task.refusal = Some(refusal);
            if refusal == Refusal::Full {
                // Other programs hold what the kernel gives: take what is left, and try for more
                // later.
                task.give_what_is_left(grants[place], self.kernel, journal);
                let given: f64 = self
                    .programs
                    .iter()
                    .flat_map(|program| program.tasks.values())
                    .map(|task| task.share())
                    .sum();
                self.limit = given.max(0.01).min(self.limit * 0.95);
                self.recover = now + RECOVER_EACH;
            } else if refusal != Refusal::Gone && task.told != Some(refusal) {
                task.told = Some(refusal);
                let (process, name) = (program.process, task.name.clone());
                self.notes.push(Note::Refused {
                    process,
                    thread,
                    name,
                    why: refusal.advice().to_owned(),
                });
            }
        }
    }

    /// What a user may know: the sums, and the programs that are theirs. Root knows all.
    pub fn status(&self, user: u32) -> Status {
        let tasks = self.programs.iter().flat_map(|program| program.tasks.values());
        let may_see = |program: &&Program| user == 0 || program.user == user;
        Status {
            bound: self.bound,
            given: tasks.map(|task| task.share()).sum(),
            guardian: self.guardian.as_ref().map_or(0, Guardian::id),
            programs: self.programs.iter().filter(may_see).map(Program::status).collect(),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        for program in std::mem::take(&mut self.programs) {
            self.let_go(program);
        }
        // All threads are as before: the file may go, and then the guardian, which finds nothing to
        // do.
        if let Some(journal) = self.journal.take() {
            let _ = journal.close();
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.end();
        }
    }
}
