//! Transport `kernel`: the scheduler `coop` in Linux itself, on the kernel engine.
//!
//! A poll is a few stores and one system call. The offer and the answer lie in a page that this
//! process shares with the kernel engine (the crate `attune-client`), in the imports that
//! `coop.sched` declares:
//!
//! ```text
//! program   polls  next_release  importance  group ──▶ ┌──────┐
//!                                                      │ page │ ◀── until  others
//!           sched_yield, or ppoll with nothing to do ─▶└──────┘
//! ```
//!
//! The scheduler answers when it dispatches the program; `until` may fall later.
//!
//! `next_release` is the release of the first timer whose service has not begun. So the scheduler
//! still knows it as due where it stops the program between `polls` and `sched_yield`: the next
//! turn ends in that yield.
//!
//! The scheduler holds a program to its word: a program that polls too late, or blocks otherwise,
//! is treated until its next poll like one that does not cooperate.
//!
//! Before it polls, the program sets `until` to [`UNANSWERED`]. If that stands there afterwards, no
//! scheduler listens: none is loaded, the kernel has ended it, or this thread follows another one.
//! Then polls are those of transport `none` for [`DEAF`], and the page says that the program does
//! not cooperate, so that a scheduler that comes finds nothing stale. So clients outlive the
//! scheduler, and find the next one by themselves.

use std::io;

use attune_client::Value;
use attune_linux::poll::pollfd;
use attune_linux::time;
use attune_values::names;

use super::{Alone, Statistics, Transport, wait};
use crate::offer::{Answer, NOTHING, Offer};
use crate::time::{Clock, Monotonic, NEVER, Time};

/// How long no scheduler is asked after none has answered.
const DEAF: Time = 200_000_000;
/// No answer: schedulers answer with times in the future of the machine's start.
const UNANSWERED: i64 = 0;
/// The importance of a program that has slept, while it runs: it may block no more.
const AWAKE: i64 = -NOTHING;

/// The thread imports of `coop.sched`, in the order of [`Words`].
const NAMES: [&str; 6] = [
    names::POLLS,
    names::NEXT_RELEASE,
    names::IMPORTANCE,
    names::GROUP,
    names::UNTIL,
    names::OTHERS,
];

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
    /// Until then no scheduler is asked.
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
        time::set_timer_slack(Some(1));
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

    fn poll(&mut self, offer: &Offer, descriptors: &mut [pollfd]) -> io::Result<Answer> {
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
        // Last: it says that the others are there. Never 0, which would say that we do not
        // cooperate.
        self.polls = self.polls.checked_add(1).unwrap_or(1);
        polls.set(self.polls);
        let woken = if offer.wants_cpu(now) {
            self.statistics.yields += 1;
            std::thread::yield_now();
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

    /// Turns end without a poll too, by interruptions and where another policy shares the CPU. It
    /// costs a store.
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
        Statistics {
            sleeps: self.statistics.sleeps + self.alone.statistics().sleeps,
            ..self.statistics
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.retreat();
        time::set_timer_slack(Some(self.timer_slack));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coop_sched_declares_the_six_names() {
        let text = include_str!("../../../../schedulers/coop.sched");
        let (_, rest) = text.split_once("threadimports {").expect("it has thread imports");
        let (imports, _) = rest.split_once('}').unwrap();
        for name in NAMES {
            let declared = imports.split_whitespace().collect::<Vec<_>>();
            assert!(declared.windows(2).any(|two| two == [name, "default"]), "{name}");
        }
    }
}
