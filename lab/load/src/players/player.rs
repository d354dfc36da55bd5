//! One player: what it does, and what it shows its parent of that. How it comes to its turns is
//! another matter: [`super::cooperative`], [`super::unmodified`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use attune_coop::Statistics;

use super::Options;
use crate::{child, clock};

const SOUND: u64 = 10_000_000;
const PICTURE: u64 = 1_000_000_000 / 24;
/// Handlers of the timers, microseconds of work.
const SOUND_WORK: f64 = 50.0;
const PICTURE_WORK: f64 = 100.0;
/// What a player walks over: more than a first-level cache holds, as decoders do.
const MEMORY: usize = 128 * 1024 / 8;
/// Words of a step.
const STEP: usize = 512;
/// A misbehaving player goes on for up to this long, in microseconds, after one unit in so many.
const FORGETS_FOR: f64 = 10_000.0;
const FORGETS_ONE_IN: u64 = 100;

/// What a player shows its parent.
#[derive(Clone, Copy)]
pub enum Shown {
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

/// A timer of a player's: when it is due next.
#[derive(Clone, Copy)]
pub struct Timer {
    pub name: &'static str,
    pub release: u64,
    pub period: u64,
    steps: u64,
}

pub struct Player {
    shown: &'static [AtomicU64],
    memory: RefCell<Vec<u64>>,
    at: Cell<usize>,
    random: Cell<u64>,
    /// Steps of this player and its [twins](Player::twin).
    steps: Arc<AtomicU64>,
    units: Cell<u64>,
    units_per_frame: u64,
    misbehaves: bool,
    slower: u64,
    steps_per_us: f64,
    /// Steps of the longest unit.
    longest: u64,
    /// Measured from `begin` to `end`.
    pub begin: u64,
    pub end: u64,
}

impl Player {
    /// Number `index`; measured from `begin` to `end`.
    pub fn new(
        shown: &'static [AtomicU64],
        index: usize,
        options: &Options,
        steps_per_us: f64,
        (begin, end): (u64, u64),
    ) -> Player {
        let number = index as u64;
        Player {
            shown,
            memory: RefCell::new(vec![1; MEMORY]),
            at: Cell::default(),
            random: Cell::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1),
            steps: Arc::default(),
            units: Cell::default(),
            units_per_frame: if options.uneven { 1 + number % 4 } else { 1 },
            misbehaves: options.misbehave && index + 1 == options.count,
            slower: options.slower,
            steps_per_us,
            longest: ((options.unit as f64 * steps_per_us) as u64).max(1),
            begin,
            end,
        }
    }

    /// For another thread of the same player: with memory of its own.
    pub fn twin(&self) -> Player {
        Player {
            memory: RefCell::new(vec![1; MEMORY]),
            at: Cell::default(),
            random: self.random.clone(),
            steps: self.steps.clone(),
            units: Cell::default(),
            ..*self
        }
    }

    /// Steps a microsecond where nobody disturbs: the fastest of some tries, so that a busy machine
    /// does not make players idle.
    pub fn speed(options: &Options) -> std::io::Result<f64> {
        let player = Player::new(child::shared(Shown::Late as usize)?, 0, options, 1.0, (0, 0));
        let tries = (0..20).map(|_| {
            let begin = clock::now();
            player.work(2_000);
            2_000.0 * 1e3 / (clock::now() - begin) as f64
        });
        Ok(tries.fold(0.0, f64::max))
    }

    pub fn show(&self, what: Shown, value: u64) {
        self.shown[what as usize].store(value, Relaxed);
    }

    /// Its timers, from some moment after now on.
    pub fn timers(&self) -> [Timer; 2] {
        let (sound, picture) = (SOUND * self.slower, PICTURE * self.slower);
        let (phase, start) = (self.draw() % picture, clock::now());
        let steps = |us: f64| (us * self.steps_per_us) as u64;
        [
            Timer {
                name: "sound",
                release: start + phase % sound,
                period: sound,
                steps: steps(SOUND_WORK),
            },
            Timer {
                name: "picture",
                release: start + phase,
                period: picture,
                steps: steps(PICTURE_WORK),
            },
        ]
    }

    /// A timer's handler: its first instruction is the one that notes how late it is.
    pub fn serve(&self, timer: &mut Timer) {
        self.late(timer.release);
        self.work(timer.steps);
        timer.release += timer.period;
    }

    /// Decodes a unit. The number of frames that are decoded now.
    pub fn decode(&self) -> u64 {
        self.work(self.longest / 4 + self.draw() % (self.longest - self.longest / 4));
        if self.misbehaves && self.draw().is_multiple_of(FORGETS_ONE_IN) {
            self.work(self.draw() % ((FORGETS_FOR * self.steps_per_us) as u64).max(1));
        }
        self.units.set(self.units.get() + 1);
        self.frames()
    }

    fn frames(&self) -> u64 {
        self.units.get() / self.units_per_frame
    }

    /// Called at `begin` and, with `ended`, at `end`: what was counted up to the beginning is taken
    /// off at the end.
    pub fn count(&self, polls: Statistics, ended: bool) {
        let (own, forced) = child::own_switches().unwrap_or_default();
        let cpu = clock::cpu_time(std::process::id()).unwrap_or(0);
        let counts = [
            (Shown::Steps, self.steps.load(Relaxed)),
            (Shown::Frames, self.frames()),
            (Shown::Cpu, cpu),
            (Shown::Switches, own),
            (Shown::Forced, forced),
            (Shown::Polls, polls.polls),
            (Shown::Yields, polls.yields),
        ];
        for (what, now) in counts {
            let before = self.shown[what as usize].load(Relaxed);
            self.show(what, if ended { now.wrapping_sub(before) } else { now });
        }
    }

    fn work(&self, steps: u64) {
        let mut memory = self.memory.borrow_mut();
        for _ in 0..steps {
            let at = self.at.get();
            memory[at..at + STEP].iter_mut().for_each(|word| *word = word.wrapping_mul(5) ^ 1);
            self.at.set((at + STEP) % MEMORY);
        }
        std::hint::black_box(&mut *memory);
        self.steps.fetch_add(steps, Relaxed);
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
