//! Steers budgets by feedback: how much CPU time a thread needs in each server period.
//!
//! The server period is the program's own, so one period holds one job. A controller sees what was
//! used, and says what the next budget is. Two are published (Cucinotta, Checconi, Abeni, Palopoli,
//! EuroSys 2010, section 5): LFS, which asks only whether the budget was enough, and LFS++, which
//! predicts from measured CPU time. The third is ours. `simulation` closes the loop around one, for
//! tests and experiments.
//!
//! Invariant, of all of them: the next budget is neither below the use just seen nor above the
//! period.
//!
//! Units: nanoseconds of CPU time in one server period, unless a name says otherwise.

mod lfs;
mod lfs_plus_plus;
mod predictive;
pub mod simulation;

use std::fmt;
use std::str::FromStr;

pub use lfs::Lfs;
pub use lfs_plus_plus::LfsPlusPlus;
pub use predictive::Predictive;

/// What one thread used since the last sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub used_ns: u64,
    /// Server periods since the last sample, more than zero.
    pub periods: f64,
    /// The budget that was in force.
    pub budget_ns: u64,
    /// Whether the thread was seen with work to do and no budget left.
    pub exhausted: bool,
    /// Whether a job that exceeds its budget may go on with CPU time that is not reserved.
    pub reclaims: bool,
}

impl Sample {
    /// Use in one server period; zero of a sample that makes no sense.
    pub fn use_ns(&self) -> f64 {
        let per_period = self.used_ns as f64 / self.periods;
        if per_period.is_finite() && per_period > 0.0 { per_period } else { 0.0 }
    }
}

pub trait Controller {
    /// Takes a sample, gives the next budget.
    fn observe(&mut self, sample: &Sample) -> u64;
}

/// The controllers by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    #[default]
    Ours,
    LfsPlusPlus,
    Lfs,
}

impl Law {
    pub const ALL: [Law; 3] = [Law::Ours, Law::LfsPlusPlus, Law::Lfs];
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Law::Ours => "ours",
            Law::LfsPlusPlus => "lfs++",
            Law::Lfs => "lfs",
        })
    }
}

impl FromStr for Law {
    type Err = String;

    fn from_str(name: &str) -> Result<Law, String> {
        let known = Law::ALL.into_iter().find(|law| law.to_string() == name);
        known.ok_or_else(|| format!("there is no controller {name}; there are ours, lfs++ and lfs"))
    }
}

/// A controller with its default parameters for a server period.
pub fn controller(law: Law, period_ns: u64) -> Box<dyn Controller + Send> {
    match law {
        Law::Ours => Box::new(Predictive::new(period_ns)),
        Law::LfsPlusPlus => Box::new(LfsPlusPlus::new(period_ns)),
        Law::Lfs => Box::new(Lfs::new(period_ns)),
    }
}

/// A wish as a budget: not below the use, not above the period, never nothing.
fn within(wish: f64, use_ns: f64, period_ns: u64) -> u64 {
    let period = period_ns.max(1);
    (wish.max(use_ns).ceil().clamp(1.0, period as f64) as u64).min(period)
}

/// The value below or at which the share `quantile` of `values` lies; zero of none.
fn quantile(values: impl Iterator<Item = f64>, quantile: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (quantile * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1).min(values.len().saturating_sub(1))).copied().unwrap_or(0.0)
}
