//! Measures how long callbacks take: CPU time, per name of callback. A callback that runs longer
//! than it may delays everybody's timers, so the first question to a program that cooperates badly
//! is which of its callbacks it was.
//!
//! Asking the kernel for CPU time takes longer than the loop's other work for a callback. So it is
//! asked after a callback only where the clock says that it may have been the longest of its name:
//! by as much as others had the CPU since the last question, it was shorter. What others had while
//! the loop polled does not count: it is taken by the clock, which counts the polls' own work too,
//! some microseconds each. So that these do not add up, the kernel is asked every [`TURNS`] turns
//! as well; an interrupted callback may seem longer than it was by what so many polls take. One
//! that was interrupted and yet was not the longest counts as long as it was by the clock.

use std::collections::BTreeMap;
use std::fmt;

use crate::time::{Clock, Time};

/// Turns between two questions for CPU time.
const TURNS: u32 = 16;

/// The callbacks of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    pub count: u64,
    /// CPU time of all, nanoseconds.
    pub total: Time,
    /// CPU time of the longest, nanoseconds.
    pub worst: Time,
    /// When the longest began.
    pub worst_at: Time,
}

/// Executions by name.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    by_name: BTreeMap<Box<str>, Name>,
    executions: Vec<Executions>,
    asked: Asked,
}

/// The last question for CPU time.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    at: Time,
    cpu_time: Time,
    /// How long polls since then took.
    polled: Time,
    /// Turns until the next question.
    turns: u32,
}

impl Asked {
    fn now(at: Time, clock: &dyn Clock) -> Asked {
        Asked { at, cpu_time: clock.cpu_time(), polled: 0, turns: TURNS }
    }

    /// How long others had the CPU between the question before and this one, polls left out.
    fn interrupted_since(&self, before: &Asked) -> Time {
        let passed = self.at.saturating_sub(before.at);
        passed
            .saturating_sub(self.cpu_time.saturating_sub(before.cpu_time))
            .saturating_sub(before.polled)
    }
}

/// A callback's name, by number: where its executions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(usize);

impl Trace {
    pub(crate) fn name(&mut self, name: &str) -> Name {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let new = Name(self.executions.len());
        self.executions.push(Executions::default());
        self.by_name.insert(name.into(), new);
        new
    }

    /// The name again, for messages.
    pub(crate) fn text(&self, name: Name) -> &str {
        self.by_name.iter().find(|(_, number)| **number == name).map_or("", |(text, _)| text)
    }

    /// A turn begins after a poll that began at `polled`. Gives the time.
    pub(crate) fn begin_turn(&mut self, polled: Time, clock: &dyn Clock) -> Time {
        let now = clock.now();
        match self.asked.turns.checked_sub(1) {
            None => self.asked = Asked::now(now, clock),
            Some(turns) => {
                self.asked.turns = turns;
                self.asked.polled += now.saturating_sub(polled);
            }
        }
        now
    }

    /// A callback ran from `began` to `ended`.
    pub(crate) fn record(&mut self, name: Name, began: Time, ended: Time, clock: &dyn Clock) {
        let Some(executions) = self.executions.get_mut(name.0) else { return };
        let mut took = ended.saturating_sub(began);
        if took >= executions.worst {
            let asked = Asked::now(ended, clock);
            took = took.saturating_sub(asked.interrupted_since(&self.asked));
            self.asked = asked;
            if took >= executions.worst {
                (executions.worst, executions.worst_at) = (took, began);
            }
        }
        executions.count += 1;
        executions.total += took;
    }

    pub fn get(&self, name: &str) -> Option<Executions> {
        self.by_name.get(name).and_then(|name| self.of(*name))
    }

    /// None: it has not run.
    fn of(&self, name: Name) -> Option<Executions> {
        self.executions.get(name.0).filter(|executions| executions.count > 0).copied()
    }

    /// Goes through them in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Executions)> {
        self.by_name.iter().filter_map(|(name, number)| Some((&**name, self.of(*number)?)))
    }
}

/// A table: name, count, mean and worst in microseconds.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let width = self.by_name.keys().map(|name| name.chars().count()).max().unwrap_or(0).max(8);
        writeln!(f, "{:width$}  {:>9}  {:>9}  {:>9}", "callback", "count", "mean us", "worst us")?;
        for (name, Executions { count, total, worst, .. }) in self.iter() {
            let mean = total as f64 / count.max(1) as f64 / 1e3;
            writeln!(f, "{name:width$}  {count:>9}  {mean:>9.1}  {:>9.1}", worst as f64 / 1e3)?;
        }
        Ok(())
    }
}
