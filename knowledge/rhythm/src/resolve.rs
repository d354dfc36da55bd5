//! Chooses between a period and its sub-harmonics: every beat that was found may be a job, or only
//! every k-th.
//!
//! Evidence settles harmonics whose beats are missed. The remaining beats are there, of a
//! program that does different things at them: it polls, or reads half a period after it shows.
//! Then consecutive beats differ in a way that repeats every `k` of them. Four looks at that: where
//! the beat is always missed at the same place ([`by_pattern`]), which wait ends there
//! ([`by_call`]), how much CPU time is used ([`by_size`]), and where that is not told how many
//! calls are made ([`by_work`]).

use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::hypothesis::Hypothesis;
use crate::settings::Settings;
use crate::starts::{Start, after};
use crate::work::contrast;

/// Contrast from which every k-th beat is the job and the others are not; by k = 2, 3, ..
const CONTRASTS: [f64; 4] = [0.15, 0.5, 0.22, 0.3];
/// A place that is hit so much less often than the most hit one is always missed, but for luck.
const ALWAYS_MISSED: f64 = 0.15;
/// Rounds of `k` beats in which that must be so.
const LEAST_ROUNDS: f64 = 10.0;
/// Cycles that the sub-harmonic must have in the window.
const LEAST_JOBS: f64 = 16.0;

/// How much of the calls must follow from the places, for these to be different jobs; and nats
/// beyond luck.
const TOLD: f64 = 0.5;
const SURE: f64 = 5.0;

/// Goes down to a sub-harmonic where the beat is always missed at the same places of `k`: a
/// thread that wakes twice for each picture, the second time a quarter of its period after the
/// first, hits two of four beats. Load misses beats anywhere; and it moves no wake-ups.
pub fn by_pattern(
    found: Hypothesis,
    starts: &[f64],
    length: f64,
    settings: &Settings,
) -> Hypothesis {
    let slowest = settings.f_min.max(LEAST_ROUNDS / length);
    let rates = (2..=6).filter(|&k| found.evidence.frequency / k as f64 >= slowest);
    let ratios = rates.map(|k| (k, least_hit_by_most(starts, &found.evidence, length, k)));
    let best =
        ratios.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, ratio)| *ratio < ALWAYS_MISSED);
    match best {
        Some((k, _)) => Hypothesis { evidence: found.evidence.slower_at(k, starts), ..found },
        None => found,
    }
}

/// The ratio between the hits of the least and the most hit place among `k`; 1 where not even the
/// most hit one is hit as a rule.
fn least_hit_by_most(starts: &[f64], evidence: &Evidence, length: f64, k: usize) -> f64 {
    let hits = evidence.hits_by_place(starts, k);
    let (least, most) =
        hits.iter().fold((usize::MAX, 0), |(least, most), &hits| (least.min(hits), most.max(hits)));
    let rule = 0.6 * length * evidence.frequency / k as f64;
    if most as f64 >= rule.max(4.0) { least as f64 / most as f64 } else { 1.0 }
}

/// Goes down to a sub-harmonic where the wait before a job tells which of `k` beats it is: a thread
/// that has slept until the time shows a picture, half a period later another one, which waited for
/// room, reads the next. Those are two jobs of one period, however equal the times between them.
/// Threads of a pool that take turns wait in the same call, and are one job each time.
pub fn by_call(found: Hypothesis, jobs: &[Start], length: f64, settings: &Settings) -> Hypothesis {
    let slowest = settings.f_min.max(LEAST_ROUNDS / length);
    let rates = (2..=6).filter(|&k| found.evidence.frequency / k as f64 >= slowest);
    let told = rates.map(|k| (k, told_by_call(jobs, &found.evidence, k)));
    let best = told.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, nats)| *nats > SURE);
    match best {
        Some((k, _)) => {
            let starts: Vec<f64> = jobs.iter().map(|job| job.time).collect();
            Hypothesis { evidence: found.evidence.slower_at(k, &starts), ..found }
        }
        None => found,
    }
}

/// How much of the calls that jobs began after follows from their places among `k` beats: mutual
/// information over all jobs, in nats, less what luck makes; zero where most of it does not follow.
fn told_by_call(jobs: &[Start], evidence: &Evidence, k: usize) -> f64 {
    let mut counts: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut places = vec![0.0; k];
    for job in jobs.iter().filter(|job| evidence.explains(job.time)) {
        let Some(call) = job.call else { continue };
        let place = evidence.place(job.time, k);
        counts.entry(call).or_insert_with(|| vec![0.0; k])[place] += 1.0;
        places[place] += 1.0;
    }
    let all: f64 = places.iter().sum();
    let part = |count: f64, of: f64| if count > 0.0 { count * (of / count).ln() } else { 0.0 };
    // The calls' entropy, and what is left of it when the place is known.
    let entropy: f64 = counts.values().map(|counts| part(counts.iter().sum(), all)).sum();
    let left: f64 = counts
        .values()
        .flat_map(|counts| counts.iter().zip(&places))
        .map(|(&count, &of)| part(count, of))
        .sum();
    // Luck makes half as many nats on average.
    let luck = (k - 1) as f64 * counts.len().saturating_sub(1) as f64;
    if entropy - left > TOLD * entropy { entropy - left - luck } else { 0.0 }
}

/// Goes down to a sub-harmonic while the CPU time of the jobs says, in both halves of the window,
/// that only every k-th is one: all the other beats do little. Frames that differ are still frames.
pub fn by_size(
    found: Hypothesis,
    starts: &[Start],
    length: f64,
    settings: &Settings,
) -> Hypothesis {
    let starts = after(starts, found.pause);
    let middle = starts.partition_point(|start| start.time < length / 2.0);
    let mut resolved = found;
    loop {
        let slowest = settings.f_min.max(LEAST_JOBS / length);
        let rates = (2..=5).filter(|&k| resolved.evidence.frequency / k as f64 >= slowest);
        let others = |half: &[Start], k: usize| others_by_largest(half, &resolved.evidence, k);
        let ratios =
            rates.map(|k| (k, others(&starts[..middle], k).max(others(&starts[middle..], k))));
        let best = ratios
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, ratio)| *ratio < settings.constants.idle_beats);
        let Some((k, _)) = best else { return resolved };
        resolved.evidence = resolved.evidence.slower(k);
    }
}

/// The mean size of the second largest by that of the largest, among the `k` beats that make one
/// cycle of a `k`-th of the rate; 1 where that is not known.
fn others_by_largest(starts: &[Start], evidence: &Evidence, k: usize) -> f64 {
    let mut sums = vec![(0.0f64, 0usize); k];
    let cycles = starts.last().map_or(0.0, |last| last.time - starts[0].time) * evidence.frequency
        / k as f64;
    for start in starts.iter().filter(|start| evidence.explains(start.time)) {
        let (sum, count) = &mut sums[evidence.place(start.time, k)];
        (*sum, *count) = (*sum + start.size, *count + 1);
    }
    if sums.iter().any(|(_, count)| (*count as f64) < 0.5 * cycles) {
        return 1.0;
    }
    let mut means: Vec<f64> =
        sums.iter().map(|(sum, count)| sum / (*count).max(1) as f64).collect();
    means.sort_by(|a, b| b.total_cmp(a));
    if means[0] > 0.0 { means[1] / means[0] } else { 1.0 }
}

/// Goes down to a sub-harmonic while the work says, in both halves of the window, that only every
/// k-th beat is the job.
pub fn by_work(found: Hypothesis, times: &[f64], length: f64, settings: &Settings) -> Hypothesis {
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
