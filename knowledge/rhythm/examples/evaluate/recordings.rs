//! Recordings whose true rates are known, and counts of right answers about them: what the
//! evaluations share.
//!
//! A list names a recording a line: FILE SET LOAD RATE[,RATE][@CALL/N].
//!
//! - SET says what it was used for (traces/README.md), LOAD is idle, hogs or periodic.
//! - RATE in Hz is the program's beat; one with two beats has two, and either is right. `none` is a
//!   program without a beat. One that sleeps for a fixed time instead of until one has in each
//!   window the rate of its sleeps there, from the first to the last: `call:N` tells them by the
//!   system call, `pause:MS` by the pauses of so many ms between its calls, where the recording
//!   does not tell which call.
//! - `@CALL/N`: of system call CALL it makes N for each beat, which tells the windows in which it
//!   did not keep its rate: it was loading, stood still, or left out frames. What is right there
//!   nobody can say; they are counted apart. So is a sleeper's window at whose beginning or end it
//!   stood still.

use std::io::Read;
use std::path::{Path, PathBuf};

use attune_rhythm::Analysis;
use attune_rhythm::recording::{Event, Kind, parse};
use flate2::read::GzDecoder;

pub struct Recording {
    pub name: String,
    pub set: String,
    pub load: String,
    pub truth: Truth,
    /// A system call, and how many of it make a beat.
    mark: Option<(u64, f64)>,
    pub events: Vec<Event>,
}

pub enum Truth {
    /// Hz; none of a program without a beat.
    Rates(Vec<f64>),
    /// That of its sleeps in the window.
    Sleeps(Sleep),
}

/// The form in which a recording tells a sleep.
#[derive(Clone, Copy)]
pub enum Sleep {
    /// It is this system call.
    Call(u64),
    /// So many seconds lie between two calls.
    Pause(f64),
}

impl Sleep {
    /// When the sleeps of a window began (calls) or ended (pauses).
    fn times(self, events: &[Event], from: f64, window: f64) -> Vec<f64> {
        let entries = events.iter().filter(|event| event.kind == Kind::Enter);
        let mut last = f64::NAN;
        let sleeps = entries.filter(|event| {
            let pause = event.time - std::mem::replace(&mut last, event.time);
            match self {
                Sleep::Call(call) => event.number == Some(call),
                Sleep::Pause(least) => pause >= least,
            }
        });
        sleeps.map(|event| event.time).filter(|time| (from..from + window).contains(time)).collect()
    }
}

impl Truth {
    fn parse(text: &str) -> Truth {
        let call = text.strip_prefix("call:").and_then(|call| call.parse().ok()).map(Sleep::Call);
        let pause = text.strip_prefix("pause:").and_then(|ms| ms.parse().ok());
        match call.or(pause.map(|ms: f64| Sleep::Pause(ms / 1e3))) {
            Some(sleep) => Truth::Sleeps(sleep),
            None => Truth::Rates(text.split(',').filter_map(|rate| rate.parse().ok()).collect()),
        }
    }

    pub fn has_beat(&self) -> bool {
        !matches!(self, Truth::Rates(rates) if rates.is_empty())
    }

    pub fn rates(&self, events: &[Event], from: f64, window: f64) -> Vec<f64> {
        match self {
            Truth::Rates(rates) => rates.clone(),
            Truth::Sleeps(sleep) => {
                let times = sleep.times(events, from, window);
                let span =
                    times.last().zip(times.first()).map_or(0.0, |(last, first)| last - first);
                vec![if span > 0.0 { (times.len() - 1) as f64 / span } else { 0.0 }]
            }
        }
    }
}

impl Recording {
    /// The program: what stands before the first dash, or the digit that tells recordings of one
    /// apart.
    pub fn program(&self) -> &str {
        let end = self.name.find(['-', '.']).unwrap_or(self.name.len());
        self.name[..end]
            .trim_end_matches(|char: char| char.is_ascii_digit() && !self.name.starts_with("mpg"))
    }

    /// What is counted together.
    pub fn kind(&self) -> &str {
        if self.truth.has_beat() { &self.load } else { "no beat" }
    }

    /// Whether the program kept its beat in a window, as far as anybody can say.
    pub fn kept(&self, from: f64, window: f64) -> bool {
        let (marks, each) = match (&self.truth, self.mark) {
            (Truth::Sleeps(sleep), _) => (*sleep, 1.0),
            (Truth::Rates(_), Some((call, each))) => (Sleep::Call(call), each),
            (Truth::Rates(_), None) => return true,
        };
        let rate = self.truth.rates(&self.events, from, window).first().copied().unwrap_or(0.0);
        let expected = rate * window;
        let marks = marks.times(&self.events, from, window).len() as f64;
        // A beat more or less may lie at the edges.
        (marks / each - expected).abs() <= 1.0 + 0.02 * expected
    }
}

/// How a method's answers compare with the truth.
#[derive(Clone, Copy, Default)]
pub struct Count {
    pub windows: usize,
    pub right: usize,
    pub precise: usize,
    pub listed: usize,
    pub harmonic: usize,
    pub wrong: usize,
    pub silent: usize,
}

impl Count {
    pub fn add(&mut self, analysis: &Analysis, rates: &[f64]) {
        self.windows += 1;
        let near = |found: f64, rate: f64, tolerance: f64| (found / rate - 1.0).abs() < tolerance;
        let Some(found) = analysis.frequency_hz else { return self.silent += 1 };
        let multiple = |rate: f64| {
            let ratio = (found / rate).max(rate / found);
            ratio > 1.5 && ratio < 10.5 && near(ratio, ratio.round(), 0.02)
        };
        if rates.iter().any(|&rate| near(found, rate, 0.01)) {
            self.right += 1;
            // The published heuristic tells no error; its step is the best that it can do.
            let error =
                analysis.periods.first().map_or(0.0, |best| best.error_hz / best.frequency_hz);
            let precise = |rate: f64| near(found, rate, (3.0 * error).max(0.001));
            self.precise += usize::from(rates.iter().any(|&rate| precise(rate)));
        } else if rates.iter().any(|&rate| multiple(rate)) {
            self.harmonic += 1;
        } else {
            self.wrong += 1;
        }
        let listed = |rate: &f64| {
            analysis.periods.iter().any(|period| near(period.frequency_hz, *rate, 0.01))
        };
        self.listed += usize::from(rates.iter().any(listed));
    }

    pub fn plus(self, other: Count) -> Count {
        Count {
            windows: self.windows + other.windows,
            right: self.right + other.right,
            precise: self.precise + other.precise,
            listed: self.listed + other.listed,
            harmonic: self.harmonic + other.harmonic,
            wrong: self.wrong + other.wrong,
            silent: self.silent + other.silent,
        }
    }

    /// For a table: windows, then shares in per cent.
    pub fn row(&self) -> String {
        let percent = |part: usize| 100.0 * part as f64 / self.windows.max(1) as f64;
        format!(
            "{:4} | {:5.1} | {:5.1} | {:5.1} | {:5.1} | {:5.1} | {:5.1}",
            self.windows,
            percent(self.right),
            percent(self.precise),
            percent(self.listed),
            percent(self.harmonic),
            percent(self.wrong),
            percent(self.silent)
        )
    }
}

/// A file's bytes, unpacked where it is packed.
fn read(file: &Path) -> Vec<u8> {
    let complain = |error: std::io::Error| -> Vec<u8> { panic!("{}: {error}", file.display()) };
    let bytes = std::fs::read(file).unwrap_or_else(complain);
    let mut unpacked = Vec::new();
    match file.extension() {
        Some(packed) if packed == "gz" => GzDecoder::new(&bytes[..])
            .read_to_end(&mut unpacked)
            .map(|_| unpacked)
            .unwrap_or_else(complain),
        _ => bytes,
    }
}

/// Reads a list and its recordings.
pub fn recordings(list: &Path) -> Vec<Recording> {
    let text =
        std::fs::read_to_string(list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, set, load, rates] = words[..] else {
                panic!("{}: `{line}`", list.display())
            };
            let (rates, mark) =
                rates.split_once('@').map_or((rates, None), |(rates, mark)| (rates, Some(mark)));
            let mark = mark.map(|mark| {
                let (call, each) = mark.split_once('/').unwrap_or((mark, "1"));
                let numbers = call.parse().ok().zip(each.parse().ok());
                numbers.unwrap_or_else(|| panic!("{}: `{mark}`", list.display()))
            });
            let events = parse(&read(&list.with_file_name(name)))
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .events;
            Recording {
                name: name.to_owned(),
                set: set.to_owned(),
                load: load.to_owned(),
                truth: Truth::parse(rates),
                mark,
                events,
            }
        })
        .collect()
}

/// The list that the command line names, or this crate's own.
pub fn list(arguments: &[String]) -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/recordings.txt");
    arguments.iter().find(|argument| !argument.starts_with('-')).map_or_else(own, PathBuf::from)
}
