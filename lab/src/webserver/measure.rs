//! Computes one run's figures, and the medians of several. Times are milliseconds.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::server::Server;
use crate::http::generator::{self, Fate, Loop};
use crate::http::schedule::{Arrival, Target};

/// Response times of one class of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: f64,
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// The percentiles of a curve: dense where few requests wait long.
pub const SHARES: &[f64] = &[
    0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97,
    0.975, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0,
];

/// What a run, or the median of several, showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Answers a second: of an open loop those given while requests came, of a closed one all from
    /// the start to the last.
    pub throughput: f64,
    pub all: Latency,
    pub small: Latency,
    pub large: Latency,
    /// Response times of all requests at [`SHARES`].
    pub curve: Vec<f64>,
    /// Requests that were answered wrongly, or not at all.
    pub lost: f64,
    /// Replies compared byte by byte.
    pub verified: f64,
    /// Share of the run in which the server's process had the CPU; the kernel's work on arriving
    /// packets comes on top.
    pub server_cpu: f64,
    /// How late the generator sent, 99th percentile.
    pub lateness: f64,
}

impl Latency {
    /// The figures of times in nanoseconds.
    pub fn of(mut times: Vec<u64>) -> Latency {
        times.sort_unstable();
        Latency {
            count: times.len() as f64,
            mean: times.iter().map(|time| *time as f64 / 1e6).sum::<f64>()
                / times.len().max(1) as f64,
            p50: percentile(&times, 0.5),
            p99: percentile(&times, 0.99),
            max: percentile(&times, 1.0),
        }
    }
}

/// The percentile in milliseconds of ascending nanoseconds; 0 if there are none.
fn percentile(ascending: &[u64], share: f64) -> f64 {
    let index = ((ascending.len() as f64 * share) as usize).min(ascending.len().saturating_sub(1));
    ascending.get(index).map_or(0.0, |time| *time as f64 / 1e6)
}

/// Runs one load against one server.
pub fn run(
    server: &Server,
    targets: &[Target],
    arrivals: &[Arrival],
    kind: Loop,
) -> Result<Sample> {
    let before = server.cpu_time()?;
    let outcome = generator::run(server.address, targets, arrivals, kind, Duration::from_secs(10))?;
    let cpu = server.cpu_time()? - before;
    let times = |wanted: fn(&Target) -> bool| -> Vec<u64> {
        let pairs = outcome.fates.iter().zip(arrivals);
        let times = pairs.filter_map(|(fate, arrival)| match fate {
            Fate::Answered(time) if wanted(&targets[arrival.target as usize]) => Some(*time),
            _ => None,
        });
        times.collect()
    };
    let mut ascending = times(|_| true);
    ascending.sort_unstable();
    let curve = SHARES.iter().map(|share| percentile(&ascending, *share)).collect();
    let all = Latency::of(ascending);
    if all.count == 0.0 {
        bail!("no request was answered: {}", outcome.complaint.unwrap_or_default());
    }
    let took = outcome.took.max(1) as f64;
    let throughput = match (kind, arrivals.last()) {
        (Loop::Open, Some(last)) => {
            let in_time = outcome.fates.iter().zip(arrivals).filter(|(fate, arrival)| match fate {
                Fate::Answered(time) => arrival.at + time <= last.at,
                _ => false,
            });
            in_time.count() as f64 / last.at.max(1) as f64
        }
        _ => all.count / took,
    };
    Ok(Sample {
        throughput: throughput * 1e9,
        lost: outcome.fates.len() as f64 - all.count,
        verified: outcome.verified as f64,
        server_cpu: cpu as f64 / took,
        lateness: outcome.lateness.1 as f64 / 1e6,
        small: Latency::of(times(|target| !target.large)),
        large: Latency::of(times(|target| target.large)),
        all,
        curve,
    })
}

/// The median; 0 of none.
pub fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// The median of each figure for itself; of lost and verified requests the sum.
pub fn median(samples: &[Sample]) -> Sample {
    let middle = |figure: &dyn Fn(&Sample) -> f64| middle(samples.iter().map(figure).collect());
    let latency = |class: &dyn Fn(&Sample) -> &Latency| Latency {
        count: middle(&|sample| class(sample).count),
        mean: middle(&|sample| class(sample).mean),
        p50: middle(&|sample| class(sample).p50),
        p99: middle(&|sample| class(sample).p99),
        max: middle(&|sample| class(sample).max),
    };
    Sample {
        throughput: middle(&|sample| sample.throughput),
        all: latency(&|sample| &sample.all),
        small: latency(&|sample| &sample.small),
        large: latency(&|sample| &sample.large),
        curve: (0..SHARES.len())
            .map(|i| middle(&|sample| sample.curve.get(i).copied().unwrap_or(0.0)))
            .collect(),
        lost: samples.iter().map(|sample| sample.lost).sum(),
        verified: samples.iter().map(|sample| sample.verified).sum(),
        server_cpu: middle(&|sample| sample.server_cpu),
        lateness: middle(&|sample| sample.lateness),
    }
}

/// How late the generator may have sent one request in a hundred, in milliseconds, for a run to say
/// something.
const GENERATOR_MAY_LAG: f64 = 5.0;
const TRIES: usize = 4;

/// Runs it again when the generator fell behind, which happens when something else wants its core.
/// The last try counts.
pub fn run_undisturbed(
    server: &Server,
    targets: &[Target],
    arrivals: &[Arrival],
    kind: Loop,
) -> Result<Sample> {
    let mut sample = run(server, targets, arrivals, kind)?;
    for _ in 1..TRIES {
        if sample.lateness <= GENERATOR_MAY_LAG {
            break;
        }
        sample = run(server, targets, arrivals, kind)?;
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians() {
        let latency = Latency::of((1..=100).rev().map(|i| i * 1_000_000).collect());
        assert_eq!((latency.count, latency.mean, latency.p50), (100.0, 50.5, 51.0));
        assert_eq!((latency.p99, latency.max), (100.0, 100.0));
        assert_eq!(Latency::of(vec![]), Latency::default());

        let sample = |throughput, lost| Sample { throughput, lost, ..Sample::default() };
        let median = median(&[sample(3.0, 1.0), sample(1.0, 0.0), sample(2.0, 1.0)]);
        assert_eq!((median.throughput, median.lost), (2.0, 2.0));
    }
}
