//! The periods of one event train.
//!
//! ```text
//! events ─ starts on several scales ─ spectrum ─ proposals ─ glance ─ weigh ─ the best ─ resolved by work
//!                    ▲                                                         │
//!                    └───────────── starts that it explains are taken out ─────┘
//! ```
//!
//! A period is significant when what its evidence gains exceeds what the search could have gained by luck (`LUCK`).
//! What remains after taking a period's starts out shows the next one.

use crate::evidence::{Evidence, glance, weigh};
use crate::intervals;
use crate::settings::Settings;
use crate::spectrum::{Grid, magnitudes, peaks};
use crate::starts::{SCALES, Start, starts};
use crate::work::{contrast, locked_share};

/// A period that one train speaks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hypothesis {
    pub evidence: Evidence,
    /// The pause before an event that makes it a start, in seconds.
    pub pause: f64,
    /// Evidence less luck, in nats: significant when positive.
    pub net: f64,
    /// The share of the train's events that the period locks; zero where it was not asked.
    pub share: f64,
    /// Whether equal intervals speak for it, not a common phase.
    pub sleeper: bool,
}

/// Starts that the spectrum is made of, at most: the ones after the longest pauses.
const STRONGEST: usize = 192;
/// Peaks of the spectrum that are followed up.
const PEAKS: usize = 20;
/// Hypotheses that are weighed after the glance.
const FINALISTS: usize = 12;
/// Starts that all glances on one scale may look at: the more starts, the fewer proposals. It bounds the time of an analysis.
const LOOKS: usize = 10_000;
/// The share of a train's events that a period must lock.
const LEAST_SHARE: f64 = 0.08;
/// What the search for a cluster of intervals can gain by luck, beside the choice of its place.
const SLEEPER_LUCK: f64 = 8.0;
/// Periods that are looked for in one train.
const PERIODS: usize = 4;
/// The share of cycles that must be hit: below, it is no beat that a server could keep.
const LEAST_HITS: f64 = 0.3;
/// Contrast from which every k-th beat is the job and the others are not; by k = 2, 3, ..
const CONTRASTS: [f64; 4] = [0.15, 0.5, 0.22, 0.3];
/// Cycles that the sub-harmonic must have in the window.
const LEAST_JOBS: f64 = 16.0;

/// What one train says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The proposals that were weighed, the best first; significant or not.
    pub candidates: Vec<Hypothesis>,
    /// The significant ones among them, resolved, the best first.
    pub periods: Vec<Hypothesis>,
}

/// Looks for periods in sorted `times`, counted from the beginning of a window of `length` seconds.
pub fn periods(times: &[f64], length: f64, settings: &Settings) -> Verdict {
    let mut verdict = Verdict::default();
    let mut scales = scales(times);
    let mut proposals = glance_at(&scales, &propose(times, length, settings), length);
    while verdict.periods.len() < PERIODS {
        let weighed = weigh_best(&scales, &proposals, length, settings);
        let slept = sleeper(&scales, settings);
        let best = better(weighed.first().copied(), slept);
        if verdict.candidates.is_empty() {
            verdict.candidates = weighed;
        }
        let Some(best) = best.filter(|best| best.net > 0.0) else { break };
        if slept == Some(best) {
            verdict.periods.push(best);
            break;
        }
        if let Some(period) = locked(resolve(best, times, length, settings), times, length)
            && !verdict
                .periods
                .iter()
                .any(|known| related(known.evidence.frequency, period.evidence.frequency))
        {
            verdict.periods.push(period);
        }
        for (_, starts) in &mut scales {
            starts.retain(|&start| !best.evidence.explains(start));
        }
        proposals.retain(|proposal| proposal.nats > luck(length, settings) / 2.0);
        for proposal in &mut proposals {
            let (_, starts) = &scales[proposal.scale];
            proposal.nats = glance(starts, length, proposal.frequency).map_or(0.0, |evidence| evidence.nats);
        }
    }
    verdict
}

/// What speaks for `frequency` alone, in nats without allowance for luck.
pub fn support(times: &[f64], length: f64, frequency: f64) -> f64 {
    let weighed = scales(times).into_iter().filter_map(|(_, starts)| weigh(&starts, length, frequency));
    weighed.map(|evidence| evidence.nats).fold(0.0, f64::max)
}

/// With the share of the work that it locks; None where that is next to nothing: then the pauses were not the program's own, as when
/// a program that only computes loses its CPU to another one at every third tick.
fn locked(period: Hypothesis, times: &[f64], length: f64) -> Option<Hypothesis> {
    let share = locked_share(times, length, period.evidence.frequency);
    (share > LEAST_SHARE).then_some(Hypothesis { share, ..period })
}

/// Whether one frequency is a small multiple of the other. What remains of a period's own structure looks like one.
pub fn related(a: f64, b: f64) -> bool {
    let ratio = (a / b).max(b / a);
    ratio < 12.5 && (ratio / ratio.round() - 1.0).abs() < 0.015
}

/// The best that intervals speak for.
fn sleeper(scales: &[(f64, Vec<f64>)], settings: &Settings) -> Option<Hypothesis> {
    let weighed = scales.iter().filter_map(|(pause, starts)| {
        let evidence = intervals::weigh(starts, *pause)?;
        let in_range = (settings.f_min..=settings.f_max).contains(&evidence.frequency);
        let luck = (evidence.cycles * SCALES.len() as f64).ln() + SLEEPER_LUCK;
        in_range.then_some(Hypothesis {
            evidence,
            pause: *pause,
            net: evidence.nats - luck,
            share: 1.0,
            sleeper: true,
        })
    });
    weighed.max_by(|a, b| a.net.total_cmp(&b.net))
}

/// A common phase explains more than equal intervals do: intervals must be much stronger.
fn better(phase: Option<Hypothesis>, intervals: Option<Hypothesis>) -> Option<Hypothesis> {
    match (phase, intervals) {
        (Some(phase), Some(intervals)) => {
            Some(if intervals.net > 1.5 * phase.net.max(0.0) + 10.0 { intervals } else { phase })
        }
        (phase, intervals) => phase.or(intervals.filter(|found| found.net > 10.0)),
    }
}

/// Starts on each scale that says something new.
fn scales(times: &[f64]) -> Vec<(f64, Vec<f64>)> {
    let mut scales: Vec<(f64, Vec<f64>)> = Vec::new();
    for pause in SCALES {
        let starts: Vec<f64> = starts(times, pause).iter().map(|start| start.time).collect();
        if starts.len() >= 4
            && scales.last().is_none_or(|(_, last)| last.len() as f64 > 1.05 * starts.len() as f64)
        {
            scales.push((pause, starts));
        }
    }
    scales
}

/// The spectrum of the starts after the longest pauses.
pub fn spectrum(times: &[f64], length: f64, settings: &Settings) -> (Grid, Vec<f64>) {
    let mut starts: Vec<Start> = starts(times, SCALES[0]);
    if starts.len() > STRONGEST {
        starts.select_nth_unstable_by(STRONGEST, |a, b| b.pause.total_cmp(&a.pause));
        starts.truncate(STRONGEST);
    }
    // A start after a long pause is more likely a beat than one after a short pause.
    let weighted: Vec<(f64, f64)> =
        starts.iter().map(|start| (start.time, start.pause.min(0.05).sqrt())).collect();
    let grid = Grid { low: settings.f_min, high: settings.f_max, step: (0.2 / length).max(0.02) };
    (grid, magnitudes(&weighted, grid))
}

/// Frequencies worth a look: peaks of the starts' spectrum, then their harmonics and sub-harmonics, the likeliest first.
fn propose(times: &[f64], length: f64, settings: &Settings) -> Vec<f64> {
    let (grid, spectrum) = spectrum(times, length, settings);
    let mut tops = peaks(&spectrum);
    tops.sort_by(|&a, &b| spectrum[b].total_cmp(&spectrum[a]));
    tops.truncate(PEAKS);

    let slowest = settings.f_min.max(settings.least_cycles / length);
    let multiples = [1.0, 0.5, 2.0, 1.0 / 3.0, 0.25, 0.2, 3.0];
    let parts = (6..=8).map(|part| 1.0 / f64::from(part));
    let tops: Vec<f64> = tops.into_iter().map(|top| grid.low + grid.step * vertex(&spectrum, top)).collect();
    let mut proposals: Vec<f64> = Vec::new();
    for factor in multiples.into_iter().chain(parts) {
        for peak in &tops {
            let frequency = peak * factor;
            let known = proposals.iter().any(|&other| (other - frequency).abs() * length < 0.04);
            if !known && (slowest..=settings.f_max).contains(&frequency) {
                proposals.push(frequency);
            }
        }
    }
    proposals
}

/// Where a parabola through a peak and its neighbours is highest, as an index.
fn vertex(spectrum: &[f64], top: usize) -> f64 {
    let (left, middle, right) = (spectrum[top - 1], spectrum[top], spectrum[top + 1]);
    let bend = left - 2.0 * middle + right;
    top as f64 + if bend < 0.0 { (0.5 * (left - right) / bend).clamp(-0.5, 0.5) } else { 0.0 }
}

/// A frequency to be weighed on one scale, and what a glance says.
struct Proposal {
    frequency: f64,
    scale: usize,
    nats: f64,
}

/// Glances at frequencies on all scales, as many as there is time for.
fn glance_at(scales: &[(f64, Vec<f64>)], frequencies: &[f64], length: f64) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (scale, (pause, starts)) in scales.iter().enumerate() {
        for &frequency in frequencies.iter().take(LOOKS / starts.len().max(1)) {
            // A pause that fills the period sees every second start at best.
            if pause * frequency < 0.7
                && let Some(evidence) = glance(starts, length, frequency)
            {
                proposals.push(Proposal { frequency: evidence.frequency, scale, nats: evidence.nats });
            }
        }
    }
    proposals
}

/// Weighs the most promising proposals, the best first, each rate once.
fn weigh_best(
    scales: &[(f64, Vec<f64>)],
    proposals: &[Proposal],
    length: f64,
    settings: &Settings,
) -> Vec<Hypothesis> {
    let mut finalists: Vec<&Proposal> = proposals.iter().collect();
    finalists.sort_by(|a, b| b.nats.total_cmp(&a.nats));
    finalists.truncate(FINALISTS);
    let luck = luck(length, settings);
    let mut weighed: Vec<Hypothesis> = Vec::new();
    for proposal in finalists {
        let (pause, starts) = &scales[proposal.scale];
        let Some(evidence) = weigh(starts, length, proposal.frequency) else { continue };
        let in_range = (settings.f_min..=settings.f_max).contains(&evidence.frequency);
        if in_range && evidence.hits as f64 >= LEAST_HITS * evidence.cycles {
            let net = evidence.nats.min(evidence.concentration + luck / 2.0) - luck;
            weighed.push(Hypothesis { evidence, pause: *pause, net, share: 0.0, sleeper: false });
        }
    }
    weighed.sort_by(|a, b| b.net.total_cmp(&a.net));
    let mut distinct: Vec<Hypothesis> = Vec::new();
    for hypothesis in weighed {
        if !distinct.iter().any(|known| known.evidence.same_rate(&hypothesis.evidence)) {
            distinct.push(hypothesis);
        }
    }
    distinct
}

/// What the search can gain by luck, in nats: the logarithm of the number of distinguishable frequencies, phases, tolerances
/// and scales that it looks at.
fn luck(length: f64, settings: &Settings) -> f64 {
    let frequencies = (length * (settings.f_max - settings.f_min)).max(1.0);
    let (phases, slopes, choices): (f64, f64, f64) = (20.0, 20.0, 20.0);
    frequencies.ln() + phases.ln() + slopes.ln() + choices.ln()
}

/// Goes down to a sub-harmonic while the work says, in both halves of the window, that only every k-th beat is the job.
fn resolve(found: Hypothesis, times: &[f64], length: f64, settings: &Settings) -> Hypothesis {
    let middle = length / 2.0;
    let (first, second) = times.split_at(times.partition_point(|&time| time < middle));
    let second: Vec<f64> = second.iter().map(|time| time - middle).collect();
    let mut resolved = found;
    loop {
        let frequency = resolved.evidence.frequency;
        let slowest = settings.f_min.max(LEAST_JOBS / length);
        let contrasts = (2..).zip(CONTRASTS).filter(|&(k, _)| frequency / k as f64 >= slowest);
        let excess = contrasts.map(|(k, least)| {
            let halves = [first, &second].map(|half| contrast(half, middle, frequency, k));
            let least_half = halves.into_iter().fold(f64::MAX, f64::min);
            (k, (contrast(times, length, frequency, k) - least).min(least_half - least / 2.0))
        });
        let best = excess.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, excess)| *excess > 0.0);
        let Some((k, _)) = best else { return resolved };
        resolved.evidence = resolved.evidence.slower(k);
    }
}
