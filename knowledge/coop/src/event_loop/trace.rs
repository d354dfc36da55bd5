//! How long callbacks take: CPU time, per name of callback. What runs longer than it may delays everybody's timers, so the first
//! question to a program that cooperates badly is which of its callbacks it was.

use std::collections::BTreeMap;
use std::fmt;

use crate::time::Time;

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
    by_name: BTreeMap<Box<str>, Executions>,
}

impl Trace {
    pub(crate) fn record(&mut self, name: &str, began: Time, took: Time) {
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.into(), Executions::default());
        }
        if let Some(executions) = self.by_name.get_mut(name) {
            executions.count += 1;
            executions.total += took;
            if took >= executions.worst {
                (executions.worst, executions.worst_at) = (took, began);
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<Executions> {
        self.by_name.get(name).copied()
    }

    /// In the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Executions)> {
        self.by_name.iter().map(|(name, executions)| (&**name, *executions))
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
