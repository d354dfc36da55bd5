//! Adaptive players: event loops that serve timers and decode as much as the CPU allows between them, and that
//! cooperate or not. How late the timers are, how much was decoded, what a yield costs in switches.
//!
//! A player has sound every 10 ms and a picture every 1/24 s, both timer events; it decodes in units of up to `unit`, best-effort events
//! whose importance is the number decoded so far. Decoding is walking over memory of its own, counted in steps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use attune_coop::{EventLoop, Wanted, When};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::{clock, hogs, numbers};

const SOUND: u64 = 10_000_000;
const PICTURE: u64 = 1_000_000_000 / 24;
/// Handlers of the timers, microseconds of work.
const SOUND_WORK: u64 = 50;
const PICTURE_WORK: u64 = 100;
/// What a player walks over: more than a first-level cache holds, as decoders do.
const MEMORY: usize = 128 * 1024 / 8;
/// Words of a step.
const STEP: usize = 512;
/// To find its balance before it counts.
const SETTLE: u64 = 1_000_000_000;

pub struct Options {
    pub count: usize,
    pub hogs: usize,
    pub transport: Wanted,
    /// 0: each is alone.
    pub group: u32,
    /// The longest unit of decoding, microseconds.
    pub unit: u64,
    pub time: Duration,
}

/// What a player shows its parent.
#[derive(Clone, Copy)]
enum Shown {
    Steps,
    Cpu,
    Switches,
    Forced,
    Polls,
    Yields,
    Shared,
    Timers,
    /// From here on: how late each timer was.
    Late,
}

struct Player {
    shown: &'static [AtomicU64],
    memory: RefCell<Vec<u64>>,
    at: Cell<usize>,
    random: Cell<u64>,
    steps: Cell<u64>,
    /// Measured from `begin` to `end`.
    begin: u64,
    end: u64,
}

impl Player {
    fn show(&self, what: Shown, value: u64) {
        self.shown[what as usize].store(value, Relaxed);
    }

    fn work(&self, steps: u64) {
        let mut memory = self.memory.borrow_mut();
        for _ in 0..steps {
            let at = self.at.get();
            memory[at..at + STEP].iter_mut().for_each(|word| *word = word.wrapping_mul(5) ^ 1);
            self.at.set((at + STEP) % MEMORY);
        }
        std::hint::black_box(&mut *memory);
        self.steps.set(self.steps.get() + steps);
    }

    fn late(&self, release: u64) {
        let now = clock::now();
        let count = self.shown[Shown::Timers as usize].load(Relaxed);
        let place = Shown::Late as usize + count as usize;
        if (self.begin..self.end).contains(&release) && place < self.shown.len() {
            self.shown[place].store(now.saturating_sub(release), Relaxed);
            self.show(Shown::Timers, count + 1);
        }
    }

    /// 0 to 2^31 - 1.
    fn draw(&self) -> u64 {
        self.random.set(self.random.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        self.random.get() >> 33
    }
}

/// Adds a timer event with that much work each `period`.
fn periodic(events: &mut EventLoop, name: &str, player: &Rc<Player>, first: u64, period: u64, steps: u64) {
    let (player, mut release) = (player.clone(), first);
    let timer = events.event(name, move |events, timer| {
        player.late(release);
        player.work(steps);
        release += period;
        events.submit(timer, When::At(release));
    });
    events.submit(timer, When::At(first));
}

fn play(player: Player, options: &Options, steps_per_us: f64) -> Result<()> {
    let mut events = EventLoop::new(options.transport.clone(), options.group)?;
    player.show(Shown::Shared, u64::from(events.transport().name() == "shared"));
    let player = Rc::new(player);
    let steps = |us: u64| (us as f64 * steps_per_us) as u64;
    let phase = player.draw() % PICTURE;
    let start = events.now();
    periodic(&mut events, "sound", &player, start + phase % SOUND, SOUND, steps(SOUND_WORK));
    periodic(&mut events, "picture", &player, start + phase, PICTURE, steps(PICTURE_WORK));

    let (decoder, longest, mut units) = (player.clone(), steps(options.unit).max(1), 0);
    let decode = events.event("decode", move |events, decode| {
        decoder.work(longest / 4 + decoder.draw() % (longest - longest / 4));
        units += 1;
        events.submit(decode, When::best_effort(units));
    });
    events.submit(decode, When::best_effort(0));

    // What is counted up to the beginning is taken off at the end.
    let count = |events: &EventLoop, player: &Player, ended: bool| {
        let statistics = events.transport().statistics();
        let (own, forced) = child::own_switches().unwrap_or_default();
        // SAFETY: asks who we are.
        let cpu = clock::cpu_time(unsafe { libc::getpid() }).unwrap_or(0);
        let counts = [
            (Shown::Steps, player.steps.get()),
            (Shown::Cpu, cpu),
            (Shown::Switches, own),
            (Shown::Forced, forced),
            (Shown::Polls, statistics.polls),
            (Shown::Yields, statistics.yields),
        ];
        for (what, now) in counts {
            let before = player.shown[what as usize].load(Relaxed);
            player.show(what, if ended { now.wrapping_sub(before) } else { now });
        }
    };
    let (begin, end) = (player.begin, player.end);
    let (first, last) = (player.clone(), player);
    let begins = events.event("begin", move |events, _| count(events, &first, false));
    let ends = events.event("end", move |events, _| {
        count(events, &last, true);
        events.stop();
    });
    events.submit(begins, When::At(begin));
    events.submit(ends, When::At(end));
    Ok(events.run()?)
}

/// The fastest of some tries, so that a busy machine does not make players idle.
fn steps_per_us(player: &Player) -> f64 {
    let tries = (0..20).map(|_| {
        let begin = clock::now();
        player.work(2_000);
        2_000.0 * 1e3 / (clock::now() - begin) as f64
    });
    tries.fold(0.0, f64::max)
}

fn player(shown: &'static [AtomicU64], seed: u64, begin: u64, end: u64) -> Player {
    let memory = RefCell::new(vec![1; MEMORY]);
    let (at, steps) = (Cell::new(0), Cell::new(0));
    Player { shown, memory, at, random: Cell::new(seed), steps, begin, end }
}

/// Starts players and hogs, lets them find their balance for a second, and measures for `time`.
pub fn run(options: &Options) -> Result<Value> {
    ensure!(options.count > 0 && options.unit > 0, "at least one player, and units of a microsecond");
    let speed = steps_per_us(&player(child::shared(Shown::Late as usize)?, 0, 0, 0));
    let time = options.time.as_nanos() as u64;
    let (begin, room) = (clock::now() + SETTLE, Shown::Late as usize + (time / 5_000_000) as usize + 100);
    let end = begin + time;
    let shown = (0..options.count).map(|_| child::shared(room)).collect::<Result<Vec<_>, _>>()?;
    let hogs = (0..options.hogs).map(|_| hogs::start(0)).collect::<Result<Vec<_>>>()?;
    let mut children = vec![];
    for (i, shown) in shown.iter().enumerate() {
        let player = player(shown, (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1, begin, end);
        children.push(Child::start(|| match play(player, options, speed) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("attune-load: a player: {error:#}");
                1
            }
        })?);
    }
    clock::sleep_until(begin);
    let hog_cpu = || hogs.iter().map(|hog| clock::cpu_time(hog.pid())).sum::<std::io::Result<u64>>();
    let hogs_before = hog_cpu().context("a hog is gone")?;
    clock::sleep_until(end);
    let hogs_used = hog_cpu().context("a hog is gone")? - hogs_before;
    children.into_iter().try_for_each(Child::wait)?;

    let get = |what: Shown| shown.iter().map(|shown| shown[what as usize].load(Relaxed)).collect::<Vec<_>>();
    let sum = |what: Shown| get(what).iter().sum::<u64>();
    let shared = sum(Shown::Shared);
    if shared != 0 && shared != options.count as u64 {
        bail!("only {shared} of {} players cooperate", options.count);
    }
    let late = |shown: &&[AtomicU64]| {
        let count = shown[Shown::Timers as usize].load(Relaxed) as usize;
        shown[Shown::Late as usize..][..count].iter().map(|late| late.load(Relaxed)).collect::<Vec<_>>()
    };
    let mut late: Vec<u64> = shown.iter().flat_map(|shown| late(&&**shown)).collect();
    let (cpu, yields) = (get(Shown::Cpu), sum(Shown::Yields));
    let shares: Vec<f64> = cpu.iter().map(|cpu| *cpu as f64).collect();
    let switches = sum(Shown::Switches) + sum(Shown::Forced);
    Ok(json!({
        "transport": if shared > 0 { "shared" } else { "none" },
        "players": options.count, "hogs": options.hogs, "group": options.group, "unit_us": options.unit,
        "steps": sum(Shown::Steps), "steps_per_second": sum(Shown::Steps) as f64 * 1e9 / time as f64,
        "steps_per_us": speed, "cpu_ns": cpu, "jain": numbers::jain(&shares), "hogs_cpu_ns": hogs_used,
        "late_ns": numbers::quantiles(&mut late),
        "polls": sum(Shown::Polls), "yields": yields,
        "switches": sum(Shown::Switches), "forced_switches": sum(Shown::Forced),
        "switches_per_yield": (yields > 0).then(|| switches as f64 / yields as f64),
    }))
}
