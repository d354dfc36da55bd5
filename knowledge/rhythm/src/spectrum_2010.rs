//! The published heuristic (Cucinotta, Checconi, Abeni, Palopoli: Self-tuning schedulers for legacy
//! real-time applications, EuroSys 2010, section 4), kept as it was, to compare with.
//!
//! `|S(f)|` of all events on a grid; its local maxima above `alpha` times its mean are candidates;
//! a candidate's score is the sum of the largest amplitudes within `eps` of its multiples, up to
//! `harmonics` of them while they lie on the grid; the highest score wins. It always answers when
//! there is a peak at all.

use crate::spectrum::{Grid, magnitudes, peaks};

/// The heuristic's parameters. Frequencies in Hz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    pub f_min: f64,
    pub f_max: f64,
    pub df: f64,
    /// A candidate's least amplitude, in means of the spectrum.
    pub alpha: f64,
    /// How far from a multiple its peak is looked for.
    pub eps: f64,
    /// Number of multiples, the fundamental included.
    pub harmonics: usize,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters { f_min: 1.0, f_max: 100.0, df: 0.1, alpha: 0.2, eps: 0.5, harmonics: 10 }
    }
}

/// A local maximum with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub frequency: f64,
    pub amplitude: f64,
    pub score: f64,
}

/// `|S(f)|` of sorted `times` in seconds.
pub fn spectrum(times: &[f64], parameters: &Parameters) -> (Grid, Vec<f64>) {
    let first = times.first().copied().unwrap_or(0.0);
    let grid = Grid { low: parameters.f_min, high: parameters.f_max, step: parameters.df };
    let events: Vec<(f64, f64)> = times.iter().map(|time| (time - first, 1.0)).collect();
    (grid, magnitudes(&events, grid))
}

/// The candidates for sorted `times` in seconds, best first.
pub fn candidates(times: &[f64], parameters: &Parameters) -> Vec<Candidate> {
    let (grid, spectrum) = spectrum(times, parameters);
    let mean = spectrum.iter().sum::<f64>() / spectrum.len().max(1) as f64;
    let reach = (parameters.eps / parameters.df).round() as usize;
    let score = |frequency: f64| -> f64 {
        let place = |k: usize| ((k as f64 * frequency - grid.low) / grid.step).round() as usize;
        let around = |at: usize| at.saturating_sub(reach)..(at + reach + 1).min(spectrum.len());
        let multiples = (1..=parameters.harmonics).map(place).take_while(|&at| at < spectrum.len());
        multiples.map(|at| spectrum[around(at)].iter().copied().fold(0.0, f64::max)).sum()
    };
    let strong = peaks(&spectrum).into_iter().filter(|&at| spectrum[at] >= parameters.alpha * mean);
    let mut candidates: Vec<Candidate> = strong
        .map(|at| {
            let frequency = grid.frequency(at);
            Candidate { frequency, amplitude: spectrum[at], score: score(frequency) }
        })
        .collect();
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_beat_of_a_clean_train() {
        let times: Vec<f64> =
            (0..100).flat_map(|k| [0.04 * f64::from(k), 0.04 * f64::from(k) + 0.001]).collect();
        let best = candidates(&times, &Parameters::default())[0];
        assert!((best.frequency - 25.0).abs() < 0.11, "{best:?}");
    }

    #[test]
    fn nothing_from_nothing() {
        assert!(candidates(&[], &Parameters::default()).is_empty());
        assert!(
            candidates(&[0.0], &Parameters { f_min: f64::NAN, ..Parameters::default() }).is_empty()
        );
    }
}
