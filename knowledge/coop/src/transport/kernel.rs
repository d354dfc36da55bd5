//! Transport `kernel`: the scheduler `coop` in Linux itself, on the kernel engine.
//!
//! A poll is a few stores and one system call. What it says lies in a page that this process shares with the kernel engine (the
//! crate `attune-client`), in the imports that `coop.sched` declares; what it is told lies there too:
//!
//! ```text
//! program   polls  next_release  importance  group ──▶ ┌──────┐
//!                                                      │ page │ ◀── until  others   when it is dispatched; until may fall later
//!           sched_yield, or ppoll with nothing to do ─▶└──────┘
//! ```
//!
//! `next_release` is of the first timer whose service has not begun. So the scheduler knows it as due still where it stops the program between
//! `polls` and `sched_yield`: the next turn ends in that yield.
//!
//! The scheduler holds a program to its word: who polls too late, or blocks otherwise, is treated like one that does not cooperate until
//! its next poll.
//!
//! Before it polls, the program sets `until` to [`UNANSWERED`]. Whoever finds it there afterwards has no scheduler that listens: none is
//! loaded, it was thrown out, or this thread follows another one. Then polls are those of transport `none` for [`DEAF`], and the page says
//! that we do not cooperate, so that a scheduler that comes finds nothing stale. So clients outlive the scheduler, and find
//! the next one by themselves.

use std::io;

use attune_client::Value;

use super::{Alone, Statistics, Transport, wait};
use crate::offer::{Answer, NOTHING, Offer};
use crate::time::{self, Clock, Monotonic, NEVER, Time};

/// How long nobody is asked after nobody has answered.
const DEAF: Time = 200_000_000;
/// No answer: schedulers answer with times in the future of the machine's start.
const UNANSWERED: i64 = 0;
/// The importance of who has slept, while it runs: it may block no more.
const AWAKE: i64 = -NOTHING;

/// The thread imports of `coop.sched`, in the order of [`Words`].
const NAMES: [&str; 6] = ["polls", "next_release", "importance", "group", "until", "others"];

/// The calling thread's words of the page.
struct Words {
    polls: Value,
    next_release: Value,
    importance: Value,
    group: Value,
    until: Value,
    others: Value,
}

/// See the module. Stops cooperating when it is dropped.
pub struct Kernel {
    words: Words,
    polls: i64,
    /// Until then nobody is asked.
    deaf: Time,
    timer_slack: u64,
    statistics: Statistics,
    alone: Alone,
}

impl Kernel {
    /// Whether a scheduler runs that listens to cooperating programs.
    pub fn is_there() -> bool {
        attune_client::wanted(&NAMES)
    }

    /// For the calling thread, whether the scheduler is there already or comes later.
    pub fn open() -> io::Result<Kernel> {
        let word = |name: &str| {
            attune_client::thread_import(name).map_err(|error| {
                let instead = match error {
                    attune_client::Error::UnknownImport(_) => "; `attune run coop` does",
                    _ => "",
                };
                io::Error::other(format!("cooperating through the kernel engine: {error}{instead}"))
            })
        };
        let [polls, next_release, importance, group, until, others] = NAMES.map(word);
        let words = Words {
            polls: polls?,
            next_release: next_release?,
            importance: importance?,
            group: group?,
            until: until?,
            others: others?,
        };
        let timer_slack = time::timer_slack();
        time::set_timer_slack(1);
        let (statistics, alone) = (Statistics::default(), Alone::default());
        Ok(Kernel { words, polls: 0, deaf: 0, timer_slack, statistics, alone })
    }

    fn retreat(&self) {
        self.words.polls.set(0);
        self.words.next_release.set(0);
        self.words.until.set(UNANSWERED);
    }
}

/// A release as the scheduler reads it: 0 is none.
fn release(timer: Time) -> i64 {
    if timer == NEVER { 0 } else { i64::try_from(timer).unwrap_or(i64::MAX).max(1) }
}

impl Transport for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn poll(&mut self, offer: &Offer, descriptors: &mut [libc::pollfd]) -> io::Result<Answer> {
        let now = Monotonic.now();
        self.statistics.polls += 1;
        if now < self.deaf {
            return Ok(Answer { until: self.deaf, ..self.alone.poll(offer, descriptors)? });
        }
        let Words { polls, next_release, importance, group, until, others } = self.words;
        group.set(offer.group.into());
        next_release.set(release(offer.timer));
        importance.set(offer.best_effort);
        until.set(UNANSWERED);
        // Last: it says that the others are there. Never 0, which would say that we do not cooperate.
        self.polls = self.polls.checked_add(1).unwrap_or(1);
        polls.set(self.polls);
        let woken = if offer.wants_cpu(now) {
            self.statistics.yields += 1;
            // SAFETY: no arguments; it cannot fail.
            unsafe { libc::sched_yield() };
            Ok(0)
        } else {
            self.statistics.sleeps += 1;
            let woken = wait(descriptors, now, offer.timer);
            importance.set(AWAKE);
            woken
        };
        let answered = until.get();
        if answered == UNANSWERED {
            self.deaf = Monotonic.now().saturating_add(DEAF);
            self.retreat();
        }
        woken?;
        Ok(Answer {
            turn: true,
            until: self.until(),
            others: if answered == UNANSWERED { NOTHING } else { others.get() },
        })
    }

    /// Turns end without a poll too, by interruptions and where another policy shares the CPU. It costs a store.
    fn tell_timer(&mut self, first: Time) {
        if self.words.polls.get() != 0 {
            self.words.next_release.set(release(first));
        }
    }

    fn until(&self) -> Time {
        match self.words.until.get() {
            UNANSWERED => self.deaf,
            until => until.max(1) as Time,
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics { sleeps: self.statistics.sleeps + self.alone.statistics().sleeps, ..self.statistics }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.retreat();
        time::set_timer_slack(self.timer_slack);
    }
}
