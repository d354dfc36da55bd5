//! What programs of one user take from programs of another. Needs root, which starts both.
//!
//! Two victims compute, cooperating where the policy has such imports, and a third one wakes by the
//! clock. Beside them run so many programs of another user: first ones that only compute, then as
//! many that attack. The difference is what the attack takes. One attack has many threads that
//! compute a little, so it is compared with programs that have as many and supply nothing. Times in
//! nanoseconds.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::{Result, ensure};
use attune_linux::process;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::random::Random;
use crate::{clock, numbers};

const MS: u64 = 1_000_000;
/// The victims' user, and the attackers'.
const VICTIM: u32 = 65_533;
const STRANGER: u32 = 65_534;
const VICTIMS: usize = 2;
/// The victims' group, which a thief names too.
const GROUP: i64 = 7;
const BIT: u64 = MS / 10;
const LINK: u64 = 2 * MS;
/// How long a thread works before the next one does, and one that is always due.
const WORK: u64 = 3 * MS;
const DUE_WORK: u64 = 40 * MS;
const PERIOD: u64 = 10 * MS;
const SLEEPERS: usize = 60;
/// What a sleeper computes in the deterministic machine until it has supplied all.
const SUPPLIES: u64 = 8 * MS / 100;
/// So often a thread polls before it breaks its word, and then does not for so long.
const TRUSTED: usize = 1000;
const BROKEN: u64 = 3 * MS;
/// How long those live that are made anew.
const ANEW: u64 = 200 * MS;
/// How long each attack that is drawn lasts: a part of this.
const LONGEST_DRAWN: u64 = 400 * MS;
/// For a scene to find its balance: sixty sleepers have supplied all by then.
const SETTLES: u64 = 1000 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Attack {
    /// It joins the victims' group, and matters most
    Theft,
    /// Sixty further threads of it, in a group of its own, sleep
    Sleepers,
    /// The same, in a process that is killed and made anew each 0.2 s
    SleepersAnew,
    /// Every number that it may supply is the greediest
    Extremes,
    /// The same, in a process that is killed and made anew each 0.2 s
    ExtremesAnew,
    /// It polls a thousand times with a release that is due, then computes for 3 ms and does not
    /// poll
    Breaks,
    /// A release of its is always due
    AlwaysDue,
    /// A release of its always comes a moment later
    AlwaysAhead,
    /// Its threads work for 2 ms each, start the next and end
    Chain,
    /// A thread of it only waits, and starts one after the other that works for 3 ms and ends
    Workers,
    /// The same, but each works for 40 ms and a release of it is always due
    DueWorkers,
    /// It connects to the scheduler's socket all the time
    Flood,
    /// Those above, one after the other, as drawn
    Any,
}

/// Those that [`Attack::Any`] draws from.
const KINDS: [Attack; 12] = [
    Attack::Theft,
    Attack::Sleepers,
    Attack::SleepersAnew,
    Attack::Extremes,
    Attack::ExtremesAnew,
    Attack::Breaks,
    Attack::AlwaysDue,
    Attack::AlwaysAhead,
    Attack::Chain,
    Attack::Workers,
    Attack::DueWorkers,
    Attack::Flood,
];

/// The greediest value of each thread import of the library that orders threads.
const GREEDIEST: [(&str, i64); 16] = [
    ("deadline", 1),
    ("prio", i64::MAX),
    ("tickets", i64::MAX),
    ("transaction", i64::MAX),
    ("importance", i64::MIN),
    ("next_release", 1),
    ("polls", 1),
    ("dl_period", 4_000_000_000),
    ("dl_runtime", 4_000_000_000),
    ("weight", i64::MAX),
    ("nice", i64::MIN),
    ("input_rating", i64::MAX),
    ("output_rating", i64::MAX),
    ("role", 0),
    ("remaining", i64::MIN),
    ("started", 1),
];

/// Runs each attack with so many attackers, a scene of `time` each.
pub fn run(attacks: &[Attack], attackers: usize, time: Duration) -> Result<Value> {
    ensure!(process::effective_user() == 0, "only root can start programs of two users");
    ensure!(attackers > 0, "at least one attacker");
    let plain = scene(|_| clock::spin_for_ever(), attackers, time)?;
    let mut figures = json!({ "attackers": attackers, "plain": plain.json() });
    let threads = attacks.contains(&Attack::SleepersAnew);
    let threads = threads.then(|| scene(|_| anew(many_threads), attackers, time)).transpose()?;
    if let Some(threads) = &threads {
        figures["threads-anew"] = threads.beside(&plain);
    }
    for attack in attacks {
        let scene = scene(|seed| act(*attack, seed), attackers, time)?;
        let other = threads.as_ref().filter(|_| *attack == Attack::SleepersAnew);
        let name = attack.to_possible_value().map(|value| value.get_name().to_owned());
        figures[name.unwrap_or_default()] = scene.beside(other.unwrap_or(&plain));
    }
    Ok(figures)
}

/// What the victims had.
struct Scene {
    /// Parts of a CPU of those that compute.
    shares: Vec<f64>,
    late: Value,
}

impl Scene {
    fn json(&self) -> Value {
        json!({ "shares": self.shares, "late_ns": self.late })
    }

    /// With what victims lose in comparison with the other scene.
    fn beside(&self, other: &Scene) -> Value {
        let parts = self.shares.iter().zip(&other.shares).map(|(had, other)| had / other);
        let mut json = self.json();
        json["lost_percent"] = json!(100.0 * (1.0 - parts.fold(f64::INFINITY, f64::min)));
        json["added_p99_ns"] = json!(self.p99() - other.p99());
        json
    }

    fn p99(&self) -> f64 {
        self.late["p99"].as_f64().unwrap_or(f64::NAN)
    }
}

/// Each stranger has a number, and does the job with it for ever.
fn scene(job: impl Fn(usize), attackers: usize, time: Duration) -> Result<Scene> {
    let time = time.as_nanos() as u64;
    let late = child::shared(time.div_ceil(PERIOD) as usize)?;
    let begin = clock::now() + SETTLES;
    let victims =
        (0..VICTIMS).map(|_| Child::of_user(VICTIM, work)).collect::<Result<Vec<_>, _>>()?;
    let sleeper = Child::of_user(VICTIM, || {
        clock::without_slack();
        for (release, late) in (begin..).step_by(PERIOD as usize).zip(late) {
            clock::sleep_until(release);
            late.store(clock::now().saturating_sub(release), Relaxed);
            clock::compute(BIT);
        }
    })?;
    let strangers = (0..attackers).map(|seed| Child::of_user(STRANGER, || job(seed)));
    let strangers = strangers.collect::<Result<Vec<_>, _>>()?;
    let used = || {
        let times = victims.iter().map(|victim| clock::cpu_time(victim.pid()));
        times.collect::<Result<Vec<_>, _>>()
    };
    clock::sleep_until(begin);
    let (from, before) = (clock::now(), used()?);
    clock::sleep_until(begin + time);
    let (lasted, after) = (clock::now() - from, used()?);
    drop((victims, sleeper, strangers));
    let shares = after.iter().zip(&before).map(|(after, before)| after - before);
    // A wake-up that has not come by now is late by so much already.
    let end = begin + time;
    let releases = (begin..).step_by(PERIOD as usize);
    let so_late = |(release, late): (u64, &AtomicU64)| match late.load(Relaxed) {
        0 => end.saturating_sub(release),
        late => late,
    };
    let mut late: Vec<u64> = releases.zip(late).map(so_late).collect();
    Ok(Scene {
        shares: shares.map(|used| used as f64 / lasted as f64).collect(),
        late: numbers::quantiles(&mut late),
    })
}

/// A victim that cooperates where it can, by polling after each bit of its work.
fn work() {
    if !attune_client::wanted(&["polls", "group"]) {
        clock::spin_for_ever();
    }
    supply("group", GROUP);
    supply("importance", 0);
    poll_for_ever();
}

fn act(attack: Attack, seed: usize) {
    match attack {
        Attack::Theft => {
            supply("group", GROUP);
            supply("importance", i64::MIN);
            poll_for_ever();
        }
        Attack::Sleepers => {
            for _ in 0..SLEEPERS {
                start(|| {
                    supply("group", GROUP + 1);
                    supply("importance", i64::MAX);
                    supply("next_release", i64::MAX / 2);
                    supply("polls", 1);
                    doze_for_ever();
                });
            }
            supply("group", GROUP + 1);
            poll_for_ever();
        }
        Attack::SleepersAnew => anew(|| act(Attack::Sleepers, seed)),
        Attack::Extremes => {
            GREEDIEST.into_iter().for_each(|(name, value)| supply(name, value));
            clock::spin_for_ever();
        }
        Attack::ExtremesAnew => anew(|| act(Attack::Extremes, seed)),
        Attack::Breaks => break_word_for_ever(),
        Attack::AlwaysDue => release_for(u64::MAX, 0),
        Attack::AlwaysAhead => release_for(u64::MAX, BIT / 2),
        Attack::Flood => loop {
            // Where the scheduler lacks the import, each question is a connection of its own.
            import("no such import");
        },
        Attack::Any => {
            let mut draw = Random(seed as u64);
            loop {
                let kind = KINDS[draw.below(KINDS.len() as u64) as usize];
                for_a_while(|| act(kind, seed), 1 + draw.below(LONGEST_DRAWN));
            }
        }
        Attack::Workers => one_by_one(|| clock::compute(WORK)),
        Attack::DueWorkers => one_by_one(|| release_for(DUE_WORK, 0)),
        Attack::Chain => {
            start(link_of_chain);
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

/// What [`Attack::Sleepers`] is compared with where it is made anew: as many threads, which compute
/// for as long and supply nothing.
fn many_threads() {
    for _ in 0..SLEEPERS {
        start(|| {
            clock::compute(SUPPLIES);
            doze_for_ever();
        });
    }
    clock::spin_for_ever();
}

fn doze_for_ever() {
    loop {
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn anew(job: impl Fn()) {
    loop {
        for_a_while(&job, ANEW);
    }
}

/// In a process of its own, which then ends with all its threads and all that it supplies.
fn for_a_while(job: impl FnOnce(), time: u64) {
    let its = Child::start(|| {
        job();
        0
    });
    clock::sleep_until(clock::now() + time);
    drop(its);
}

fn link_of_chain() {
    clock::compute(LINK);
    start(link_of_chain);
}

/// Threads that each do the job, one after the other.
fn one_by_one(job: fn()) {
    loop {
        if let Ok(thread) = spawn(job) {
            let _ = thread.join();
        }
    }
}

fn start(job: fn()) {
    // Without room for another thread the attack is over, which harms nobody.
    let _ = spawn(job);
}

fn spawn(job: fn()) -> io::Result<JoinHandle<()>> {
    Builder::new().stack_size(64 << 10).spawn(job)
}

/// For so much CPU time, polls with a release that is due so much later.
fn release_for(works: u64, ahead: u64) {
    let mut turns = 0;
    let releases: Vec<_> = ["next_release", "deadline"].into_iter().filter_map(import).collect();
    poll_while(|| {
        let now = clock::now();
        releases.iter().for_each(|release| release.set((now + ahead) as i64));
        turns += 1;
        // Keeps a watchdog silent.
        if turns % 20 == 0 {
            clock::sleep_until(now + BIT / 2);
        }
        clock::thread_cpu_time() < works
    });
}

/// Works in bits; before each end of one, something else, which says whether it goes on. Where
/// nothing is polled it does not give its turn away.
fn poll_while(mut also: impl FnMut() -> bool) {
    let polls = attune_client::wanted(&["polls"]).then(|| attune_client::thread_import("polls"));
    let polls = polls.and_then(Result::ok);
    clock::compute(BIT);
    while also() {
        if let Some(polls) = &polls {
            polls.set(polls.get().wrapping_add(1));
            std::thread::yield_now();
        }
        clock::compute(BIT);
    }
}

fn break_word_for_ever() {
    let [polls, release] = ["polls", "next_release"].map(import);
    loop {
        for _ in 0..TRUSTED {
            if let Some(release) = &release {
                release.set(clock::now() as i64);
            }
            if let Some(polls) = &polls {
                polls.set(polls.get().wrapping_add(1));
            }
            std::thread::yield_now();
        }
        clock::compute(BROKEN);
    }
}

fn poll_for_ever() {
    poll_while(|| true);
}

/// What is not known, or refused, has no effect.
fn supply(name: &str, value: i64) {
    if let Some(import) = import(name) {
        import.set(value);
    }
}

fn import(name: &str) -> Option<attune_client::Value> {
    attune_client::wanted(&[name]).then(|| attune_client::thread_import(name).ok())?
}
