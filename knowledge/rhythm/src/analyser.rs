//! The period analyser: a program's events in, its periods out. Pure.
//!
//! The events of all threads together are one train, and each busy thread's are another. A period that several trains speak
//! for is one period with several threads. The most significant one is that with the greatest product of evidence and locked
//! work: a poll loop has much evidence and little work, a start-up hiccup the reverse. A period that only equal intervals speak for
//! comes after those with a common phase.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::recording::{Event, Kind};
use crate::settings::{Method, Settings};
use crate::spectrum_2010;
use crate::train::{self, Hypothesis};
use crate::work::locked_share;

/// One period of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Period {
    pub frequency_hz: f64,
    pub period_ms: f64,
    /// 0 to 1: `1 - exp(-nats / 20)`, where `nats` is the evidence beyond what luck could bring. It orders verdicts.
    pub confidence: f64,
    /// Time of one of its beats, on the recording's clock, in seconds.
    pub beat_s: f64,
    /// Cycles in which a job began on the beat, and cycles in all.
    pub hits: usize,
    pub cycles: f64,
    /// The share of the program's events that is locked to it.
    pub share: f64,
    /// The threads that keep it; empty where the recording does not tell threads apart.
    pub threads: Vec<u32>,
}

/// A frequency that was weighed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    pub frequency_hz: f64,
    /// Evidence in nats, or the published heuristic's sum of amplitudes.
    pub score: f64,
}

/// The verdict on one window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    pub periodic: bool,
    /// Of the most significant period; none when not periodic.
    pub frequency_hz: Option<f64>,
    pub period_ms: Option<f64>,
    pub confidence: f64,
    pub method: &'static str,
    /// Entries of system calls in the window.
    pub events: usize,
    /// The most significant first.
    pub periods: Vec<Period>,
    pub candidates: Vec<Candidate>,
}

/// Threads that are looked at one by one, the busiest first.
const THREADS: usize = 8;
/// Threads that are searched for periods of their own, which is what costs time.
const SEARCHES: usize = 3;
/// Events that a thread must have had to be looked at.
const LEAST_EVENTS: usize = 12;
/// A thread with fewer than one in so many of the program's events has no period of its own that would matter.
const LEAST_PART: usize = 10;
/// The share of a thread's events from which it keeps a period that others found.
const KEEPS: f64 = 0.25;

/// Analyses the events with `from <= time < to`. They are sorted by time.
pub fn analyse(events: &[Event], from: f64, to: f64, settings: &Settings) -> Analysis {
    let begin = events.partition_point(|event| event.time < from);
    let end = events.partition_point(|event| event.time < to).max(begin);
    let entries = events[begin..end].iter().filter(|event| event.kind == Kind::Enter);
    let mut all: Vec<f64> = Vec::with_capacity(end - begin);
    let mut by_thread: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for event in entries {
        all.push(event.time - from);
        if let Some(thread) = event.thread {
            by_thread.entry(thread).or_default().push(event.time - from);
        }
    }
    match settings.method {
        Method::Evidence => evidence(&all, by_thread, from, to - from, settings),
        Method::Spectrum2010(parameters) => published(&all, &parameters),
    }
}

/// The spectrum that the method looks at, as pairs of frequency and amplitude: for pictures. Over the first seconds of the events.
pub fn spectrum(events: &[Event], settings: &Settings) -> Vec<(f64, f64)> {
    const SECONDS: f64 = 10.0;
    let Some(first) = events.first() else { return Vec::new() };
    let entries = events.iter().filter(|event| event.kind == Kind::Enter);
    let times: Vec<f64> =
        entries.map(|event| event.time - first.time).take_while(|time| *time < SECONDS).collect();
    let length = times.last().copied().unwrap_or(0.0);
    let (grid, amplitudes) = match settings.method {
        Method::Evidence => train::spectrum(&times, length, settings),
        Method::Spectrum2010(parameters) => spectrum_2010::spectrum(&times, &parameters),
    };
    (0..).map(|index| grid.frequency(index)).zip(amplitudes).collect()
}

fn evidence(
    all: &[f64],
    by_thread: BTreeMap<u32, Vec<f64>>,
    from: f64,
    length: f64,
    settings: &Settings,
) -> Analysis {
    let program = train::periods(all, length, settings);
    let mut found: Vec<(Hypothesis, Vec<u32>)> =
        program.periods.into_iter().map(|found| (found, Vec::new())).collect();
    let mut threads: Vec<(u32, Vec<f64>)> =
        by_thread.into_iter().filter(|(_, times)| times.len() >= LEAST_EVENTS).collect();
    threads.sort_by_key(|(thread, times)| (std::cmp::Reverse(times.len()), *thread));
    threads.truncate(THREADS);
    if let [(thread, _)] = threads[..] {
        found.iter_mut().for_each(|(_, keepers)| keepers.push(thread));
        threads.clear();
    }
    let mut searches = SEARCHES;
    for (thread, times) in &threads {
        let part = times.len() >= all.len() / LEAST_PART;
        if !keeps(&mut found, *thread, times, length) && part && searches > 0 {
            searches -= 1;
            search(&mut found, *thread, times, all.len(), length, settings);
        }
    }
    let significance = |found: &Hypothesis| found.net * found.share * if found.sleeper { 1e-3 } else { 1.0 };
    found.sort_by(|(a, _), (b, _)| significance(b).total_cmp(&significance(a)));

    let periods: Vec<Period> = found
        .into_iter()
        .map(|(found, mut threads)| {
            threads.sort_unstable();
            Period {
                frequency_hz: found.evidence.frequency,
                period_ms: 1e3 / found.evidence.frequency,
                confidence: 1.0 - (-found.net / 20.0).exp(),
                beat_s: from + found.evidence.origin,
                hits: found.evidence.hits,
                cycles: found.evidence.cycles,
                share: found.share,
                threads,
            }
        })
        .collect();
    let candidates = program.candidates.iter();
    verdict(
        "evidence",
        all.len(),
        periods,
        candidates
            .map(|found| Candidate { frequency_hz: found.evidence.frequency, score: found.evidence.nats })
            .collect(),
    )
}

/// Adds the thread to the periods that it keeps; whether there is one.
fn keeps(found: &mut [(Hypothesis, Vec<u32>)], thread: u32, times: &[f64], length: f64) -> bool {
    let mut keeps = false;
    for (known, keepers) in found.iter_mut() {
        if locked_share(times, length, known.evidence.frequency) > KEEPS {
            keepers.push(thread);
            keeps = true;
        }
    }
    keeps
}

/// Adds the periods that one thread has by itself.
fn search(
    found: &mut Vec<(Hypothesis, Vec<u32>)>,
    thread: u32,
    times: &[f64],
    events: usize,
    length: f64,
    settings: &Settings,
) {
    for own in train::periods(times, length, settings).periods {
        let rate = own.evidence.frequency;
        match found.iter_mut().find(|(known, _)| train::related(known.evidence.frequency, rate)) {
            Some((_, keepers)) => {
                if !keepers.contains(&thread) {
                    keepers.push(thread);
                }
            }
            None => {
                let share = own.share * times.len() as f64 / events as f64;
                found.push((Hypothesis { share, ..own }, vec![thread]));
            }
        }
    }
}

/// The heuristic of 2010 answers whenever the spectrum has a peak; its confidence is its lead over the next candidate.
fn published(all: &[f64], parameters: &spectrum_2010::Parameters) -> Analysis {
    let found = spectrum_2010::candidates(all, parameters);
    let scores = |at: usize| found.get(at).map_or(0.0, |candidate| candidate.score);
    let confidence = if scores(0) > 0.0 { 1.0 - scores(1) / scores(0) } else { 0.0 };
    let length = all.last().copied().unwrap_or(0.0);
    let periods = found.first().map(|best| Period {
        frequency_hz: best.frequency,
        period_ms: 1e3 / best.frequency,
        confidence,
        beat_s: 0.0,
        hits: 0,
        cycles: length * best.frequency,
        share: locked_share(all, length, best.frequency),
        threads: Vec::new(),
    });
    let candidates =
        found.iter().take(12).map(|found| Candidate { frequency_hz: found.frequency, score: found.score });
    verdict("spectrum-2010", all.len(), periods.into_iter().collect(), candidates.collect())
}

fn verdict(
    method: &'static str,
    events: usize,
    periods: Vec<Period>,
    candidates: Vec<Candidate>,
) -> Analysis {
    let best = periods.first();
    Analysis {
        periodic: best.is_some(),
        frequency_hz: best.map(|period| period.frequency_hz),
        period_ms: best.map(|period| period.period_ms),
        confidence: best.map_or(0.0, |period| period.confidence),
        method,
        events,
        periods,
        candidates,
    }
}
