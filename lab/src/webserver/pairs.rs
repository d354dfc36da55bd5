//! Pairs: both servers in turn under the same requests, at a load relative to the capacity that the
//! same pair has measured. The claims rest on ratios within pairs, so a machine that changes its
//! speed changes both sides.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::measure::{self, Sample};
use super::plan::{self, Pairing};
use super::server::{Server, Settings, Source};
use crate::experiment::Progress;
use crate::http::generator::Loop;
use crate::http::schedule::{Arrival, Pattern, Target};
use crate::median_interval::{self, Median};

/// The servers of a pair differ in their policy.
pub const POLICIES: [&str; 2] = ["fifo", "shortest_reply"];

/// Where servers run and what they serve.
pub struct Bench<'a> {
    pub program: PathBuf,
    /// Compiled, in the order of [`POLICIES`].
    pub schedulers: [PathBuf; 2],
    pub source: Source<'a>,
    pub targets: &'a [Target],
    pub server_core: u32,
    pub say: Progress<'a>,
}

/// One policy's search: its best settings, and the mean response time in ms with each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Search {
    pub best: Settings,
    pub tried: Vec<(Settings, f64)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pair {
    /// The most requests a second that fifo answers, measured in this pair.
    pub capacity: f64,
    pub samples: [Sample; 2],
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pairs {
    /// In the order of [`POLICIES`].
    pub searches: [Search; 2],
    pub pairs: Vec<Pair>,
}

impl Pairs {
    /// The median over pairs of a figure of both samples, fifo's first.
    pub fn median(&self, figure: impl Fn(&Sample, &Sample) -> f64) -> Option<Median> {
        let of = |Pair { samples: [fifo, shortest], .. }: &Pair| figure(fifo, shortest);
        median_interval::of(&self.pairs.iter().map(of).collect::<Vec<_>>())
    }

    pub fn capacity(&self) -> f64 {
        measure::middle(self.pairs.iter().map(|pair| pair.capacity).collect())
    }

    /// A policy's samples as one, each figure the median over pairs.
    pub fn sample(&self, policy: usize) -> Sample {
        let samples: Vec<Sample> =
            self.pairs.iter().map(|pair| pair.samples[policy].clone()).collect();
        measure::median(&samples)
    }
}

impl Bench<'_> {
    pub fn start(&self, policy: usize, settings: &Settings) -> Result<Server> {
        let program = &self.program;
        ensure!(program.is_file(), "{} is not built; `make build` builds it", program.display());
        let scheduler = Some(self.schedulers[policy].as_path());
        let server =
            Server::start(program, scheduler, self.source, settings, &[], self.server_core)?;
        if let Source::Upstream(_) = self.source {
            self.warm(&server)?;
        }
        Ok(server)
    }

    /// Asks for each target once, so that what a proxy may keep is kept.
    pub fn warm(&self, server: &Server) -> Result<()> {
        let one_each = (0u32..).zip(self.targets).map(|(target, _)| Arrival { at: 0, target });
        let arrivals: Vec<Arrival> = one_each.collect();
        let sample = measure::run(server, self.targets, &arrivals, Loop::Closed(1))?;
        ensure!(sample.lost == 0.0, "{} targets of the site have no reply", sample.lost);
        Ok(())
    }

    /// Searches the best settings of both servers in the same way, then measures the pairs.
    pub fn run(&self, pairing: &Pairing) -> Result<Pairs> {
        let first = pairing.settings().next().context("no settings to try")?;
        let capacity = self.capacity(&self.start(0, &first)?, pairing)?;
        let searches = [self.search(0, pairing, capacity)?, self.search(1, pairing, capacity)?];
        let servers = [0, 1].map(|policy| self.start(policy, &searches[policy].best));
        let [fifo, shortest] = servers;
        let servers = [fifo?, shortest?];
        let mut pairs = vec![];
        for pair in 0..pairing.pairs {
            (self.say)(&format!("pair {} of {}", pair + 1, pairing.pairs));
            let capacity = self.capacity(&servers[0], pairing)?;
            let pattern = pattern(pairing.length, capacity, plan::OVERLOAD, pair as u64);
            let mut samples = [None, None];
            // Alternating: each policy is first in every other pair.
            for policy in [pair % 2, 1 - pair % 2] {
                samples[policy] = Some(self.open(&servers[policy], &pattern)?);
            }
            let [Some(fifo), Some(shortest)] = samples else { continue };
            pairs.push(Pair { capacity, samples: [fifo, shortest] });
        }
        Ok(Pairs { searches, pairs })
    }

    /// A closed loop finds it only roughly, for all its clients' connections are open all the time,
    /// which costs the server. So does a flood. From there on the load of an open loop rises, for
    /// as long as more is answered.
    fn capacity(&self, server: &Server, pairing: &Pairing) -> Result<f64> {
        let roughly = self.busy(server, pairing)?.throughput;
        let mut most = 0.0;
        for load in plan::RISING {
            let arrivals = pattern(pairing.length / 2, roughly, *load, 98).arrivals(self.targets);
            let answered = measure::run(server, self.targets, &arrivals, Loop::Open)?.throughput;
            if answered < most {
                break;
            }
            most = answered;
        }
        Ok(most)
    }

    /// What a server does when many clients leave it no rest.
    pub fn busy(&self, server: &Server, pairing: &Pairing) -> Result<Sample> {
        let rate = 20_000.0;
        let length = (pairing.capacity_requests as f64 / rate * 1e9) as u64;
        let pattern = Pattern { rate, length, large_share: plan::LARGE_SHARE, seed: 99 };
        let arrivals = pattern.arrivals(self.targets);
        let busy = Loop::Closed(plan::BUSY_CLIENTS);
        measure::run(server, self.targets, &arrivals, busy)
    }

    fn search(&self, policy: usize, pairing: &Pairing, capacity: f64) -> Result<Search> {
        let mut tried: Vec<(Settings, f64)> = vec![];
        for settings in pairing.settings() {
            (self.say)(&format!("{}: {}", POLICIES[policy], settings.words()));
            let server = self.start(policy, &settings)?;
            let means = (0..pairing.tries as u64).map(|seed| {
                let pattern = pattern(pairing.length, capacity, plan::OVERLOAD, 1000 + seed);
                Ok(self.open(&server, &pattern)?.all.mean)
            });
            tried.push((settings, measure::middle(means.collect::<Result<_>>()?)));
        }
        let best = tried.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        let best = best.context("no settings to try")?.0;
        Ok(Search { best, tried })
    }

    pub fn open(&self, server: &Server, pattern: &Pattern) -> Result<Sample> {
        let arrivals = pattern.arrivals(self.targets);
        measure::run_undisturbed(server, self.targets, &arrivals, Loop::Open)
    }
}

/// Requests at `load` times the capacity.
pub fn pattern(length: u64, capacity: f64, load: f64, seed: u64) -> Pattern {
    Pattern { rate: capacity * load, length, large_share: plan::LARGE_SHARE, seed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webserver::measure::Latency;

    #[test]
    fn ratios_are_taken_within_a_pair() {
        let sample =
            |mean| Sample { all: Latency { mean, ..Latency::default() }, ..Sample::default() };
        let pair =
            |fifo, shortest| Pair { capacity: 1.0, samples: [sample(fifo), sample(shortest)] };
        let settings = Settings { handlers: 1, chunk: 1 };
        let search = || Search { best: settings, tried: vec![] };
        // The machine is ten times slower in the second half; the ratio stays.
        let pairs = (1..=6).map(|pair_number| {
            let slow = if pair_number > 3 { 10.0 } else { 1.0 };
            pair(slow * 2.0, slow)
        });
        let pairs = Pairs { searches: [search(), search()], pairs: pairs.collect() };
        let ratio = pairs.median(|fifo, shortest| shortest.all.mean / fifo.all.mean).unwrap();
        assert_eq!((ratio.low, ratio.value, ratio.high), (0.5, 0.5, 0.5));
    }
}
