//! Analyses long recordings window by window, and follows programs that change their rate.

use std::collections::VecDeque;

use crate::analyser::{Analysis, Period, analyse, program};
use crate::recording::Event;
use crate::settings::{Method, Settings};
use crate::train::{related, support};

/// Windows of this many seconds are long enough for every period and short enough for every
/// machine.
const WHOLE: f64 = 4.0;

/// Consecutive windows of `window` seconds from the first event on, each with its beginning. The
/// last one is left out if it is not full.
pub fn consecutive<'a>(
    events: &'a [Event],
    window: f64,
    settings: &'a Settings,
) -> impl Iterator<Item = (f64, Analysis)> + 'a {
    let (first, last) = ends(events);
    let full = ((last - first) / window + 1e-9).floor();
    let count = if full.is_finite() && window > 0.0 { full as u64 } else { 0 };
    (0..count).map(move |index| {
        let from = first + window * index as f64;
        (from, analyse(events, from, from + window, settings))
    })
}

/// A whole recording. One longer than a few seconds is analysed in windows; their periods are
/// joined, each weighing with its evidence, so that a program that keeps its rate gets more digits
/// and one that changes it gets the rate that it kept longest.
pub fn whole(events: &[Event], settings: &Settings) -> Analysis {
    let (first, last) = ends(events);
    let length = last - first;
    if length <= 1.5 * WHOLE || settings.method != Method::Evidence {
        // The last event belongs to the recording.
        return analyse(events, first, last + 1e-6, settings);
    }
    let window = length / (length / WHOLE).floor();
    let mut joined: Option<Analysis> = None;
    let mut from = first;
    while from + 0.5 * window < last {
        let analysis = analyse(events, from, from + window, settings);
        from += window;
        // A long silence is crossed in one step.
        let next = events.partition_point(|event| event.time < from);
        if let Some(next) = events.get(next).filter(|next| next.time > from + window) {
            from = next.time;
        }
        match &mut joined {
            None => joined = Some(analysis),
            Some(joined) => join(joined, analysis),
        }
    }
    let mut joined = joined.unwrap_or_else(|| analyse(events, first, last, settings));
    joined.periods.sort_by(|a, b| (b.hits as f64 * b.share).total_cmp(&(a.hits as f64 * a.share)));
    // A rate that was seen in few of the windows is no rate of the recording.
    joined.periods.retain(|period| period.cycles > 0.4 * length * period.frequency_hz);
    let best = joined.periods.first().cloned();
    joined.periodic = best.is_some();
    joined.frequency_hz = best.as_ref().map(|period| period.frequency_hz);
    joined.period_ms = best.as_ref().map(|period| period.period_ms);
    joined.confidence = best.map_or(0.0, |period| period.confidence);
    joined
}

fn join(joined: &mut Analysis, next: Analysis) {
    joined.events += next.events;
    for period in next.periods {
        let known =
            |known: &&mut Period| (known.frequency_hz / period.frequency_hz - 1.0).abs() < 0.01;
        match joined.periods.iter_mut().find(known) {
            Some(known) => {
                let share = period.cycles / (known.cycles + period.cycles);
                known.frequency_hz += share * (period.frequency_hz - known.frequency_hz);
                known.period_ms = 1e3 / known.frequency_hz;
                known.share += share * (period.share - known.share);
                known.confidence += share * (period.confidence - known.confidence);
                known.cycles += period.cycles;
                known.hits += period.hits;
                known.threads.extend(period.threads);
                known.threads.sort_unstable();
                known.threads.dedup();
            }
            None => joined.periods.push(period),
        }
    }
}

fn ends(events: &[Event]) -> (f64, f64) {
    match (events.first(), events.last()) {
        (Some(first), Some(last)) => (first.time, last.time),
        _ => (0.0, 0.0),
    }
}

/// Follows a running program: events come in, the verdict is on the last `window` seconds, or on
/// their second half if the program has changed its rate in between.
#[derive(Clone, Debug)]
pub struct Follower {
    settings: Settings,
    window: f64,
    events: VecDeque<Event>,
    forgotten: u64,
}

/// Events that are kept at most.
const MOST_EVENTS: usize = 100_000;
/// What the second half of a window must gain by a new rate, in nats.
const CHANGE: f64 = 10.0;

impl Follower {
    /// `window` in seconds; one or two are usual.
    pub fn new(window: f64, settings: Settings) -> Follower {
        Follower { settings, window, events: VecDeque::new(), forgotten: 0 }
    }

    /// Takes an event. An event that is older than the last one is put in its place.
    pub fn push(&mut self, event: Event) {
        if !event.time.is_finite() {
            return;
        }
        let place = self.events.partition_point(|known| known.time <= event.time);
        self.events.insert(place, event);
        let newest = self.events.back().map_or(event.time, |last| last.time);
        while self.events.front().is_some_and(|first| first.time < newest - self.window) {
            self.events.pop_front();
        }
        if self.events.len() > MOST_EVENTS {
            self.events.pop_front();
            self.forgotten += 1;
        }
    }

    /// Events inside the window that were dropped because there were too many.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The verdict at time `now`, in seconds on the events' clock.
    pub fn verdict(&mut self, now: f64) -> Analysis {
        let events = self.events.make_contiguous();
        let whole = analyse(events, now - self.window, now, &self.settings);
        let middle = now - self.window / 2.0;
        let half = analyse(events, middle, now, &self.settings);
        let Some(new) = half.frequency_hz else { return whole };
        let Some(old) = whole.frequency_hz else { return half };
        if related(old, new) {
            return whole;
        }
        let inside = |time: f64| events.partition_point(|event| event.time < time);
        let train = program(&events[inside(middle)..inside(now)], middle);
        let weight = |frequency| support(&train, self.window / 2.0, frequency, &self.settings);
        if weight(new) > weight(old) + CHANGE { half } else { whole }
    }
}
