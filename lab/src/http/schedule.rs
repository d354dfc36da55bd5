//! Decides what the clients ask for and when: before the run, and the same for every server that an
//! experiment compares.
//!
//! Times are nanoseconds since the start of the run.

/// A file that clients ask for.
#[derive(Clone, Debug)]
pub struct Target {
    /// Path in the request line.
    pub path: String,
    pub body: Vec<u8>,
    /// Belongs to the few large ones.
    pub large: bool,
}

/// One request to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at: u64,
    /// Index into the targets.
    pub target: u32,
}

/// Requests as they come from many people who know nothing of each other: exponential gaps of mean
/// 1/`rate`.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Requests a second.
    pub rate: f64,
    /// Nanoseconds in which requests come.
    pub length: u64,
    /// Share of requests for a large file, 0 to 1.
    pub large_share: f64,
    pub seed: u64,
}

impl Pattern {
    /// The requests in order of time. Each large and each small target is equally likely among its
    /// kind.
    pub fn arrivals(&self, targets: &[Target]) -> Vec<Arrival> {
        let of_kind = |large: bool| -> Vec<u32> {
            (0u32..)
                .zip(targets)
                .filter(|(_, target)| target.large == large)
                .map(|(index, _)| index)
                .collect()
        };
        let (small, large) = (of_kind(false), of_kind(true));
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut arrivals = Vec::with_capacity((self.rate * self.length as f64 / 1e9) as usize + 16);
        let mut at = 0.0;
        loop {
            at += -(1.0 - random.f64()).ln() / self.rate * 1e9;
            if at >= self.length as f64 {
                return arrivals;
            }
            let wants_large = random.f64() < self.large_share;
            let kind = if (wants_large && !large.is_empty()) || small.is_empty() {
                &large
            } else {
                &small
            };
            arrivals.push(Arrival { at: at as u64, target: kind[random.usize(..kind.len())] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets() -> Vec<Target> {
        (0..10).map(|i| Target { path: format!("/{i}"), body: vec![], large: i == 9 }).collect()
    }

    #[test]
    fn rate_and_share_are_what_was_asked_for() {
        let pattern =
            Pattern { rate: 10_000.0, length: 10_000_000_000, large_share: 0.02, seed: 7 };
        let arrivals = pattern.arrivals(&targets());
        assert!((99_000..101_000).contains(&arrivals.len()), "{}", arrivals.len());
        let large = arrivals.iter().filter(|arrival| arrival.target == 9).count();
        assert!((1_850..2_150).contains(&large), "{large}");
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        assert_eq!(arrivals, pattern.arrivals(&targets()));
    }

    #[test]
    fn gaps_are_exponential() {
        let pattern = Pattern { rate: 1_000.0, length: 100_000_000_000, large_share: 0.0, seed: 1 };
        let arrivals = pattern.arrivals(&targets());
        let gaps: Vec<f64> =
            arrivals.windows(2).map(|pair| (pair[1].at - pair[0].at) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!(
            (0.98..1.02).contains(&mean) && (0.95..1.05).contains(&variance),
            "{mean} {variance}"
        );
    }
}
