//! One thread of a tuned program: the CPU time that it used, wants and has.
//!
//! A thread joins when it is seen to use CPU time and leaves after seconds without any: a program
//! that stops gives back what it does not need, and gets it again with its first job.

use std::collections::VecDeque;
use std::io;

use attune_rhythm::controller::{Controller, Law, Sample, controller};

use attune_linux::procfs::{self, CpuClock, CpuTime};
use attune_linux::scheduling::Attributes;
use attune_linux::time::{MILLISECOND, SECOND};

use crate::journal::{self, Journal, ThreadId};
use crate::kernel::{Kernel, Refusal};
use crate::pace::Pace;
use crate::reservation::Reservation;

/// How often CPU time is looked at where no period says how often.
pub const TICK: u64 = 20 * MILLISECOND;
/// A thread that used nothing for so long leaves its reservation.
const IDLE: u64 = 10 * SECOND;
/// Uses that are remembered for the first budget: two seconds of ticks.
const RECENT: usize = 100;
/// The first budget is so much of the greatest use seen: a budget below the need would never catch
/// up.
const FIRST: f64 = 1.5;
/// The least budget, and the least first one as a share of the period.
const LEAST: u64 = 20_000;
const LEAST_FIRST: f64 = 0.01;
/// The share of a budget from which it counts as used up, if there is work left.
const USED_UP: f64 = 0.97;
/// No thread gets more of a CPU.
pub const MOST: f64 = 0.9;
/// A budget that became a share of a CPU and a budget again may be less by so much.
const ROUNDING: u64 = 2;
/// That many guesses at what the kernel has left, each of half the last one's error.
const GUESSES: u32 = 5;
/// A thread that has used so much of its budget and still has work to do is hungry.
const HUNGRY: f64 = 0.8;
/// A thread has no job that ends if it is hungry at each look for so long, uses so much of what it
/// is given, and is given so much of a CPU. A thread that is given less than that is not judged:
/// others may leave it less than it wants.
const INSATIABLE: u64 = 5 * SECOND;
const INSATIABLE_USE: f64 = 0.95;
const INSATIABLE_SHARE: f64 = 0.5;
/// The period of a reservation on trial: short, so that a job of any beat has its share soon.
const TRIAL_PERIOD: u64 = 10 * MILLISECOND;
/// After so many looks in a row that came too late, the next one counts all the same.
const MOST_LATE: u32 = 3;

pub struct Task {
    pub id: ThreadId,
    pub name: String,
    clock: CpuClock,
    /// When listening began, or the thread did, and its CPU time then.
    listened: (u64, CpuTime),
    cpu: u64,
    seen: u64,
    /// When its CPU time is looked at next.
    pub next: u64,
    /// Looks in a row that came too late to see whole jobs.
    late: u32,
    idle_since: u64,
    /// Uses of the last ticks, before it has a reservation.
    recent: VecDeque<(u64, u64)>,
    server: Option<Server>,
    held: Option<Held>,
    pub refusal: Option<Refusal>,
    /// The last refusal that a note was about.
    pub told: Option<Refusal>,
    /// Since when it is seen hungry at each look.
    stretch: Option<Stretch>,
    /// Left alone until then.
    pub banned_until: u64,
    pub last_use: u64,
    /// CPU time given and used while it had a reservation, in ns.
    pub given: u64,
    pub used: u64,
}

/// The budget that it is to have.
struct Server {
    period: u64,
    wanted: u64,
    floor: u64,
    /// None: on trial, while its program is listened to.
    controller: Option<Box<dyn Controller + Send>>,
}

/// How a thread fared while its program was listened to: shares of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fared {
    pub used: f64,
    /// It was ready, and another thread had the CPU.
    pub waited: f64,
}

/// The reservation that it has, and its attributes before.
struct Held {
    before: Attributes,
    reservation: Reservation,
}

/// The beginning of a time under reservation, and the CPU time that was used and given before.
#[derive(Clone, Copy)]
struct Stretch {
    since: u64,
    used: u64,
    given: u64,
}

/// The result of a look at its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    /// It wants another budget, or one at all, or none any more.
    Changed,
    Insatiable,
    Gone,
}

impl Task {
    pub fn open(process: u32, thread: u32, now: u64) -> Option<Task> {
        let clock = CpuClock::open(process, thread).ok()?;
        let cpu = clock.read()?;
        let id = ThreadId { thread, start: procfs::start_time(thread)? };
        Some(Task {
            id,
            name: procfs::name(thread),
            clock,
            listened: (now, cpu),
            cpu: cpu.used,
            seen: now,
            next: now + TICK,
            late: 0,
            idle_since: now,
            recent: VecDeque::new(),
            server: None,
            held: None,
            refusal: None,
            told: None,
            stretch: None,
            banned_until: 0,
            last_use: 0,
            given: 0,
            used: 0,
        })
    }

    /// Its program is listened to from now on.
    pub fn listen(&mut self, now: u64) {
        if let Some(time) = self.clock.read() {
            self.listened = (now, time);
        }
    }

    /// Since its program is listened to.
    pub fn fared(&self, now: u64) -> Fared {
        let (since, before) = self.listened;
        let elapsed = now.saturating_sub(since).max(1) as f64;
        let time = self.clock.read().unwrap_or(before);
        let share = |now: u64, before: u64| now.saturating_sub(before) as f64 / elapsed;
        Fared { used: share(time.used, before.used), waited: share(time.waited, before.waited) }
    }

    /// Wants what it used and waited for, until the program's beat is known or given up.
    pub fn begin_trial(&mut self, now: u64) {
        let fared = self.fared(now);
        let budget = |share: f64| (share * TRIAL_PERIOD as f64) as u64;
        let wanted = budget(fared.used + fared.waited);
        if self.server.is_some() || wanted < LEAST || now < self.banned_until {
            return;
        }
        let wanted = wanted.min(most(TRIAL_PERIOD));
        let floor = budget(fared.used).min(wanted);
        self.server = Some(Server { period: TRIAL_PERIOD, wanted, floor, controller: None });
    }

    /// Looks at its CPU time. `pace`: the program's beat, if it has one; for this thread.
    pub fn look(&mut self, now: u64, pace: Option<Pace>, law: Law) -> Seen {
        self.next = pace.map_or(now + TICK, |pace| pace.time_to_look(now, TICK));
        // Too late for this job, the next one is seen as well: two jobs in two periods.
        if pace.is_some_and(|pace| {
            self.held.is_some() && self.late < MOST_LATE && !pace.is_between_jobs(now)
        }) {
            self.late += 1;
            return Seen::Nothing;
        }
        let on_time = std::mem::take(&mut self.late) < MOST_LATE;
        let Some(CpuTime { used: cpu, .. }) = self.clock.read() else { return Seen::Gone };
        let (used, elapsed) = (cpu.saturating_sub(self.cpu), now.saturating_sub(self.seen).max(1));
        (self.cpu, self.seen) = (cpu, now);
        if used > 0 {
            self.idle_since = now;
        }
        if self.held.is_some() {
            self.given += (self.share() * elapsed as f64) as u64;
            self.used += used;
        }
        self.recent.push_back((elapsed, used));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let Some(pace) = pace.filter(|_| now >= self.banned_until) else { return Seen::Nothing };
        let periods = pace.periods(elapsed);
        self.last_use = (used as f64 / periods) as u64;
        // Just reserved, or the beat was heard anew: this was a part of a job.
        if on_time && self.held.is_some() && periods.fract() > 0.0 {
            return Seen::Nothing;
        }
        self.steer(now, used, periods, pace.period, law)
    }

    fn steer(&mut self, now: u64, used: u64, periods: f64, period: u64, law: Law) -> Seen {
        match &mut self.server {
            None if self.recent.iter().any(|(_, used)| *used > 0) => {
                self.server = Some(self.first_server(period, law));
                Seen::Changed
            }
            None => Seen::Nothing,
            Some(_) if now.saturating_sub(self.idle_since) > IDLE => {
                self.server = None;
                self.recent.clear();
                Seen::Changed
            }
            // Between two jobs, or stopped: that says nothing about the next job.
            Some(_) if used == 0 => Seen::Nothing,
            Some(server) => {
                let reservation = self.held.as_ref().map(|held| held.reservation);
                let budget = reservation.map_or(server.wanted, |reservation| reservation.budget);
                // A thread that waits has done its job, however much of the budget it took.
                let used_up = used as f64 / (budget as f64 * periods);
                let hungry =
                    self.held.is_some() && used_up >= HUNGRY && !procfs::is_waiting(self.id.thread);
                let exhausted = hungry && used_up >= USED_UP;
                let reclaims = reservation.is_some_and(|reservation| reservation.reclaims);
                let sample =
                    Sample { used_ns: used, periods, budget_ns: budget, exhausted, reclaims };
                let Some(controller) = &mut server.controller else { return Seen::Nothing };
                let wanted = controller.observe(&sample);
                server.floor = (sample.use_ns() as u64).min(most(server.period));
                server.wanted = wanted.max(server.floor).clamp(LEAST, most(server.period));
                if self.is_insatiable(now, hungry) { Seen::Insatiable } else { Seen::Changed }
            }
        }
    }

    /// Whether a job has not ended for so long, with as much CPU time as a job may want. `hungry`:
    /// as it was seen now.
    fn is_insatiable(&mut self, now: u64, hungry: bool) -> bool {
        if !hungry {
            self.stretch = None;
            return false;
        }
        let Stretch { since, used, given } =
            *self.stretch.get_or_insert(Stretch { since: now, used: self.used, given: self.given });
        if now - since < INSATIABLE {
            return false;
        }
        self.stretch = None;
        let (used, given) = ((self.used - used) as f64, (self.given - given) as f64);
        used >= INSATIABLE_USE * given && given >= INSATIABLE_SHARE * (now - since) as f64
    }

    fn first_server(&self, period: u64, law: Law) -> Server {
        let wanted = self.first_budget(period);
        Server { period, wanted, floor: 0, controller: Some(controller(law, period)) }
    }

    /// Large rather than small, from what was seen before: the greatest use in any stretch of one
    /// period.
    fn first_budget(&self, period: u64) -> u64 {
        let mut greatest = 0.0f64;
        for start in 0..self.recent.len() {
            let (mut time, mut used) = (0, 0);
            for (elapsed, more) in self.recent.iter().skip(start) {
                (time, used) = (time + elapsed, used + more);
                if time >= period {
                    break;
                }
            }
            // A stretch that is longer than a period holds more than one job.
            greatest = greatest.max(used as f64 * (period as f64 / time.max(1) as f64).min(1.0));
        }
        ((FIRST * greatest).max(LEAST_FIRST * period as f64) as u64).clamp(LEAST, most(period))
    }

    /// The program's beat is another.
    pub fn set_period(&mut self, period: Option<u64>, law: Law) {
        // What stood against a reservation may be over.
        self.refusal = None;
        let Some(period) = period else {
            self.server = None;
            return;
        };
        let Some(server) = &mut self.server else { return };
        // The last digits of a period move; the jobs are the same.
        if server.controller.is_some() && server.period.abs_diff(period) * 100 <= server.period {
            server.period = period;
            server.wanted = server.wanted.min(most(period));
            return;
        }
        self.server = Some(self.first_server(period, law));
    }

    /// Share of one CPU: by the use just seen, and wanted. None if it is to have no reservation.
    pub fn request(&self) -> Option<(f64, f64)> {
        if matches!(
            self.refusal,
            Some(Refusal::Pinned | Refusal::Taken | Refusal::Invalid | Refusal::Gone)
        ) {
            return None;
        }
        let server = self.server.as_ref()?;
        let share = |budget: u64| budget as f64 / server.period as f64;
        Some((share(server.floor), share(server.wanted)))
    }

    /// Share of one CPU that it has.
    pub fn share(&self) -> f64 {
        self.held.as_ref().map_or(0.0, |held| held.reservation.share())
    }

    /// The reservation that it has.
    pub fn reservation(&self) -> Option<Reservation> {
        self.held.as_ref().map(|held| held.reservation)
    }

    /// Gives it a share of a CPU. Err: it has none, or what it had.
    pub fn give(
        &mut self,
        share: f64,
        kernel: Kernel,
        journal: &mut Journal,
    ) -> Result<(), Refusal> {
        let Some(server) = &self.server else { return Ok(()) };
        let period = server.period;
        let budget = ((share * period as f64) as u64).max(LEAST).min(most(period));
        // A thread whose budget is cut keeps to it, and no thread may take all.
        let reclaims = kernel.keeps_some && budget + ROUNDING >= server.wanted;
        let reservation = Reservation { budget, period, reclaims };
        if self.reservation() == Some(reservation) {
            return Ok(());
        }
        match &mut self.held {
            Some(held) => {
                give(self.id.thread, &reservation)?;
                held.reservation = reservation;
            }
            None => self.take(reservation, kernel, journal)?,
        }
        self.refusal = None;
        Ok(())
    }

    /// Gives it as much of a share as the kernel has left. The kernel says only yes or no, so this
    /// guesses.
    pub fn give_what_is_left(&mut self, share: f64, kernel: Kernel, journal: &mut Journal) {
        let (mut has, mut refused) = (self.share(), share);
        for _ in 0..GUESSES {
            let middle = (has + refused) / 2.0;
            match self.give(middle, kernel, journal) {
                Ok(()) => has = middle,
                Err(_) => refused = middle,
            }
        }
    }

    /// The first reservation: the journal has the attributes before anything is changed.
    fn take(
        &mut self,
        reservation: Reservation,
        kernel: Kernel,
        journal: &mut Journal,
    ) -> Result<(), Refusal> {
        let before = Attributes::of(self.id.thread).map_err(|error| Refusal::from_error(&error))?;
        if !before.class.is_fair() {
            return Err(Refusal::Taken);
        }
        if procfs::start_time(self.id.thread) != Some(self.id.start) {
            return Err(Refusal::Gone);
        }
        let before = kernel.to_restore(before);
        // Without a line in the journal no guardian could give it back: then it stays as it is.
        journal.take(self.id, &before).map_err(|_| Refusal::Invalid)?;
        if let Err(refusal) = give(self.id.thread, &reservation) {
            // It was not changed; the line that says so may be missing without harm.
            let _ = journal.give(self.id);
            return Err(refusal);
        }
        self.held = Some(Held { before, reservation });
        Ok(())
    }

    /// Gives it its attributes back.
    pub fn give_back(&mut self, journal: &mut Journal) -> io::Result<()> {
        if let Some(held) = self.held.take() {
            journal::restore(self.id, &held.before);
            journal.give(self.id)?;
        }
        Ok(())
    }

    /// Wants nothing until then.
    pub fn ban(&mut self, until: u64) {
        self.banned_until = until;
        self.stretch = None;
        self.server = None;
        self.recent.clear();
    }
}

fn give(thread: u32, reservation: &Reservation) -> Result<(), Refusal> {
    reservation.attributes().apply_to(thread).map_err(|error| Refusal::from_error(&error))
}

fn most(period: u64) -> u64 {
    (MOST * period as f64) as u64
}
