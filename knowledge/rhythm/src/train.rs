//! Finds the periods of one event train.
//!
//! ```text
//! events ─ starts on several scales ─ spectrum ─ proposals ─ glance ─ weigh ─ the best ─ resolved
//!                    ▲                                                         │
//!                    └───────────── starts that it explains are taken out ─────┘
//! ```
//!
//! A period is significant when what its evidence gains exceeds what the search could have gained
//! by luck (`LUCK`). What remains after taking a period's starts out shows the next one.

use crate::evidence::{Evidence, glance, weigh};
use crate::hypothesis::Hypothesis;
use crate::intervals;
use crate::resolve;
use crate::settings::Settings;
use crate::spectrum::{Grid, magnitudes, peaks};
use crate::starts::{SCALES, Start, after, gaps};
use crate::work::locked_share;

/// The events of a program or a thread. Times count from the beginning of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Train {
    /// When it entered system calls: its work. Sorted.
    pub entries: Vec<f64>,
    /// When it began its jobs.
    pub starts: Vec<Start>,
    /// Its threads' waits, one kind after the other, where wake-ups are told.
    pub waits: Vec<Vec<Start>>,
    /// CPU time of all its jobs, in ns, where it is told.
    pub work: f64,
    /// Whether the pauses before starts are what it slept, as wake-ups tell, not what lies between
    /// two entries.
    pub exact: bool,
}

impl Train {
    /// A train of entries alone.
    pub fn of_entries(entries: Vec<f64>) -> Train {
        Train { starts: gaps(&entries), entries, ..Train::default() }
    }

    /// The share of all work that is done in these jobs.
    fn share(&self, jobs: &[Start]) -> f64 {
        let work = jobs.iter().map(|job| job.size).sum::<f64>();
        if self.work > 0.0 { (work / self.work).min(1.0) } else { 1.0 }
    }
}

/// Starts that the spectrum is made of, at most: the ones after the longest pauses.
const STRONGEST: usize = 192;
/// Peaks of the spectrum that are followed up.
const PEAKS: usize = 20;
/// Hypotheses that are weighed after the glance.
const FINALISTS: usize = 12;
/// Starts that all glances together may look at: the more starts and scales, the fewer proposals.
/// It bounds the time of an analysis. In a program's train, and in that of one of its threads.
pub const LOOKS: usize = 100_000;
pub const LOOKS_AT_THREAD: usize = 12_000;
/// The share of a train's events that a period must lock.
const LEAST_SHARE: f64 = 0.08;
/// What the search for a cluster of intervals can gain by luck, beside the choice of its place.
const SLEEPER_LUCK: f64 = 8.0;
/// Periods that are looked for in one train.
const PERIODS: usize = 4;
/// What one train says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The proposals that were weighed, the best first; significant or not.
    pub candidates: Vec<Hypothesis>,
    /// The significant ones among them, resolved, the best first.
    pub periods: Vec<Hypothesis>,
}

/// Looks for periods in a window of `length` seconds, at `looks` starts at most before it weighs.
pub fn periods(train: &Train, length: f64, looks: usize, settings: &Settings) -> Verdict {
    let times = &train.entries[..];
    let mut verdict = Verdict::default();
    let mut scales = scales(train, settings);
    let mut proposals = glance_at(&scales, &propose(train, length, settings), length, looks);
    while verdict.periods.len() < PERIODS {
        let weighed = weigh_best(&scales, &proposals, train, length, settings);
        let slept = sleeper(&scales, train, length, settings);
        let best = better(weighed.first().copied(), slept, train);
        if verdict.candidates.is_empty() {
            verdict.candidates = weighed;
        }
        let Some(best) = best.filter(|best| best.net > 0.0) else { break };
        if slept == Some(best) {
            verdict.periods.push(best);
            break;
        }
        let scale = &scales[best.scale];
        let resolved = match train.exact {
            true => {
                let patterned = resolve::by_pattern(best, &scale.starts, length, settings);
                let told = resolve::by_call(patterned, &scale.jobs, length, settings);
                Some(resolve::by_size(told, &train.starts, length, settings))
            }
            false => locked(resolve::by_work(best, times, length, settings), times, length),
        };
        if let Some(period) = resolved
            && !verdict
                .periods
                .iter()
                .any(|known| related(known.evidence.frequency, period.evidence.frequency))
        {
            verdict.periods.push(period);
        }
        scales.iter_mut().for_each(|scale| scale.forget(&best.evidence));
        proposals.retain(|proposal| proposal.nats > luck(length, scales.len(), settings) / 2.0);
        for proposal in &mut proposals {
            let starts = &scales[proposal.scale].starts;
            proposal.nats =
                glance(starts, length, proposal.frequency).map_or(0.0, |evidence| evidence.nats);
        }
    }
    verdict
}

/// What speaks for `frequency` alone, in nats without allowance for luck.
pub fn support(train: &Train, length: f64, frequency: f64, settings: &Settings) -> f64 {
    let weighed = scales(train, settings)
        .into_iter()
        .filter_map(|scale| weigh(&scale.starts, length, frequency));
    weighed.map(|evidence| evidence.nats).fold(0.0, f64::max)
}

/// With the share of the work that it locks; None where that is next to nothing: then the pauses
/// were not the program's own, as when a program that only computes loses its CPU to another one at
/// every third tick.
fn locked(period: Hypothesis, times: &[f64], length: f64) -> Option<Hypothesis> {
    let share = locked_share(times, length, period.evidence.frequency);
    (share > LEAST_SHARE).then_some(Hypothesis { share, ..period })
}

/// Whether one frequency is a small multiple of the other. What remains of a period's own structure
/// looks like one.
pub fn related(a: f64, b: f64) -> bool {
    let ratio = (a / b).max(b / a);
    ratio < 12.5 && (ratio / ratio.round() - 1.0).abs() < 0.015
}

/// The best that equal sleeps speak for.
fn sleeper(
    scales: &[Scale],
    train: &Train,
    length: f64,
    settings: &Settings,
) -> Option<Hypothesis> {
    let weighed =
        scales.iter().enumerate().filter(|(_, scale)| scale.all).filter_map(|(index, scale)| {
            let (evidence, share) = match train.exact {
                true => (
                    intervals::weigh_pauses(&scale.jobs, scale.pause, length)?,
                    train.share(&scale.jobs),
                ),
                false => (intervals::weigh(&scale.starts, scale.pause)?, 1.0),
            };
            let in_range = (settings.f_min..=settings.f_max).contains(&evidence.frequency);
            let luck = (evidence.cycles * SCALES.len() as f64).ln() + SLEEPER_LUCK;
            in_range.then_some(Hypothesis {
                evidence,
                pause: scale.pause,
                net: evidence.nats - luck,
                share,
                sleeper: true,
                scale: index,
            })
        });
    let weighed = weighed.filter(|found| found.share > LEAST_SHARE);
    weighed.max_by(|a, b| a.net.total_cmp(&b.net))
}

/// A common phase explains more than equal intervals do: intervals must be much stronger.
fn better(
    phase: Option<Hypothesis>,
    slept: Option<Hypothesis>,
    train: &Train,
) -> Option<Hypothesis> {
    match (phase, slept) {
        (Some(phase), Some(slept)) => {
            let much_stronger = rank(&slept, train) > 1.5 * rank(&phase, train).max(0.0) + 10.0;
            Some(if much_stronger { slept } else { phase })
        }
        (phase, slept) => phase.or(slept.filter(|found| found.net > 10.0)),
    }
}

/// Where it is told how much is done on a beat, work counts: a poll has many beats and does little.
fn rank(found: &Hypothesis, train: &Train) -> f64 {
    if train.exact && found.net > 0.0 { found.net * found.share } else { found.net }
}

/// Starts of one kind.
struct Scale {
    /// The least pause before them.
    pause: f64,
    starts: Vec<f64>,
    /// The same with what is known of them.
    jobs: Vec<Start>,
    /// Not only those of big jobs.
    all: bool,
}

impl Scale {
    fn of(pause: f64, starts: &[Start], all: bool) -> Scale {
        let times = starts.iter().map(|start| start.time).collect();
        Scale { pause, starts: times, jobs: starts.to_vec(), all }
    }

    /// Leaves those out that a period explains.
    fn forget(&mut self, evidence: &Evidence) {
        self.starts.retain(|&start| !evidence.explains(start));
        self.jobs.retain(|job| !evidence.explains(job.time));
    }
}

/// Starts on each scale that says something new, and after each kind of wait; and those of big jobs
/// among them.
fn scales(train: &Train, settings: &Settings) -> Vec<Scale> {
    let mut scales: Vec<Scale> = Vec::new();
    let mut last: Option<usize> = None;
    for pause in SCALES {
        let starts = after(&train.starts, pause);
        if starts.len() < 4 || last.is_some_and(|last| last as f64 <= 1.05 * starts.len() as f64) {
            continue;
        }
        last = Some(starts.len());
        add(&mut scales, pause, &starts, settings.constants.big);
    }
    train
        .waits
        .iter()
        .for_each(|starts| add(&mut scales, SCALES[0], starts, settings.constants.big));
    scales
}

fn add(scales: &mut Vec<Scale>, pause: f64, starts: &[Start], big: f64) {
    scales.push(Scale::of(pause, starts, true));
    let mean = starts.iter().map(|start| start.size).sum::<f64>() / starts.len() as f64;
    let big: Vec<Start> = starts.iter().filter(|start| start.size >= big * mean).copied().collect();
    if big.len() >= 4 && (big.len() as f64) < 0.8 * starts.len() as f64 {
        scales.push(Scale::of(pause, &big, false));
    }
}

/// The spectrum of the starts after the longest pauses.
pub fn spectrum(train: &Train, length: f64, settings: &Settings) -> (Grid, Vec<f64>) {
    let mut starts = match train.waits.is_empty() {
        true => train.starts.clone(),
        false => train.waits.concat(),
    };
    if starts.len() > STRONGEST {
        starts.select_nth_unstable_by(STRONGEST, |a, b| b.pause.total_cmp(&a.pause));
        starts.truncate(STRONGEST);
    }
    // A start after a long pause is more likely a beat than one after a short pause, a big job more
    // than a small one.
    let mean = starts.iter().map(|start| start.size).sum::<f64>() / starts.len().max(1) as f64;
    let weight = |start: &Start| {
        start.pause.min(0.05) * if mean > 0.0 { (start.size / mean).clamp(0.1, 1.0) } else { 1.0 }
    };
    let weighted: Vec<(f64, f64)> =
        starts.iter().map(|start| (start.time, weight(start).sqrt())).collect();
    let grid = Grid { low: settings.f_min, high: settings.f_max, step: (0.2 / length).max(0.02) };
    (grid, magnitudes(&weighted, grid))
}

/// Frequencies worth a look: peaks of the starts' spectrum, then their harmonics and sub-harmonics,
/// the likeliest first.
fn propose(train: &Train, length: f64, settings: &Settings) -> Vec<f64> {
    let (grid, spectrum) = spectrum(train, length, settings);
    let mut tops = peaks(&spectrum);
    tops.sort_by(|&a, &b| spectrum[b].total_cmp(&spectrum[a]));
    tops.truncate(PEAKS);

    let slowest = settings.f_min.max(settings.least_cycles / length);
    let multiples = [1.0, 0.5, 2.0, 1.0 / 3.0, 0.25, 0.2, 3.0];
    let parts = (6..=8).map(|part| 1.0 / f64::from(part));
    let tops: Vec<f64> =
        tops.into_iter().map(|top| grid.low + grid.step * vertex(&spectrum, top)).collect();
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
    pub scale: usize,
    nats: f64,
}

/// Glances at frequencies on all scales, as many as there is time for.
fn glance_at(scales: &[Scale], frequencies: &[f64], length: f64, looks: usize) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (scale, Scale { pause, starts, .. }) in scales.iter().enumerate() {
        for &frequency in frequencies.iter().take(looks / scales.len() / starts.len().max(1)) {
            // A pause that fills the period sees every second start at best.
            if pause * frequency < 0.7
                && let Some(evidence) = glance(starts, length, frequency)
            {
                proposals.push(Proposal {
                    frequency: evidence.frequency,
                    scale,
                    nats: evidence.nats,
                });
            }
        }
    }
    proposals
}

/// Weighs the most promising proposals, the best first, each rate once.
fn weigh_best(
    scales: &[Scale],
    proposals: &[Proposal],
    train: &Train,
    length: f64,
    settings: &Settings,
) -> Vec<Hypothesis> {
    let mut finalists: Vec<&Proposal> = proposals.iter().collect();
    finalists.sort_by(|a, b| b.nats.total_cmp(&a.nats));
    finalists.truncate(FINALISTS);
    let luck = luck(length, scales.len(), settings);
    let mut weighed: Vec<Hypothesis> = Vec::new();
    for proposal in finalists {
        let Scale { pause, starts, jobs, .. } = &scales[proposal.scale];
        let Some(evidence) = weigh(starts, length, proposal.frequency) else { continue };
        let in_range = (settings.f_min..=settings.f_max).contains(&evidence.frequency);
        if in_range && evidence.hits as f64 >= settings.constants.least_hits * evidence.cycles {
            let net = evidence.nats.min(evidence.concentration + luck / 2.0) - luck;
            let share = if train.exact { share_of_beat(jobs, &evidence, train) } else { 0.0 };
            weighed.push(Hypothesis {
                evidence,
                pause: *pause,
                net,
                share,
                sleeper: false,
                scale: proposal.scale,
            });
        }
    }
    weighed.sort_by(|a, b| rank(b, train).total_cmp(&rank(a, train)));
    let mut distinct: Vec<Hypothesis> = Vec::new();
    for hypothesis in weighed {
        if !distinct.iter().any(|known| known.evidence.same_rate(&hypothesis.evidence)) {
            distinct.push(hypothesis);
        }
    }
    distinct
}

fn share_of_beat(jobs: &[Start], evidence: &Evidence, train: &Train) -> f64 {
    let on_beat: Vec<Start> =
        jobs.iter().filter(|job| evidence.explains(job.time)).copied().collect();
    train.share(&on_beat)
}

/// What the search can gain by luck, in nats: the logarithm of the number of distinguishable
/// frequencies, phases, tolerances and scales that it looks at, the last with four choices each (of
/// tolerances that have little to do with each other).
fn luck(length: f64, scales: usize, settings: &Settings) -> f64 {
    let frequencies = (length * (settings.f_max - settings.f_min)).max(1.0);
    let (phases, slopes, choices): (f64, f64, f64) =
        (20.0, 20.0, 4.0 * scales.max(SCALES.len()) as f64);
    frequencies.ln() + phases.ln() + slopes.ln() + choices.ln() + settings.constants.caution
}
