//! How long callbacks take: CPU time, per name of callback. What runs longer than it may delays everybody's timers, so the first
//! question to a program that cooperates badly is which of its callbacks it was.
//!
//! Asking the kernel for CPU time takes longer than the loop's other work for a callback. So it is asked when a turn begins, and after a
//! callback only where the clock says that it may have been the longest of its name: by as much as others had the CPU since the
//! last question, it was shorter. A callback that was interrupted and yet was not the longest counts as long as it was by the clock.

use std::collections::BTreeMap;
use std::fmt;

use crate::time::{Clock, Time};

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
    /// When the kernel was last asked: the time, and the CPU time.
    asked: (Time, Time),
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

    /// Nobody else has the CPU from now on, as far as one knows. Gives the time.
    pub(crate) fn begin_turn(&mut self, clock: &dyn Clock) -> Time {
        self.asked = (clock.now(), clock.cpu_time());
        self.asked.0
    }

    /// A callback ran from `began` to `ended`.
    pub(crate) fn record(&mut self, name: Name, began: Time, ended: Time, clock: &dyn Clock) {
        let Some(executions) = self.executions.get_mut(name.0) else { return };
        let mut took = ended.saturating_sub(began);
        if took >= executions.worst {
            let cpu_time = clock.cpu_time();
            let away =
                ended.saturating_sub(self.asked.0).saturating_sub(cpu_time.saturating_sub(self.asked.1));
            self.asked = (ended, cpu_time);
            took = took.saturating_sub(away);
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

    /// In the order of the names.
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
