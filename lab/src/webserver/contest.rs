//! The contest with nginx: which answers more requests a second on the same core, as a server or as
//! a proxy. Both run with the settings that suit them best, in alternating pairs.

use anyhow::{Context, Result};
use serde::Serialize;

use super::measure::{self, Sample};
use super::nginx::Tuning;
use super::pairs::Bench;
use super::plan::{self, Pairing};
use super::report::{COLUMNS, cells, number, numbers};
use super::server::Server;
use crate::median_interval::{self, Median};
use crate::report::{Claim, Table};

/// The bound of the claim: nginx's requests a second in parts of ours.
const MOST: f64 = 1.0;

#[derive(Serialize)]
pub struct Contest {
    /// nginx's configurations, and the requests a second with each.
    pub tried: Vec<(Tuning, f64)>,
    pub best: Tuning,
    /// Ours and nginx's samples, pair by pair.
    pub pairs: Vec<[Sample; 2]>,
}

impl Contest {
    /// nginx's requests a second in parts of ours.
    pub fn ratio(&self) -> Option<Median> {
        let ratios = self.pairs.iter().map(|[ours, nginx]| nginx.throughput / ours.throughput);
        median_interval::of(&ratios.collect::<Vec<_>>())
    }

    /// The samples of one side as one.
    pub fn sample(&self, side: usize) -> Sample {
        let samples: Vec<Sample> = self.pairs.iter().map(|pair| pair[side].clone()).collect();
        measure::median(&samples)
    }
}

impl Contest {
    /// `kind`: what both are.
    pub fn table(&self, kind: &str, handlers: usize) -> Table {
        let row = |name: &str, sample: &Sample| {
            [name.to_owned()].into_iter().chain(numbers(cells(sample))).collect::<Vec<_>>()
        };
        let rows = vec![row("ours", &self.sample(0)), row("nginx", &self.sample(1))];
        let (count, clients) = (self.pairs.len(), plan::BUSY_CLIENTS);
        let title = format!(
            "{count} pairs, {clients} clients without rest, {handlers} handlers: times in ms"
        );
        let mut table = Table::new(title, &[&[kind][..], &COLUMNS].concat(), rows);
        let tried = self.tried.iter().map(|(tuning, rate)| {
            let chosen = if *tuning == self.best { " (chosen)" } else { "" };
            format!("{}: {}{chosen}", tuning.words(), number(*rate))
        });
        let tried: Vec<String> = tried.collect();
        table.notes.push(format!("nginx's requests/s with {}.", tried.join("; ")));
        table
    }

    pub fn claims(&self) -> Vec<Claim> {
        let claim = "it answers at least as many requests a second as nginx (nginx's by ours)";
        let (lost, verified) = self
            .pairs
            .iter()
            .flatten()
            .fold((0.0, 0.0), |sum, sample| (sum.0 + sample.lost, sum.1 + sample.verified));
        vec![
            match self.ratio() {
                Some(ratio) => Claim::interval(claim, ratio, MOST),
                None => Claim::new(claim, None),
            },
            Claim::new(
                "beside nginx, too, no request is lost or answered wrongly",
                Some((lost == 0.0, format!("{lost:.0} lost; {verified:.0} compared byte by byte"))),
            ),
        ]
    }
}

/// `nginx` starts one with that tuning; a proxy's cache is filled.
pub fn run(
    bench: &Bench,
    pairing: &Pairing,
    ours: &Server,
    nginx: impl Fn(Tuning) -> Result<Server>,
) -> Result<Contest> {
    let mut tried = vec![];
    for tuning in Tuning::ALL {
        (bench.say)(&format!("nginx: {}", tuning.words()));
        let server = nginx(tuning)?;
        let rates = (0..pairing.tries + 1).map(|_| Ok(bench.busy(&server, pairing)?.throughput));
        tried.push((tuning, measure::middle(rates.collect::<Result<_>>()?)));
    }
    let best = tried.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let best = best.context("no configuration to try")?.0;
    let theirs = nginx(best)?;
    let mut pairs = vec![];
    for pair in 0..pairing.pairs {
        (bench.say)(&format!(
            "{} clients without rest, pair {} of {}",
            plan::BUSY_CLIENTS,
            pair + 1,
            pairing.pairs
        ));
        let mut samples = [None, None];
        // Alternating: each is first in every other pair.
        for side in [pair % 2, 1 - pair % 2] {
            samples[side] = Some(bench.busy([ours, &theirs][side], pairing)?);
        }
        if let [Some(ours), Some(theirs)] = samples {
            pairs.push([ours, theirs]);
        }
    }
    Ok(Contest { tried, best, pairs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_pairs() {
        let sample = |throughput| Sample { throughput, ..Sample::default() };
        let pairs = (1..=6).map(|speed| [sample(f64::from(speed) * 2.0), sample(f64::from(speed))]);
        let contest = Contest { tried: vec![], best: Tuning::ALL[0], pairs: pairs.collect() };
        let ratio = contest.ratio().unwrap();
        assert_eq!((ratio.low, ratio.value, ratio.high), (0.5, 0.5, 0.5));
        assert_eq!((contest.sample(0).throughput, contest.sample(1).throughput), (8.0, 4.0));
    }
}
