//! Adaptive players: event loops that serve timers and decode as much as the CPU allows between them, and that
//! cooperate or not. How late the timers are, how much was decoded, what a yield costs in switches.
//!
//! A player has sound every 10 ms and a picture every 1/24 s, both timer events; it decodes frames in units of up to `unit`, best-effort
//! events whose importance is the number of frames decoded so far. Decoding is walking over memory of its own, counted in steps. A frame is
//! one unit; where players are uneven, up to four.
//!
//! Useful CPU time is what the steps of the players and the spins of the hogs take where nobody disturbs them, in per cent of the time.

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
/// Who misbehaves goes on for up to so long, after one unit in so many.
const FORGETS_FOR: u64 = 10_000;
const FORGETS_ONE_IN: u64 = 100;
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
    /// Players have frames of one to four units, in turn.
    pub uneven: bool,
    /// The last player sometimes forgets to yield.
    pub misbehave: bool,
    pub time: Duration,
}

/// What a player shows its parent.
#[derive(Clone, Copy)]
enum Shown {
    Steps,
    Frames,
    Cpu,
    Switches,
    Forced,
    Polls,
    Yields,
    Transport,
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
    frames: Cell<u64>,
    units_per_frame: u64,
    misbehaves: bool,
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

/// In the order of their numbers.
const TRANSPORTS: [&str; 3] = ["none", "shared", "kernel"];

fn play(player: Player, options: &Options, steps_per_us: f64) -> Result<()> {
    let mut events = EventLoop::new(options.transport.clone(), options.group)?;
    let transport = TRANSPORTS.iter().position(|name| *name == events.transport().name());
    player.show(Shown::Transport, transport.unwrap_or(0) as u64);
    let player = Rc::new(player);
    let steps = |us: u64| (us as f64 * steps_per_us) as u64;
    let phase = player.draw() % PICTURE;
    let start = events.now();
    periodic(&mut events, "sound", &player, start + phase % SOUND, SOUND, steps(SOUND_WORK));
    periodic(&mut events, "picture", &player, start + phase, PICTURE, steps(PICTURE_WORK));

    let (decoder, longest, mut units) = (player.clone(), steps(options.unit).max(1), 0u64);
    let forgets = steps(FORGETS_FOR).max(1);
    let decode = events.event("decode", move |events, decode| {
        decoder.work(longest / 4 + decoder.draw() % (longest - longest / 4));
        if decoder.misbehaves && decoder.draw() % FORGETS_ONE_IN == 0 {
            decoder.work(decoder.draw() % forgets);
        }
        units += 1;
        decoder.frames.set(units / decoder.units_per_frame);
        events.submit(decode, When::best_effort(decoder.frames.get() as i64));
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
            (Shown::Frames, player.frames.get()),
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

/// Number `index`; measured from `begin` to `end`.
fn player(shown: &'static [AtomicU64], index: usize, options: &Options, begin: u64, end: u64) -> Player {
    let number = index as u64;
    Player {
        shown,
        memory: RefCell::new(vec![1; MEMORY]),
        at: Cell::default(),
        random: Cell::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1),
        steps: Cell::default(),
        frames: Cell::default(),
        units_per_frame: if options.uneven { 1 + number % 4 } else { 1 },
        misbehaves: options.misbehave && index + 1 == options.count,
        begin,
        end,
    }
}

/// Starts players and hogs, lets them find their balance for a second, and measures for `time`.
pub fn run(options: &Options) -> Result<Value> {
    ensure!(options.count > 0 && options.unit > 0, "at least one player, and units of a microsecond");
    let speed = steps_per_us(&player(child::shared(Shown::Late as usize)?, 0, options, 0, 0));
    let spin = hogs::nanoseconds_per_spin();
    let time = options.time.as_nanos() as u64;
    let (begin, room) = (clock::now() + SETTLE, Shown::Late as usize + (time / 5_000_000) as usize + 100);
    let end = begin + time;
    let shown = (0..options.count).map(|_| child::shared(room)).collect::<Result<Vec<_>, _>>()?;
    let spins = child::shared(options.hogs)?;
    let hogs = spins.iter().map(hogs::start_counting).collect::<Result<Vec<_>>>()?;
    let mut children = vec![];
    for (i, shown) in shown.iter().enumerate() {
        let player = player(shown, i, options, begin, end);
        children.push(Child::start(|| match play(player, options, speed) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("attune-load: a player: {error:#}");
                1
            }
        })?);
    }
    let hog_cpu = || hogs.iter().map(|hog| clock::cpu_time(hog.pid())).sum::<std::io::Result<u64>>();
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

    let get = |what: Shown| shown.iter().map(|shown| shown[what as usize].load(Relaxed)).collect::<Vec<_>>();
    let sum = |what: Shown| get(what).iter().sum::<u64>();
    let transports = get(Shown::Transport);
    let transport = transports[0];
    if transports.iter().any(|other| *other != transport) {
        bail!("not all players cooperate the same way: transports {transports:?} of {TRANSPORTS:?}");
    }
    let late = |shown: &&[AtomicU64]| {
        let count = shown[Shown::Timers as usize].load(Relaxed) as usize;
        shown[Shown::Late as usize..][..count].iter().map(|late| late.load(Relaxed)).collect::<Vec<_>>()
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
        "transport": TRANSPORTS.get(transport as usize),
        "players": options.count, "hogs": options.hogs, "group": options.group, "unit_us": options.unit,
        "steps": steps, "steps_per_second": steps as f64 * 1e9 / time as f64, "steps_per_us": speed,
        "useful_percent": useful * 100.0 / time as f64,
        "frames": frames, "frames_per_second": frames.iter().sum::<u64>() as f64 * 1e9 / time as f64,
        "frames_jain": jain(&frames), "cpu_ns": cpu, "jain": jain(&cpu), "hogs_cpu_ns": hogs_used,
        "hogs_percent": hogs_used * 100.0 / all_cpu.max(1.0),
        "late_ns": numbers::quantiles(&mut late.concat()),
        "misbehaving_late_ns": misbehaving.as_mut().map(|late| numbers::quantiles(late)),
        "polls": sum(Shown::Polls), "yields": yields, "yields_per_second": yields as f64 * 1e9 / time as f64,
        "switches": sum(Shown::Switches), "forced_switches": sum(Shown::Forced),
        "switches_per_second": switches as f64 * 1e9 / time as f64,
        "switches_per_yield": (yields > 0).then(|| switches as f64 / yields as f64),
    }))
}
