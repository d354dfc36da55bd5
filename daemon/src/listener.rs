//! Listens to one program until it has found its beat, or has found that there is none.

use attune_rhythm::recording::{self, Kind};
use attune_rhythm::{Analysis, Settings, analyse};
use attune_tracer::Event;

use attune_linux::time::{MILLISECOND, SECOND};

/// The first verdict comes after so long, others follow, and there are no more after the last.
const FIRST: u64 = SECOND;
const EACH: u64 = 200 * MILLISECOND;
/// From here on one confident verdict is enough; before, two in a row must agree. The last one is
/// taken as it is.
const SURE: u64 = 1800 * MILLISECOND;
const CONFIDENT: f64 = 0.3;
const LAST: u64 = 3 * SECOND;
/// Verdicts agree when they differ by less than this share.
pub const AGREE: f64 = 0.02;
/// Events that are kept at most; a program that makes more in three seconds is no player.
const MOST: usize = 300_000;

pub struct Listener {
    since: u64,
    next: u64,
    events: Vec<recording::Event>,
    last: Option<f64>,
}

/// What was heard.
#[derive(Debug)]
pub enum Heard {
    NotYet,
    /// Long enough for a first verdict, and there is not so much as a guess.
    NothingYet,
    Beat(Analysis),
    /// It did something, but not to a beat.
    Nothing,
    /// It did not even move.
    Silence,
}

impl Listener {
    pub fn start(now: u64) -> Listener {
        Listener { since: now, next: now + FIRST, events: Vec::new(), last: None }
    }

    /// When it says something next.
    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn since(&self) -> u64 {
        self.since
    }

    pub fn push(&mut self, event: &Event) {
        use attune_tracer::Kind as Seen;
        let (kind, number) = match event.kind {
            Seen::Enter(call) => (Kind::Enter, Some(u64::from(call))),
            Seen::Wake => (Kind::Wake, None),
            Seen::Block { cpu_ns } => (Kind::Block, cpu_ns),
            Seen::Exit(_) | Seen::Start | Seen::End => return,
        };
        if event.time >= self.since && self.events.len() < MOST {
            let time = (event.time - self.since) as f64 / 1e9;
            self.events.push(recording::Event { time, thread: Some(event.thread), kind, number });
        }
    }

    pub fn verdict(&mut self, now: u64, settings: &Settings) -> Heard {
        if now < self.next {
            return Heard::NotYet;
        }
        self.next = now + EACH;
        let elapsed = now - self.since;
        // Events of two CPUs may come out of order.
        self.events.sort_by(|a, b| a.time.total_cmp(&b.time));
        let analysis = analyse(&self.events, 0.0, elapsed as f64 / 1e9, settings);
        let agreed = |last: f64, now: f64| (last - now).abs() <= AGREE * now;
        match analysis.frequency_hz {
            Some(frequency) => {
                let confident = analysis.confidence >= CONFIDENT;
                let twice = self.last.is_some_and(|last| agreed(last, frequency));
                let sure = (confident && (twice || elapsed >= SURE)) || elapsed >= LAST;
                self.last = Some(frequency);
                if sure { Heard::Beat(analysis) } else { Heard::NotYet }
            }
            None if elapsed >= LAST && self.events.is_empty() => Heard::Silence,
            None if elapsed >= LAST => Heard::Nothing,
            None => {
                self.last = None;
                Heard::NothingYet
            }
        }
    }
}
