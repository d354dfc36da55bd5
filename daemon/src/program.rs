//! One tuned program: a process and its children, their threads, and the beat that they keep.

use std::collections::BTreeMap;

use attune_linux::process::Process;
use attune_linux::procfs;
use attune_linux::time::{MILLISECOND, SECOND};
use attune_rhythm::controller::Law;
use attune_rhythm::{Analysis, Period, Settings};
use attune_tracer::descendants;

use crate::admission::Account;
use crate::listener::{AGREE, Heard, Listener};
use crate::pace::Pace;
use crate::report::{Note, ProgramStatus, TaskStatus};
use crate::target::Target;
use crate::task::Task;

/// How often new threads and children are looked for.
const SCAN: u64 = 100 * MILLISECOND;
/// How often a beat that is known is listened for again; sooner if it was heard with little
/// confidence.
const AGAIN: u64 = 5 * SECOND;
const SOON: u64 = SECOND;
const CONFIDENT: f64 = 0.5;
/// A program without a beat is listened to again at once so many times, since players load before
/// they play; then after a pause that is doubled each time.
const AT_ONCE: u32 = 3;
const RETRY: u64 = 4 * SECOND;
const RETRY_MOST: u64 = 32 * SECOND;
/// The period of a program whose threads wait for a CPU for so much of the time cannot be found:
/// its jobs do not end.
const STARVED: f64 = 0.25;
/// A beat that is missed so many times in a row, at once after each other, is given up.
const MISSES: u32 = AT_ONCE;

/// The beat of a program.
#[derive(Clone, Debug)]
pub struct Beat {
    /// The beat of threads that keep none of their own.
    pub pace: Pace,
    pub confidence: f64,
    /// The beats of threads with a period of their own.
    threads: BTreeMap<u32, Pace>,
}

impl Beat {
    /// `since`: when the recording began that was analysed.
    fn of(analysis: &Analysis, since: u64) -> Option<Beat> {
        let pace = |found: &Period| Pace {
            period: (found.period_ms * 1e6).round() as u64,
            beat: since.saturating_add_signed((found.beat_s * 1e9).round() as i64),
        };
        // The most significant period that a thread keeps is its own.
        let mut threads = BTreeMap::new();
        for found in &analysis.periods {
            for &thread in &found.threads {
                threads.entry(thread).or_insert(pace(found));
            }
        }
        Some(Beat {
            pace: pace(analysis.periods.first()?),
            confidence: analysis.confidence,
            threads,
        })
    }

    /// A beat that is given, not found by listening.
    pub fn given(pace: Pace) -> Beat {
        Beat { pace, confidence: 1.0, threads: BTreeMap::new() }
    }

    pub fn of_thread(&self, thread: u32) -> Pace {
        self.threads.get(&thread).copied().unwrap_or(self.pace)
    }
}

pub struct Program {
    pub process: u32,
    pub name: String,
    pub weight: f64,
    /// A display server keeps the beat of the programs that draw.
    pub follows: bool,
    /// Whose it is.
    pub user: u32,
    pub account: Account,
    /// The process and its children by number. The descriptor keeps a number from being taken for
    /// another process that has it later.
    pub processes: BTreeMap<u32, Process>,
    pub tasks: BTreeMap<u32, Task>,
    pub beat: Option<Beat>,
    pub listener: Option<Listener>,
    /// Its threads have the CPU time that they waited for, as long as it is listened to.
    on_trial: bool,
    next_scan: u64,
    next_listen: u64,
    misses: u32,
    begun: u64,
}

impl Program {
    pub fn new(target: Target, account: Account, weight: f64, follows: bool, now: u64) -> Program {
        Program {
            process: target.process,
            name: target.name,
            user: target.user,
            weight,
            follows,
            account,
            processes: BTreeMap::from([(target.process, target.descriptor)]),
            tasks: BTreeMap::new(),
            beat: None,
            listener: None,
            on_trial: false,
            next_scan: now,
            next_listen: now,
            misses: 0,
            begun: now,
        }
    }

    /// Finds new threads and children, forgets those that are gone. False when nothing is left of
    /// it.
    pub fn scan(&mut self, now: u64) -> bool {
        if now < self.next_scan {
            return true;
        }
        self.next_scan = now + SCAN;
        self.find_processes();
        let mut found = Vec::new();
        for &process in self.processes.keys() {
            for thread in procfs::threads(process) {
                found.push(thread);
                let known = self.tasks.get(&thread);
                if known.is_none_or(|task| procfs::start_time(thread) != Some(task.id.start)) {
                    self.tasks.remove(&thread);
                    self.tasks.extend(Task::open(process, thread, now).map(|task| (thread, task)));
                }
            }
        }
        found.sort_unstable();
        self.tasks.retain(|thread, _| found.binary_search(thread).is_ok());
        // An ended process stays in the table until its parent has asked for its status.
        !self.tasks.is_empty()
    }

    fn find_processes(&mut self) {
        // A child whose parent has ended is no longer below it, but still belongs to the program.
        self.processes.retain(|_, descriptor| descriptor.lives());
        let below: Vec<u32> = self.processes.keys().copied().flat_map(descendants).collect();
        for process in below {
            if self.processes.contains_key(&process) {
                continue;
            }
            let Ok(descriptor) = Process::open(process) else { continue };
            // The number may be another process's since it was listed.
            if procfs::parent(process).is_some_and(|parent| self.processes.contains_key(&parent)) {
                self.processes.insert(process, descriptor);
            }
        }
    }

    /// It was never listened to.
    pub fn is_new(&self) -> bool {
        self.beat.is_none() && self.misses == 0
    }

    /// Whether it is time to listen.
    pub fn wants_to_listen(&self, now: u64) -> bool {
        !self.follows && self.listener.is_none() && now >= self.next_listen
    }

    pub fn listen(&mut self, now: u64) {
        for task in self.tasks.values_mut() {
            task.listen(now);
        }
        self.listener = Some(Listener::start(now));
    }

    /// Takes the listener's verdict. True when the beat, or the wish of a program without one, has
    /// changed.
    pub fn hear(&mut self, now: u64, settings: &Settings, law: Law, notes: &mut Vec<Note>) -> bool {
        let Some(listener) = &mut self.listener else { return false };
        let since = listener.since();
        let heard = listener.verdict(now, settings);
        let (process, name) = (self.process, self.name.clone());
        match heard {
            Heard::NotYet => false,
            Heard::NothingYet => self.begin_trial(now, notes),
            Heard::Beat(analysis) => {
                self.listener = None;
                self.next_listen =
                    now + if analysis.confidence >= CONFIDENT { AGAIN } else { SOON };
                self.misses = 0;
                let Some(beat) = Beat::of(&analysis, since) else { return self.end_trial(law) };
                // A program that really is faster now still finds a part of the budget for each
                // job.
                if self.beat.is_some() && self.echoes(beat.pace.period) {
                    return false;
                }
                self.on_trial = false;
                let old = self.beat.as_ref().map(|beat| beat.pace.period);
                let period = beat.pace.period;
                let far = |old: u64| old.abs_diff(period) as f64 > AGREE / 2.0 * period as f64;
                if old.is_none_or(far) {
                    let period_ms = period as f64 / 1e6;
                    let after = if old.is_none() { self.begun } else { since };
                    notes.push(Note::Beat {
                        process,
                        name,
                        frequency_hz: 1e3 / period_ms,
                        period_ms,
                        confidence: beat.confidence,
                        after_ms: (now - after) as f64 / 1e6,
                    });
                }
                self.set_beat(Some(beat), law);
                true
            }
            Heard::Silence => {
                self.listener = None;
                self.next_listen = now + RETRY;
                self.end_trial(law)
            }
            Heard::Nothing => {
                self.listener = None;
                self.misses += 1;
                let pause = match self.misses.checked_sub(AT_ONCE + 1) {
                    Some(more) => (RETRY << more.min(8)).min(RETRY_MOST),
                    None => 0,
                };
                let tuned = self.beat.is_some();
                self.next_listen = now + pause;
                if tuned && self.misses >= MISSES {
                    notes.push(Note::BeatLost { process, name });
                    self.set_beat(None, law);
                    return true;
                }
                if !tuned && pause > 0 {
                    notes.push(Note::NoBeat { process, name, again_s: pause as f64 / 1e9 });
                }
                self.end_trial(law)
            }
        }
    }

    fn echoes(&self, period: u64) -> bool {
        self.tasks
            .values()
            .filter_map(Task::reservation)
            .any(|reservation| reservation.echoes(period))
    }

    /// A program that waits for a CPU more than anything else shows no beat: its threads get the
    /// CPU time that they waited for, and it is listened to anew.
    fn begin_trial(&mut self, now: u64, notes: &mut Vec<Note>) -> bool {
        let waited: f64 = self.tasks.values().map(|task| task.fared(now).waited).sum();
        if self.beat.is_some() || self.on_trial || waited < STARVED {
            return false;
        }
        self.on_trial = true;
        self.tasks.values_mut().for_each(|task| task.begin_trial(now));
        self.listener = Some(Listener::start(now));
        notes.push(Note::Trial { process: self.process, name: self.name.clone(), waited });
        true
    }

    fn end_trial(&mut self, law: Law) -> bool {
        let ended = std::mem::take(&mut self.on_trial);
        if ended {
            self.set_beat(None, law);
        }
        ended
    }

    pub fn set_beat(&mut self, beat: Option<Beat>, law: Law) {
        for (thread, task) in &mut self.tasks {
            task.set_period(beat.as_ref().map(|beat| beat.of_thread(*thread).period), law);
        }
        self.beat = beat;
    }

    /// When something is to be done for it next.
    pub fn next(&self) -> u64 {
        let tasks = self.tasks.values().map(|task| task.next);
        let listener = self.listener.as_ref().map(Listener::next);
        tasks.chain(listener).chain([self.next_scan]).min().unwrap_or(self.next_scan)
    }

    pub fn status(&self) -> ProgramStatus {
        let period_ms = self.beat.as_ref().map(|beat| beat.pace.period as f64 / 1e6);
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let task = |task: &Task| TaskStatus {
            thread: task.id.thread,
            name: task.name.clone(),
            period_ms: task.reservation().map(|reservation| millis(reservation.period)),
            budget_ms: task.reservation().map(|reservation| millis(reservation.budget)),
            used_ms: millis(task.last_use),
            refused: task.refusal.map(|refusal| refusal.advice().to_owned()),
        };
        ProgramStatus {
            process: self.process,
            name: self.name.clone(),
            weight: self.weight,
            listening: self.listener.is_some(),
            frequency_hz: period_ms.map(|period| 1e3 / period),
            period_ms,
            confidence: self.beat.as_ref().map(|beat| beat.confidence),
            given_ms: self.tasks.values().map(|task| millis(task.given)).sum(),
            used_ms: self.tasks.values().map(|task| millis(task.used)).sum(),
            threads: self.tasks.values().map(task).collect(),
        }
    }
}
