//! Rounds: every contestant once, each round beginning with another one.

use anyhow::Result;
use serde::Serialize;

use super::contestant::{CONTESTANTS, Measure, Program};
use crate::experiment::{Options, Progress};
use crate::median_interval::{self, Median};

/// One measurement of all contestants. NaN: a contestant that was left out.
#[derive(Serialize)]
pub struct Rounds {
    pub measure: String,
    /// For each round a figure of each of [`CONTESTANTS`].
    pub rounds: Vec<Vec<f64>>,
}

/// All contestants compiled.
pub fn programs(options: &Options, progress: Progress) -> Result<Vec<Program>> {
    let build = |contestant: &super::contestant::Contestant| {
        progress(&format!("compiling {}", contestant.name));
        contestant.build(options)
    };
    CONTESTANTS.iter().map(build).collect()
}

/// Measures `count` rounds of those that `takes_part` names by their places.
pub fn measure(
    programs: &[Program],
    measure: Measure,
    turns: u32,
    count: usize,
    takes_part: impl Fn(usize) -> bool,
    progress: Progress,
) -> Result<Rounds> {
    let mut rounds = vec![];
    for round in 0..count {
        progress(&format!("{measure:?}, round {} of {count}", round + 1));
        let mut figures = vec![f64::NAN; programs.len()];
        for turn in 0..programs.len() {
            let place = (round + turn) % programs.len();
            if takes_part(place) {
                figures[place] = programs[place].run(measure, turns)?;
            }
        }
        rounds.push(figures);
    }
    Ok(Rounds { measure: format!("{measure:?}"), rounds })
}

impl Rounds {
    /// None: it was left out.
    pub fn median(&self, place: usize) -> Option<Median> {
        self.over(|figures| figures[place])
    }

    /// One contestant's figure by another's, within rounds.
    pub fn ratio(&self, ours: usize, theirs: usize) -> Option<Median> {
        self.over(|figures| figures[ours] / figures[theirs])
    }

    fn over(&self, figure: impl Fn(&[f64]) -> f64) -> Option<Median> {
        let values: Vec<f64> = self.rounds.iter().map(|figures| figure(figures)).collect();
        if values.iter().any(|value| value.is_nan()) {
            return None;
        }
        median_interval::of(&values)
    }
}

/// Where a contestant stands in [`CONTESTANTS`].
pub fn place(name: &str) -> usize {
    CONTESTANTS.iter().position(|contestant| contestant.name == name).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round_and_the_absent_have_none() {
        let round = |speed: f64| vec![2.0 * speed, 4.0 * speed, f64::NAN];
        let rounds = Rounds { measure: String::new(), rounds: vec![round(1.0), round(10.0)] };
        assert_eq!(rounds.ratio(0, 1).map(|it| (it.low, it.high)), Some((0.5, 0.5)));
        assert!(rounds.ratio(0, 2).is_none() && rounds.median(2).is_none());
    }
}
