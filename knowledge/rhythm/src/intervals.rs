//! Finds the periods of programs that sleep for a fixed time instead of until a fixed time.
//!
//! Their beats have no common phase: each delay moves all later ones, so a fold over the window
//! shows little under load. What is regular is the interval from one start to the next. A cluster
//! of intervals is weighed against starts that come at random after the pause that makes them
//! starts: an interval then lies in a range with the probability that the shifted exponential
//! distribution of the same mean gives to it.
//!
//! The rate of such a program is the number of its jobs by the time that they took, delays
//! included: that is what happened, and with more CPU time it would be faster.

use crate::evidence::{Evidence, log_likelihood_ratio};
use crate::starts::Start;

/// Width of the cluster, as a share of its interval.
const WIDTH: f64 = 0.04;
/// Intervals needed to speak of a cluster.
const LEAST: usize = 8;
/// The share of shorter intervals that is forgiven: a thread that sleeps for a fixed time cannot
/// wake earlier.
const SHORTER: f64 = 0.06;
/// The share of the intervals that the cluster must hold.
const LEAST_SHARE: f64 = 0.5;

/// The share of the work that is done after equal pauses.
const LEAST_WORK: f64 = 0.5;
/// The share of the time that is slept in equal pauses.
const LEAST_SLEEP: f64 = 0.5;

/// Weighs the densest cluster of intervals between `starts`, each of which came after a pause
/// longer than `pause` seconds.
pub fn weigh(starts: &[f64], pause: f64) -> Option<Evidence> {
    let mut intervals: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if intervals.len() < LEAST {
        return None;
    }
    intervals.sort_by(f64::total_cmp);
    cluster(starts, &intervals, pause)
}

/// Weighs the pauses themselves, where they are known: the times that it slept, which no load
/// changes. Most of the work must follow equal pauses: a program that polls for its next frame
/// sleeps equally before it finds that there is nothing to do. And the equal pauses must fill most
/// of the window of `length` seconds: a program that waits for other things as well has no loop of
/// one sleep.
pub fn weigh_pauses(starts: &[Start], pause: f64, length: f64) -> Option<Evidence> {
    if starts.len() <= LEAST {
        return None;
    }
    let mut sorted: Vec<f64> = starts.iter().map(|start| start.pause).collect();
    sorted.sort_by(f64::total_cmp);
    let (from, to) = densest(&sorted);
    let cluster = sorted[from]..=sorted[to - 1];
    let work =
        |starts: &mut dyn Iterator<Item = &Start>| starts.map(|start| start.size).sum::<f64>();
    if sorted[from..to].iter().sum::<f64>() < LEAST_SLEEP * length {
        return None;
    }
    let equal = work(&mut starts.iter().filter(|start| cluster.contains(&start.pause)));
    if equal < LEAST_WORK * work(&mut starts.iter()) {
        return None;
    }
    let times: Vec<f64> = starts.iter().map(|start| start.time).collect();
    self::cluster(&times, &sorted, pause)
}

/// `intervals`: sorted, each longer than `pause`.
fn cluster(starts: &[f64], intervals: &[f64], pause: f64) -> Option<Evidence> {
    let (from, to) = densest(intervals);
    let count = intervals.len() as f64;
    if from as f64 > SHORTER * count || ((to - from) as f64) < LEAST_SHARE * count {
        return None;
    }
    let scale = (intervals.iter().sum::<f64>() / count - pause).max(1e-9);
    let beyond = |interval: f64| (-(interval - pause).max(0.0) / scale).exp();
    let centre = (intervals[from] + intervals[to - 1]) / 2.0;
    let chance = beyond(centre * (1.0 - WIDTH / 2.0)) - beyond(centre * (1.0 + WIDTH / 2.0));

    let nats = log_likelihood_ratio((to - from) as f64, count, chance);
    Some(Evidence {
        frequency: (starts.len() - 1) as f64 / (starts[starts.len() - 1] - starts[0]),
        // A start more or less at the edges.
        error: 1.0 / count,
        origin: starts[0],
        tolerance: WIDTH / 2.0,
        cycles: count,
        hits: to - from,
        nats,
        concentration: nats,
    })
}

/// The range of sorted `intervals` that holds the most within [`WIDTH`].
fn densest(intervals: &[f64]) -> (usize, usize) {
    let (mut from, mut best) = (0, (0, 1));
    for to in 1..=intervals.len() {
        while intervals[from] < intervals[to - 1] * (1.0 - WIDTH) {
            from += 1;
        }
        if to - from > best.1 - best.0 {
            best = (from, to);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_with_delays_is_seen_by_its_intervals() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut now = 0.0;
        let mut starts = Vec::new();
        for _ in 0..150 {
            now += 0.010
                + if random.f64() < 0.3 { 0.004 * random.f64() } else { 0.0001 * random.f64() };
            starts.push(now);
        }
        let found = weigh(&starts, 0.001).unwrap();
        let rate = 149.0 / (starts[149] - starts[0]);
        assert!((found.frequency / rate - 1.0).abs() < 1e-9 && found.nats > 100.0, "{found:?}");
    }

    #[test]
    fn random_starts_have_no_cluster() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut now = 0.0;
            let starts: Vec<f64> = std::iter::repeat_with(|| {
                now += 0.001 - 0.02 * random.f64().ln();
                now
            })
            .take(100)
            .collect();
            assert!(weigh(&starts, 0.001).is_none_or(|found| found.nats < 15.0));
        }
    }
}
