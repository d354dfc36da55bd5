//! A program that runs to a beat, for tests: `attune-beat PERIOD_MS WORK_MS [WORD..]`.
//!
//! Each period it works for so long (CPU time), then sleeps until the next. Words, in any order:
//! `threads=N` that do the same, one after the other; `to=MS`: its period from the first SIGUSR2
//! on; `skips=1`: beats that are over are left out. From the first SIGUSR1 on it only works,
//! without a pause. It ends by itself after `for=S` seconds (300). With `log` it prints the
//! lateness of each beat in us.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use attune_linux::time::{Time, thread_cpu_time};
use signal_hook::consts::{SIGUSR1, SIGUSR2};

/// Uses so much CPU time, with few calls: asking for it is one, and calls are what a listener
/// hears.
fn work(time: Duration) {
    let end = thread_cpu_time() + time.as_nanos() as Time;
    loop {
        let left = Duration::from_nanos(end.saturating_sub(thread_cpu_time()));
        if left.is_zero() {
            return;
        }
        let begun = Instant::now();
        while begun.elapsed() < left {
            std::hint::spin_loop();
        }
    }
}

/// Wishes that signals have brought.
#[derive(Default)]
struct Wishes {
    only_work: Arc<AtomicBool>,
    other_rate: Arc<AtomicBool>,
}

fn beat(
    mut period: Duration,
    job: Duration,
    words: &HashMap<String, f64>,
    wishes: &Wishes,
    log: bool,
) {
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(words.get("for").copied().unwrap_or(300.0));
    let mut next = begun + period;
    while Instant::now() < end {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        if log {
            println!("{}", Instant::now().saturating_duration_since(next).as_micros());
        }
        work(job);
        if let (true, Some(millis)) = (wishes.other_rate.load(Ordering::Relaxed), words.get("to")) {
            period = Duration::from_secs_f64(millis / 1e3);
        }
        next += period;
        if words.contains_key("skips") {
            next = next.max(Instant::now());
        }
        while wishes.only_work.load(Ordering::Relaxed) && Instant::now() < end {
            work(Duration::from_millis(10));
        }
    }
}

fn main() {
    let wishes = Wishes::default();
    for (signal, wish) in [(SIGUSR1, &wishes.only_work), (SIGUSR2, &wishes.other_rate)] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(wish)) {
            eprintln!("attune-beat: cannot listen to signals: {error}");
            std::process::exit(2);
        }
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let millis = |index: usize| {
        arguments
            .get(index)
            .and_then(|word| word.parse().ok())
            .map(|ms: f64| Duration::from_secs_f64(ms / 1e3))
    };
    let (Some(period), Some(job)) = (millis(0), millis(1)) else {
        eprintln!("usage: attune-beat PERIOD_MS WORK_MS [threads=N] [to=MS] [for=S] [log]");
        std::process::exit(2);
    };
    let words: HashMap<String, f64> = arguments
        .iter()
        .filter_map(|word| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect();
    let log = arguments.iter().any(|word| word == "log");
    let more = words.get("threads").map_or(0, |threads| *threads as usize).saturating_sub(1);
    std::thread::scope(|scope| {
        for _ in 0..more {
            scope.spawn(|| beat(period, job, &words, &wishes, false));
        }
        beat(period, job, &words, &wishes, log);
    });
}
