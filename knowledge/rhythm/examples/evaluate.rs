//! How often the analyser is right, on recordings whose true rates are known: `cargo run --release --example evaluate -- [LIST] [-v]`.
//!
//! LIST (default: traces/recordings.txt of this crate) names a recording a line: FILE SET LOAD RATE[,RATE], where SET is
//! `tuned` or `held-out`, LOAD is idle, hogs or periodic, and RATE in Hz is its beat; a program with two beats has two, and either is
//! right; `none` is a program without a beat. For each recording and each method, consecutive windows are counted as
//! right (within 1 %), harmonic (a multiple or a part), wrong, or silent. `-v` prints each window's answer.

use std::io::Read;
use std::path::{Path, PathBuf};

use attune_rhythm::recording::parse;
use attune_rhythm::windows::consecutive;
use attune_rhythm::{Analysis, Method, Settings};
use flate2::read::GzDecoder;

struct Recording {
    name: String,
    set: String,
    load: String,
    rates: Vec<f64>,
    file: PathBuf,
}

#[derive(Clone, Copy, Default)]
struct Count {
    windows: usize,
    right: usize,
    precise: usize,
    listed: usize,
    harmonic: usize,
    wrong: usize,
    silent: usize,
}

impl Count {
    fn add(&mut self, analysis: &Analysis, rates: &[f64]) {
        self.windows += 1;
        let near = |found: f64, rate: f64, tolerance: f64| (found / rate - 1.0).abs() < tolerance;
        let Some(found) = analysis.frequency_hz else { return self.silent += 1 };
        let multiple = |rate: f64| {
            let ratio = (found / rate).max(rate / found);
            ratio > 1.5 && ratio < 10.5 && near(ratio, ratio.round(), 0.02)
        };
        if rates.iter().any(|&rate| near(found, rate, 0.01)) {
            self.right += 1;
            self.precise += usize::from(rates.iter().any(|&rate| near(found, rate, 0.001)));
        } else if rates.iter().any(|&rate| multiple(rate)) {
            self.harmonic += 1;
        } else {
            self.wrong += 1;
        }
        let listed =
            |rate: &f64| analysis.periods.iter().any(|period| near(period.frequency_hz, *rate, 0.01));
        self.listed += usize::from(rates.iter().any(listed));
    }

    fn plus(self, other: Count) -> Count {
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

    fn row(&self) -> String {
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

/// CPU time of this thread, in seconds.
fn cpu_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let verbose = arguments.iter().any(|argument| argument == "-v");
    let list = arguments
        .iter()
        .find(|argument| !argument.starts_with('-'))
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/recordings.txt"), PathBuf::from);
    let recordings = recordings(&list);
    let ours = Settings::default();
    let published = Settings { method: Method::Spectrum2010(Default::default()), ..ours };
    println!(
        "| window | set | load | recording | method | windows | right % | within 0.1 % | among the periods % | harmonic % | wrong % | silent % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for window in [0.5, 1.0, 2.0] {
        let mut sums: Vec<(String, [Count; 2])> = Vec::new();
        let (mut cost, mut analysed, mut dearest) = (0.0, 0usize, 0.0f64);
        for recording in &recordings {
            let events = parse(&read(&recording.file))
                .unwrap_or_else(|error| panic!("{}: {error}", recording.name))
                .events;
            let mut counts = [Count::default(); 2];
            let mut answers = Vec::new();
            let mut ours_by_window = consecutive(&events, window, &ours);
            loop {
                let begin = cpu_time();
                let Some((_, analysis)) = ours_by_window.next() else { break };
                let took = cpu_time() - begin;
                cost += took;
                analysed += 1;
                if analysis.events <= 2_000 {
                    dearest = dearest.max(took);
                }
                counts[0].add(&analysis, &recording.rates);
                answers.push(analysis.frequency_hz.map_or("-".to_owned(), |found| format!("{found:.3}")));
            }
            consecutive(&events, window, &published)
                .for_each(|(_, analysis)| counts[1].add(&analysis, &recording.rates));
            let kind = if recording.rates.is_empty() { "no beat" } else { recording.load.as_str() };
            let group = format!("{} | {kind}", recording.set);
            match sums.iter_mut().find(|(known, _)| *known == group) {
                Some((_, sum)) => *sum = [sum[0].plus(counts[0]), sum[1].plus(counts[1])],
                None => sums.push((group.clone(), counts)),
            }
            for (method, count) in ["evidence", "spectrum-2010"].iter().zip(&counts) {
                println!("| {window} s | {group} | {} | {method} | {} |", recording.name, count.row());
            }
            if verbose {
                println!("<!-- {}: {} -->", recording.name, answers.join(" "));
            }
        }
        sums.sort_by(|a, b| a.0.cmp(&b.0));
        for (group, sum) in &sums {
            for (method, count) in ["evidence", "spectrum-2010"].iter().zip(sum) {
                println!("| {window} s | {group} | **all** | {method} | {} |", count.row());
            }
        }
        println!(
            "<!-- {window} s: {:.2} ms of CPU time a window on average, at most {:.2} ms with up to 2000 events -->",
            1e3 * cost / analysed.max(1) as f64,
            1e3 * dearest
        );
    }
}

/// A file's bytes, unpacked where it is packed.
fn read(file: &Path) -> Vec<u8> {
    let complain = |error: std::io::Error| -> Vec<u8> { panic!("{}: {error}", file.display()) };
    let bytes = std::fs::read(file).unwrap_or_else(complain);
    let mut unpacked = Vec::new();
    match file.extension() {
        Some(packed) if packed == "gz" => {
            GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).map(|_| unpacked).unwrap_or_else(complain)
        }
        _ => bytes,
    }
}

fn recordings(list: &Path) -> Vec<Recording> {
    let text = std::fs::read_to_string(list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, set, load, rates] = words[..] else { panic!("{}: `{line}`", list.display()) };
            Recording {
                name: name.to_owned(),
                set: set.to_owned(),
                load: load.to_owned(),
                rates: rates.split(',').filter_map(|rate| rate.parse().ok()).collect(),
                file: list.with_file_name(name),
            }
        })
        .collect()
}
