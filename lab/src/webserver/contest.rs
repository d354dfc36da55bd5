//! The contest with nginx: which answers more requests a second on the same core, as a server or as
//! a proxy. Both run with the settings that suit them best, in alternating pairs.

use anyhow::{Context, Result};
use serde::Serialize;

use super::measure::{self, Sample};
use super::nginx::Tuning;
use super::pairs::Bench;
use super::plan::{self, Pairing};
use super::report::{COLUMNS, cells, number, numbers};
use super::server::{Server, Settings};
use crate::median_interval::{self, Median};
use crate::report::{Claim, Table};

/// The bound of the claim: nginx's requests a second in parts of ours.
const MOST: f64 = 1.0;

#[derive(Serialize)]
pub struct Contest {
    /// Our settings and nginx's configurations, and the requests a second with each.
    pub ours: Tried<Settings>,
    pub nginx: Tried<Tuning>,
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
    pub fn table(&self, kind: &str) -> Table {
        let row = |name: &str, sample: &Sample| {
            [name.to_owned()].into_iter().chain(numbers(cells(sample))).collect::<Vec<_>>()
        };
        let rows = vec![row("ours", &self.sample(0)), row("nginx", &self.sample(1))];
        let (count, clients) = (self.pairs.len(), plan::BUSY_CLIENTS);
        let title = format!("{count} pairs, {clients} clients without rest: times in ms");
        let mut table = Table::new(title, &[&[kind][..], &COLUMNS].concat(), rows);
        table.notes.push(format!("Ours, requests/s with {}.", self.ours.words(Settings::words)));
        table.notes.push(format!("nginx, requests/s with {}.", self.nginx.words(Tuning::words)));
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

/// What was tried for one side.
#[derive(Serialize)]
pub struct Tried<T> {
    pub all: Vec<(T, f64)>,
    pub best: T,
}

impl<T: Copy + PartialEq> Tried<T> {
    /// Starts a server with each, and asks it without rest.
    fn of(
        bench: &Bench,
        pairing: &Pairing,
        choices: impl IntoIterator<Item = T>,
        start: impl Fn(T) -> Result<Server>,
    ) -> Result<Tried<T>> {
        let mut all = vec![];
        for choice in choices {
            let server = start(choice)?;
            let rate = || Ok(bench.busy(&server, pairing)?.throughput);
            let rates = (0..pairing.tries + 1).map(|_| rate()).collect::<Result<_>>()?;
            all.push((choice, measure::middle(rates)));
        }
        let best = all.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let best = best.context("nothing to try")?.0;
        Ok(Tried { all, best })
    }

    fn words(&self, words: impl Fn(T) -> String) -> String {
        let one = |(choice, rate): &(T, f64)| {
            let chosen = if *choice == self.best { " (chosen)" } else { "" };
            format!("{}: {}{chosen}", words(*choice), number(*rate))
        };
        self.all.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// `ours` and `nginx` start one with those settings; a proxy's cache is filled.
pub fn run(
    bench: &Bench,
    pairing: &Pairing,
    ours: impl Fn(Settings) -> Result<Server>,
    nginx: impl Fn(Tuning) -> Result<Server>,
) -> Result<Contest> {
    (bench.say)("the settings that suit ours without rest");
    let our_tries = Tried::of(bench, pairing, pairing.settings(), &ours)?;
    (bench.say)("the configuration that suits nginx");
    let their_tries = Tried::of(bench, pairing, Tuning::ALL, &nginx)?;
    let (ours, theirs) = (ours(our_tries.best)?, nginx(their_tries.best)?);
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
            samples[side] = Some(bench.busy([&ours, &theirs][side], pairing)?);
        }
        if let [Some(ours), Some(theirs)] = samples {
            pairs.push([ours, theirs]);
        }
    }
    Ok(Contest { ours: our_tries, nginx: their_tries, pairs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_pairs() {
        let sample = |throughput| Sample { throughput, ..Sample::default() };
        let pairs = (1..=6).map(|speed| [sample(f64::from(speed) * 2.0), sample(f64::from(speed))]);
        let ours = Tried { all: vec![], best: Settings { handlers: 1, chunk: 1 } };
        let nginx = Tried { all: vec![], best: Tuning::ALL[0] };
        let contest = Contest { ours, nginx, pairs: pairs.collect() };
        let ratio = contest.ratio().unwrap();
        assert_eq!((ratio.low, ratio.value, ratio.high), (0.5, 0.5, 0.5));
        assert_eq!((contest.sample(0).throughput, contest.sample(1).throughput), (8.0, 4.0));
    }
}
