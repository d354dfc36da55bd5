//! Draws pseudo-random numbers for workloads: one independent stream per thread, the same on every
//! machine.
//!
//! Invariant: a stream depends only on the seed and the stream's number; logarithms and cosines
//! come from `libm`, not from the platform, so that results are identical everywhere.

/// A stream of pseudo-random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64, stream: u64) -> Random {
        // The stream's number goes through the mixer, so that neighbouring streams share nothing.
        let mut numbering = Random { state: stream };
        let mut mixed = Random { state: seed ^ numbering.next() };
        Random { state: mixed.next() }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// In (0, 1], for logarithms.
    fn positive_unit(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Below n; n is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// From low up to high, whichever way round they are given.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.positive_unit())
    }

    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.positive_unit()));
        mean + deviation * radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// e to a normally distributed power; `sigma` is that power's deviation.
    pub fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(self.normal(0.0, sigma))
    }

    /// At least `least`, with a tail that falls as x to the minus `shape`.
    pub fn pareto(&mut self, least: f64, shape: f64) -> f64 {
        if shape <= 0.0 { least } else { least * libm::pow(self.positive_unit(), -1.0 / shape) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(n: usize, mut sample: impl FnMut(&mut Random) -> f64) -> f64 {
        let mut random = Random::new(7, 1);
        (0..n).map(|_| sample(&mut random)).sum::<f64>() / n as f64
    }

    #[test]
    fn samples_have_the_means_that_their_names_promise() {
        let n = 100_000;
        assert!((mean(n, |r| r.uniform(2.0, 4.0)) - 3.0).abs() < 0.02);
        assert!((mean(n, |r| r.exponential(5.0)) - 5.0).abs() < 0.1);
        assert!((mean(n, |r| r.normal(-1.0, 3.0)) + 1.0).abs() < 0.05);
        // e to the half sigma squared.
        assert!((mean(n, |r| r.lognormal(1.0, 0.5)) - 1.133).abs() < 0.02);
        // shape / (shape - 1).
        assert!((mean(n, |r| r.pareto(1.0, 3.0)) - 1.5).abs() < 0.03);
        assert!((mean(n, |r| r.below(5) as f64) - 2.0).abs() < 0.03);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, stream| Random::new(seed, stream).next();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }
}
