//! Adaptive players: they serve timers and decode as much as the CPU allows between them, and
//! cooperate or not. How late the timers are, how much was decoded, what a yield costs in switches.
//!
//! A player has sound every 10 ms and a picture every 1/24 s, both timer events; it decodes frames
//! in units of up to `unit`, best-effort events whose importance is the number of frames decoded so
//! far. Decoding is walking over memory of its own, counted in steps. A frame is one unit; where
//! players are uneven, up to four.
//!
//! Useful CPU time is what the steps of the players and the spins of the hogs take where nobody
//! disturbs them, in per cent of the time.

mod cooperative;
mod player;
mod unmodified;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use attune_coop::Wanted;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::{attributes, clock, hogs, numbers};
use player::{Player, Shown};

/// To find its balance before it counts.
const SETTLE: u64 = 1_000_000_000;

pub struct Options {
    pub count: usize,
    pub hogs: usize,
    pub transport: Wanted,
    /// 0: each is alone.
    pub group: u32,
    /// Each is in a group of its own, `group` the first of them.
    pub apart: bool,
    /// The longest unit of decoding, microseconds.
    pub unit: u64,
    /// Players have frames of one to four units, in turn.
    pub uneven: bool,
    /// The last player sometimes forgets to yield.
    pub misbehave: bool,
    pub timers: Timers,
    /// The CPU is so many times slower than it was when the players took its measure: periods are
    /// so many times longer, and lateness is told in so many parts.
    pub slower: u64,
    /// Each process has an equal part of a CPU reserved.
    pub reserved: bool,
    pub time: Duration,
}

/// By what players know that a timer is due.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Timers {
    /// Events in a loop that cooperates
    Events,
    /// Unmodified: a thread that sleeps until the next one
    Thread,
    /// Unmodified: a timerfd, armed while the player computes, and polled after each unit
    Timerfd,
    /// Unmodified: the clock, looked at after each unit; never blocks
    Clock,
}

/// In the order of their numbers.
const TRANSPORTS: [&str; 3] = ["none", "shared", "kernel"];

/// Starts players and hogs, lets them find their balance for a second, and measures for `time`.
pub fn run(options: &Options) -> Result<Value> {
    ensure!(
        options.count > 0 && options.unit > 0,
        "at least one player, and units of a microsecond"
    );
    ensure!(options.slower > 0, "a CPU is at least as slow as it is");
    ensure!(
        !options.apart || options.group > 0,
        "groups apart are counted from a group on: --group 1"
    );
    let one_thread = options.timers != Timers::Thread;
    ensure!(
        one_thread || !options.reserved,
        "a reservation is of one thread: not with --timers thread"
    );
    let part = options.reserved.then(|| attributes::equal_part(options.count + options.hogs));
    let speed = Player::speed(options)?;
    let spin = hogs::nanoseconds_per_spin();
    let time = options.time.as_nanos() as u64;
    let (begin, room) =
        (clock::now() + SETTLE, Shown::Late as usize + (time / 5_000_000) as usize + 100);
    let end = begin + time;
    let shown = (0..options.count).map(|_| child::shared(room)).collect::<Result<Vec<_>, _>>()?;
    let spins = child::shared(options.hogs)?;
    let hogs =
        spins.iter().map(|spins| hogs::start_counting(spins, part)).collect::<Result<Vec<_>>>()?;
    let mut children = vec![];
    for (i, shown) in shown.iter().enumerate() {
        let player = Player::new(shown, i, options, speed, (begin, end));
        let play = || match options.timers {
            Timers::Events => cooperative::play(player, options, i),
            Timers::Thread => unmodified::by_thread(&player),
            Timers::Timerfd => unmodified::by_timerfd(&player),
            Timers::Clock => {
                unmodified::by_clock(&player);
                Ok(())
            }
        };
        let reserve = || part.map_or(Ok(()), |part| part.apply_to(0).context("no reservation"));
        children.push(Child::start(|| match reserve().and_then(|()| play()) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("attune-load: a player: {error:#}");
                1
            }
        })?);
    }
    let hog_cpu =
        || hogs.iter().map(|hog| clock::cpu_time(hog.pid())).sum::<std::io::Result<u64>>();
    let hogs_at = |time| -> Result<[f64; 3]> {
        clock::sleep_until(time);
        let spins: u64 = spins.iter().map(|spins| spins.load(Relaxed)).sum();
        let cpu = hog_cpu().context("a hog is gone")?;
        Ok([clock::now(), cpu, spins].map(|count| count as f64))
    };
    let (before, after) = (hogs_at(begin)?, hogs_at(end)?);
    children.into_iter().try_for_each(Child::wait)?;
    // We may have been late, too.
    let of_hogs = |what: usize| (after[what] - before[what]) * time as f64 / (after[0] - before[0]);
    let (hogs_used, spins) = (of_hogs(1), of_hogs(2));

    let get = |what: Shown| {
        shown.iter().map(|shown| shown[what as usize].load(Relaxed)).collect::<Vec<_>>()
    };
    let sum = |what: Shown| get(what).iter().sum::<u64>();
    let transports = get(Shown::Transport);
    let transport = transports[0];
    if transports.iter().any(|other| *other != transport) {
        bail!(
            "not all players cooperate the same way: transports {transports:?} of {TRANSPORTS:?}"
        );
    }
    let late = |shown: &&[AtomicU64]| {
        let count = shown[Shown::Timers as usize].load(Relaxed) as usize;
        shown[Shown::Late as usize..][..count]
            .iter()
            .map(|late| late.load(Relaxed) / options.slower)
            .collect::<Vec<_>>()
    };
    let mut late: Vec<Vec<u64>> = shown.iter().map(|shown| late(&&**shown)).collect();
    let mut misbehaving = if options.misbehave { late.pop() } else { None };
    let (cpu, yields, steps) = (get(Shown::Cpu), sum(Shown::Yields), sum(Shown::Steps));
    let jain = |of: &[u64]| numbers::jain(&of.iter().map(|of| *of as f64).collect::<Vec<_>>());
    let frames = get(Shown::Frames);
    let switches = sum(Shown::Switches) + sum(Shown::Forced);
    let useful = steps as f64 / speed * 1e3 + spins * spin;
    let all_cpu = cpu.iter().sum::<u64>() as f64 + hogs_used;
    Ok(json!({
        "transport": TRANSPORTS.get(transport as usize), "from_ns": begin, "to_ns": end,
        "players": options.count, "hogs": options.hogs, "group": options.group,
        "unit_us": options.unit,
        "steps": steps, "steps_per_second": steps as f64 * 1e9 / time as f64, "steps_per_us": speed,
        "useful_percent": useful * 100.0 / time as f64,
        "frames": frames,
        "frames_per_second": frames.iter().sum::<u64>() as f64 * 1e9 / time as f64,
        "frames_jain": jain(&frames), "cpu_ns": cpu, "jain": jain(&cpu), "hogs_cpu_ns": hogs_used,
        "hogs_percent": hogs_used * 100.0 / all_cpu.max(1.0),
        "late_ns": numbers::quantiles(&mut late.concat()),
        "misbehaving_late_ns": misbehaving.as_mut().map(|late| numbers::quantiles(late)),
        "polls": sum(Shown::Polls), "yields": yields,
        "yields_per_second": yields as f64 * 1e9 / time as f64,
        "switches": sum(Shown::Switches), "forced_switches": sum(Shown::Forced),
        "switches_per_second": switches as f64 * 1e9 / time as f64,
        "switches_per_yield": (yields > 0).then(|| switches as f64 / yields as f64),
    }))
}
