//! Film players, real programs, on X servers of their own and beside other work: how often and how
//! evenly they show pictures, as the kernel's tracer sees it.
//!
//! A picture counts where it is handed over for showing ([`Shown`]): at a function of the player's
//! libraries, or at a system call of the server's, which tells that it has drawn. The players may
//! be anything; what they print as JSON is passed on.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::disable_transparent_huge_pages;
use serde_json::{Value, json};

use crate::running::{Running, find, numbered, serve, servers_of, words};
use crate::tracer::function::Function;
use crate::tracer::line::Line;
use crate::tracer::{Tracer, Watch};
use crate::{child, clock, hogs, numbers};

/// The probe's name in traces.
const PICTURE: &str = "picture";
/// Calls of a server that follow each other so soon tell of one picture, the last of them of its
/// having been drawn.
const ONE_PICTURE: u64 = 2_000_000;
/// From the beginning of the other work to that of measuring.
const SETTLE: u64 = 1_000_000_000;

/// Where a picture is shown.
#[derive(Clone, Debug)]
pub enum Shown {
    /// `LIBRARY:FUNCTION`: each call by a player.
    Function { library: String, function: String },
    /// `server:CALL`: each such system call of the X server.
    Server { call: String },
}

impl FromStr for Shown {
    type Err = String;

    fn from_str(text: &str) -> Result<Shown, String> {
        match text.split_once(':') {
            Some(("server", call)) if !call.is_empty() => {
                Ok(Shown::Server { call: call.to_owned() })
            }
            Some((library, function)) if !library.is_empty() && !function.is_empty() => {
                Ok(Shown::Function { library: library.to_owned(), function: function.to_owned() })
            }
            _ => {
                Err("LIBRARY:FUNCTION or server:CALL, such as libXext.so.6:XShmPutImage".to_owned())
            }
        }
    }
}

pub struct Options {
    pub count: usize,
    pub hogs: usize,
    /// The X server with its arguments, in one word; with `{}`, a player's number, one for each.
    /// Empty: none.
    pub server: String,
    /// A program that runs beside, in one word; empty: none.
    pub beside: String,
    pub shown: Shown,
    /// Pictures a second of a film.
    pub rate: f64,
    /// For the players to begin.
    pub begin: Duration,
    pub time: Duration,
    /// A player; `{}` in its words is its number, from 1 on.
    pub player: Vec<String>,
}

impl Shown {
    pub fn watch(&self) -> Result<Watch> {
        Ok(match self {
            Shown::Function { library, function } => Watch::Call {
                function: Function::in_library(&find(library).to_string_lossy(), function)?,
                name: PICTURE,
                fetch: "release=%di:u64",
            },
            Shown::Server { call } => Watch::Event(format!("syscalls/sys_enter_{call}")),
        })
    }

    fn is_in(&self, line: &Line) -> bool {
        match self {
            Shown::Function { .. } => line.event.starts_with(PICTURE),
            Shown::Server { call } => line
                .event
                .strip_prefix("sys_")
                .is_some_and(|event| event.starts_with(call.as_str())),
        }
    }
}

/// The process to which a thread belongs. None: it is gone.
fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// When each process showed its pictures, by its number.
pub fn pictures(trace: &str, shown: &Shown) -> BTreeMap<u32, Vec<u64>> {
    let mut by_thread: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for line in trace.lines().filter_map(Line::read).filter(|line| shown.is_in(line)) {
        by_thread.entry(line.thread).or_default().push(line.time);
    }
    let mut by_process: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (thread, times) in by_thread {
        by_process.entry(process_of(thread).unwrap_or(thread)).or_default().extend(times);
    }
    by_process.values_mut().for_each(|times| times.sort_unstable());
    by_process
}

fn last_of_each(calls: &[u64]) -> Vec<u64> {
    let next = calls.iter().skip(1).map(Some).chain([None]);
    let last = calls
        .iter()
        .zip(next)
        .filter(|(call, next)| next.is_none_or(|next| next - *call > ONE_PICTURE));
    last.map(|(call, _)| *call).collect()
}

/// How late calls are whose first argument is the time of their release.
fn lateness(trace: &str, within: &Range<u64>) -> Vec<u64> {
    let calls = trace.lines().filter_map(Line::read).filter(|line| line.event.starts_with(PICTURE));
    let release = |line: &Line| line.number("release").filter(|release| within.contains(release));
    calls.filter_map(|line| Some(line.time.saturating_sub(release(&line)?))).collect()
}

/// For this process and all that it starts: no huge pages. The kernel makes them in a thread of
/// nice 19 that keeps a program's memory locked meanwhile: on a busy CPU a player waits in a page
/// fault for up to a second, under any scheduler.
pub fn without_huge_pages() -> Result<()> {
    disable_transparent_huge_pages(true).context("cannot do without huge pages")
}

/// Starts all, lets them find their balance, and looks for `time`.
pub fn run(options: &Options) -> Result<Value> {
    ensure!(options.count > 0 && options.rate > 0.0, "at least one player, and a rate of its film");
    without_huge_pages()?;
    let spin = hogs::nanoseconds_per_spin();
    let servers = servers_of(&options.server, options.count);
    let (mut servers, displays): (Vec<Running>, Vec<String>) =
        servers.iter().map(|server| serve(server)).collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let mut players = (1..=options.count)
        .map(|number| {
            let words: Vec<_> = options.player.iter().map(|word| numbered(word, number)).collect();
            // Its own display, the one for all, or the caller's.
            let display = displays.get(number - 1).or(displays.first());
            Running::start(&words, display.map(String::as_str))
        })
        .collect::<Result<Vec<_>>>()?;
    thread::sleep(options.begin);
    let spins = child::shared(options.hogs)?;
    let hogs =
        spins.iter().map(|spins| hogs::start_counting(spins, None)).collect::<Result<Vec<_>>>()?;
    let beside = words(&options.beside);
    let mut beside = (!beside.is_empty()).then(|| Running::start(&beside, None)).transpose()?;
    let begin = clock::now() + SETTLE;
    let end = begin + options.time.as_nanos() as u64;
    // Before: beginning to look takes the kernel a while.
    let tracer = Tracer::start(&[options.shown.watch()?])?;
    clock::sleep_until(begin);
    let cpu = |running: &Option<Running>| {
        running.as_ref().map(|running| clock::cpu_time(running.child.id()).unwrap_or(0))
    };
    let count = || -> (f64, Option<u64>) {
        (
            spins.iter().map(|spins| spins.load(std::sync::atomic::Ordering::Relaxed)).sum::<u64>()
                as f64,
            cpu(&beside),
        )
    };
    let before = count();
    clock::sleep_until(end);
    let after = count();
    let trace = tracer.stop()?;
    for program in players.iter_mut().chain(&mut beside).chain(&mut servers) {
        program.lives()?;
    }
    let by_process = pictures(&trace, &options.shown);
    let showing: Vec<u32> = match options.shown {
        Shown::Function { .. } => players.iter().map(|player| player.child.id()).collect(),
        Shown::Server { .. } => servers.iter().map(|server| server.child.id()).collect(),
    };
    drop((hogs, beside));
    let said: Vec<String> = players.iter_mut().map(Running::end).collect();
    let shows: Vec<Vec<u64>> = showing
        .iter()
        .map(|process| {
            let times = by_process.get(process).cloned().unwrap_or_default();
            let times = if matches!(options.shown, Shown::Server { .. }) {
                last_of_each(&times)
            } else {
                times
            };
            times.into_iter().filter(|time| (begin..end).contains(time)).collect()
        })
        .collect();
    ensure!(
        shows.iter().any(|times| !times.is_empty()),
        "no picture was shown, as {:?} has it",
        options.shown
    );
    // Only the probe of cooperating event loops says when it should have been.
    let mut late: Vec<u64> = match &options.shown {
        Shown::Function { function, .. } if function == "attune_coop_timer" => {
            lateness(&trace, &(begin..end))
        }
        _ => vec![],
    };
    let said: Vec<Option<Value>> = said
        .iter()
        .map(|text| text.lines().rev().find_map(|line| serde_json::from_str(line).ok()))
        .collect();
    let mut figures = evenness(&shows, options.rate, options.time);
    figures["late_ns"] = numbers::quantiles(&mut late);
    figures["said"] = json!(said);
    figures["hogs_percent"] = json!((after.0 - before.0) * spin * 100.0 / (end - begin) as f64);
    figures["beside_percent"] = json!(
        before
            .1
            .zip(after.1)
            .map(|(before, after)| after.saturating_sub(before) as f64 * 100.0
                / (end - begin) as f64)
    );
    Ok(figures)
}

/// How often and how evenly pictures were shown, from their times in ns.
fn evenness(shows: &[Vec<u64>], rate: f64, time: Duration) -> Value {
    let per_second: Vec<f64> =
        shows.iter().map(|times| times.len() as f64 / time.as_secs_f64()).collect();
    let between =
        |times: &Vec<u64>| times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>();
    let deviation = |between: &Vec<u64>| {
        let mean = between.iter().sum::<u64>() as f64 / between.len().max(1) as f64;
        let squares: f64 = between.iter().map(|between| (*between as f64 - mean).powi(2)).sum();
        (squares / between.len().max(1) as f64).sqrt()
    };
    let intervals: Vec<Vec<u64>> = shows.iter().map(between).collect();
    let deviations: Vec<f64> = intervals.iter().map(deviation).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut late: Vec<u64> = shows.iter().flat_map(|times| behind(times, 1e9 / rate)).collect();
    json!({
        "players": shows.len(), "frames_per_second": per_second,
        "frames_per_second_mean": mean(&per_second),
        "frames_jain": numbers::jain(&per_second),
        "deviation_ns": deviations, "deviation_ns_mean": mean(&deviations),
        "interval_ns": numbers::quantiles(&mut intervals.concat()),
        "behind_ns": numbers::quantiles(&mut late),
    })
}

/// How much later each picture comes than in the film's own time, in which the most punctual one is
/// on time: a picture that is missing makes none later.
fn behind(times: &[u64], period: f64) -> Vec<u64> {
    let Some(first) = times.first() else { return vec![] };
    let since = |time: &u64| (time - first) as f64;
    // A picture's phase is where it is in its period; phases go round, so they are taken from the
    // mean direction.
    let angle = |time: &u64| since(time) / period * std::f64::consts::TAU;
    let (sine, cosine) = times
        .iter()
        .fold((0.0, 0.0), |(s, c), time| (s + angle(time).sin(), c + angle(time).cos()));
    let mean = sine.atan2(cosine) / std::f64::consts::TAU * period;
    let phase = |time: &u64| (since(time) - mean + period / 2.0).rem_euclid(period);
    let least = times.iter().map(phase).fold(f64::INFINITY, f64::min);
    times.iter().map(|time| (phase(time) - least).round() as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_behind_the_most_punctual_one() {
        // One is missing, one is late by 3.
        assert_eq!(behind(&[1000, 1010, 1030, 1043, 1050], 10.0), [0, 0, 0, 3, 0]);
        assert_eq!(behind(&[], 10.0), [0; 0]);
        // The first is the late one.
        assert_eq!(behind(&[1002, 1010, 1020], 10.0), [2, 0, 0]);
    }

    #[test]
    fn calls_close_together_tell_of_one_picture() {
        assert_eq!(
            last_of_each(&[1_000_000, 1_050_000, 41_000_000, 81_000_000, 82_000_000]),
            [1_050_000, 41_000_000, 82_000_000]
        );
        assert_eq!(last_of_each(&[]), [0; 0]);
    }

    #[test]
    fn frames_are_counted_and_their_intervals_compared() {
        let shows = vec![vec![0, 40, 80, 120], vec![0, 40, 100, 120]];
        let found = evenness(&shows, 25e6, Duration::from_nanos(160));
        assert_eq!(
            (&found["interval_ns"]["max"], &found["behind_ns"]["max"]),
            (&json!(60), &json!(20))
        );
        assert_eq!(
            (found["frames_jain"].as_f64(), found["deviation_ns"][0].as_f64()),
            (Some(1.0), Some(0.0))
        );
    }

    #[test]
    fn where_pictures_are_shown_is_a_function_or_a_call_of_the_server() {
        assert!(matches!("server:writev".parse(), Ok(Shown::Server { call }) if call == "writev"));
        assert!(matches!(
            "libXext.so.6:XShmPutImage".parse(),
            Ok(Shown::Function { library, .. }) if library == "libXext.so.6"
        ));
        assert!("XShmPutImage".parse::<Shown>().is_err() && "server:".parse::<Shown>().is_err());
    }
}
