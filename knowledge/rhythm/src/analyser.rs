//! The period analyser finds the periods in a program's events. It is pure.
//!
//! The events of all threads together are one train, and each busy thread's are another. A period
//! that several trains speak for is one period with several threads. The most significant one is
//! that with the greatest product of evidence and locked work: a poll loop has much evidence and
//! little work, a start-up hiccup the reverse. A period that only equal intervals speak for comes
//! after those with a common phase.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::hypothesis::Hypothesis;
use crate::recording::{Event, Kind};
use crate::settings::{Method, Settings};
use crate::spectrum_2010;
use crate::starts;
use crate::train::{self, LOOKS, LOOKS_AT_THREAD, Train};
use crate::work::locked_share;

/// One period of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Period {
    pub frequency_hz: f64,
    pub period_ms: f64,
    /// Standard error of the frequency, as the starts' own jitter sets it (least squares).
    pub error_hz: f64,
    /// 0 to 1: `1 - exp(-nats / 20)`, where `nats` is the evidence beyond what luck could bring. It
    /// orders verdicts.
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
    /// The most significant period's; none when not periodic.
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
/// A thread with fewer than one in so many of the program's events has no period of its own that
/// would matter.
const LEAST_PART: usize = 10;
/// The share of a thread's events from which it keeps a period that others found.
const KEEPS: f64 = 0.25;

/// Analyses the events with `from <= time < to`. They are sorted by time.
pub fn analyse(events: &[Event], from: f64, to: f64, settings: &Settings) -> Analysis {
    let begin = events.partition_point(|event| event.time < from);
    let end = events.partition_point(|event| event.time < to).max(begin);
    let events = &events[begin..end];
    match settings.method {
        Method::Evidence => evidence(events, from, to - from, settings),
        Method::Spectrum2010(parameters) => published(&entries(events, from), &parameters),
    }
}

/// When system calls were entered, counted from `from`.
fn entries(events: &[Event], from: f64) -> Vec<f64> {
    events.iter().filter(|event| event.kind == Kind::Enter).map(|event| event.time - from).collect()
}

/// All threads' events as one train.
pub fn program(events: &[Event], from: f64) -> Train {
    let entries = entries(events, from);
    match events.iter().any(|event| event.kind == Kind::Wake) {
        true => {
            let (starts, waits) = (starts::wakes(events.iter(), from), starts::waits(events, from));
            let blocks = events.iter().filter(|event| event.kind == Kind::Block);
            let work = blocks.filter_map(|block| block.number).map(|cpu_ns| cpu_ns as f64).sum();
            Train { entries, starts, waits, work, exact: true }
        }
        false => Train::of_entries(entries),
    }
}

/// The busiest threads' trains.
fn threads(events: &[Event], from: f64) -> Vec<(u32, Train)> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind == Kind::Enter) {
        if let Some(thread) = event.thread {
            *counts.entry(thread).or_default() += 1;
        }
    }
    let mut busiest: Vec<(u32, usize)> =
        counts.into_iter().filter(|(_, count)| *count >= LEAST_EVENTS).collect();
    busiest.sort_by_key(|(thread, count)| (std::cmp::Reverse(*count), *thread));
    busiest.truncate(THREADS);
    let train = |thread: u32| {
        let own: Vec<Event> =
            events.iter().filter(|event| event.thread == Some(thread)).copied().collect();
        (thread, program(&own, from))
    };
    busiest.into_iter().map(|(thread, _)| train(thread)).collect()
}

/// The spectrum that the method looks at, as pairs of frequency and amplitude: for pictures. Over
/// the first seconds of the events.
pub fn spectrum(events: &[Event], settings: &Settings) -> Vec<(f64, f64)> {
    const SECONDS: f64 = 10.0;
    let Some(first) = events.first() else { return Vec::new() };
    let end = events.partition_point(|event| event.time < first.time + SECONDS);
    let train = program(&events[..end], first.time);
    let length = train.entries.last().copied().unwrap_or(0.0);
    let (grid, amplitudes) = match settings.method {
        Method::Evidence => train::spectrum(&train, length, settings),
        Method::Spectrum2010(parameters) => spectrum_2010::spectrum(&train.entries, &parameters),
    };
    (0..).map(|index| grid.frequency(index)).zip(amplitudes).collect()
}

fn evidence(events: &[Event], from: f64, length: f64, settings: &Settings) -> Analysis {
    let all = program(events, from);
    let program = train::periods(&all, length, LOOKS, settings);
    let mut found: Vec<(Hypothesis, Vec<u32>)> =
        program.periods.into_iter().map(|found| (found, Vec::new())).collect();
    let mut threads = threads(events, from);
    if let [(thread, _)] = threads[..] {
        found.iter_mut().for_each(|(_, keepers)| keepers.push(thread));
        threads.clear();
    }
    // Where waits are told apart, the program's own train has seen each thread's already.
    let mut searches = if all.exact { 0 } else { SEARCHES };
    for (thread, train) in &threads {
        let part = train.entries.len() >= all.entries.len() / LEAST_PART;
        if !keeps(&mut found, *thread, &train.entries, length) && part && searches > 0 {
            searches -= 1;
            search(&mut found, *thread, train, &all, length, settings);
        }
    }
    let significance =
        |found: &Hypothesis| found.net * found.share * if found.sleeper { 1e-3 } else { 1.0 };
    found.sort_by(|(a, _), (b, _)| significance(b).total_cmp(&significance(a)));

    let periods: Vec<Period> = found
        .into_iter()
        .map(|(found, mut threads)| {
            threads.sort_unstable();
            Period {
                frequency_hz: found.evidence.frequency,
                period_ms: 1e3 / found.evidence.frequency,
                error_hz: found.evidence.frequency * found.evidence.error,
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
        all.entries.len(),
        periods,
        candidates
            .map(|found| Candidate {
                frequency_hz: found.evidence.frequency,
                score: found.evidence.nats,
            })
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
    train: &Train,
    all: &Train,
    length: f64,
    settings: &Settings,
) {
    for mut own in train::periods(train, length, LOOKS_AT_THREAD, settings).periods {
        // Looking at several trains is several tries.
        own.net -= (1.0 + SEARCHES as f64).ln();
        if own.net <= 0.0 {
            continue;
        }
        let rate = own.evidence.frequency;
        match found.iter_mut().find(|(known, _)| train::related(known.evidence.frequency, rate)) {
            Some((_, keepers)) => {
                if !keepers.contains(&thread) {
                    keepers.push(thread);
                }
            }
            None => {
                let part = match train.exact {
                    true => train.work / all.work.max(1.0),
                    false => train.entries.len() as f64 / all.entries.len() as f64,
                };
                let share = own.share * part;
                found.push((Hypothesis { share, ..own }, vec![thread]));
            }
        }
    }
}

/// The heuristic of 2010 answers whenever the spectrum has a peak; its confidence is its lead over
/// the next candidate.
fn published(all: &[f64], parameters: &spectrum_2010::Parameters) -> Analysis {
    let found = spectrum_2010::candidates(all, parameters);
    let scores = |at: usize| found.get(at).map_or(0.0, |candidate| candidate.score);
    let confidence = if scores(0) > 0.0 { 1.0 - scores(1) / scores(0) } else { 0.0 };
    let length = all.last().copied().unwrap_or(0.0);
    let periods = found.first().map(|best| Period {
        frequency_hz: best.frequency,
        period_ms: 1e3 / best.frequency,
        error_hz: parameters.df,
        confidence,
        beat_s: 0.0,
        hits: 0,
        cycles: length * best.frequency,
        share: locked_share(all, length, best.frequency),
        threads: Vec::new(),
    });
    let candidates = found
        .iter()
        .take(12)
        .map(|found| Candidate { frequency_hz: found.frequency, score: found.score });
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
