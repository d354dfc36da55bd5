//! LFS asks only whether the budget was enough. It gives more if not, and a little less if it was.
//!
//! The sensor is one bit, so the budget creeps: down by a small step after each period that
//! sufficed, up by a larger one after each that did not. It needs neither clock nor accounting, and
//! about a hundred periods to settle.

use super::{Controller, Sample, within};

#[derive(Clone, Debug)]
pub struct Lfs {
    period_ns: u64,
    /// Steps as shares of the period.
    pub up: f64,
    pub down: f64,
}

impl Lfs {
    pub fn new(period_ns: u64) -> Lfs {
        Lfs { period_ns, up: 0.01, down: 0.002 }
    }
}

impl Controller for Lfs {
    fn observe(&mut self, sample: &Sample) -> u64 {
        let period = self.period_ns as f64;
        let step = if sample.exhausted { self.up } else { -self.down } * period;
        within(sample.budget_ns as f64 + step, sample.use_ns(), self.period_ns)
    }
}
