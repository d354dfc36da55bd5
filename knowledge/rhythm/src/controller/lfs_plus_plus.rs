//! LFS++ takes a quantile of the CPU time of the last samples, and adds something on top.
//!
//! `budget = (1 + x) * quantile_p of the last N uses`. What a thread uses is at most its budget:
//! after a jump of demand the prediction grows by the factor `1 + x` a sample, not to the demand.

use std::collections::VecDeque;

use super::{Controller, Sample, quantile, within};

#[derive(Clone, Debug)]
pub struct LfsPlusPlus {
    period_ns: u64,
    uses: VecDeque<f64>,
    /// N.
    pub samples: usize,
    /// p, 0 to 1.
    pub quantile: f64,
    /// x.
    pub spread: f64,
}

impl LfsPlusPlus {
    pub fn new(period_ns: u64) -> LfsPlusPlus {
        LfsPlusPlus {
            period_ns,
            uses: VecDeque::new(),
            samples: 16,
            quantile: 0.9375,
            spread: 0.15,
        }
    }
}

impl Controller for LfsPlusPlus {
    fn observe(&mut self, sample: &Sample) -> u64 {
        self.uses.push_back(sample.use_ns());
        while self.uses.len() > self.samples.max(1) {
            self.uses.pop_front();
        }
        let predicted = quantile(self.uses.iter().copied(), self.quantile);
        within((1.0 + self.spread) * predicted, sample.use_ns(), self.period_ns)
    }
}
