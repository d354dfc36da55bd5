//! Threads that do not hold still: they compute, sleep, wake each other, end and start their
//! successors, while another process changes their affinity, class and cpuset at random. Each must
//! go on, and on CPUs where it may run. Needs root and a cgroup2 with cpusets.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::{io, process};

use anyhow::{Context, Result, bail, ensure};
use attune_linux::affinity::Cpus;
use attune_linux::scheduling::{Attributes, Class, RESET_ON_FORK};
use attune_linux::time::{MICROSECOND, MILLISECOND, SECOND, Time};
use attune_linux::{futex, process::this_thread};
use serde_json::{Value, json};

use crate::cgroups::{Made, enter, write};
use crate::child::{self, Child};
use crate::random::Random;
use crate::relay::Relay;
use crate::{clock, numbers};

/// A thread computes, sleeps or waits for up to so long.
const WORK: Time = 100 * MICROSECOND;
const SLEEP: Time = MILLISECOND;
const WAIT: Time = 2 * MILLISECOND;
/// After so many changes all threads must run once.
const ROUND: u64 = 1000;
/// A thread that has not run for so long is lost.
const PATIENCE: Time = 60 * SECOND;
const LOOK: Time = MILLISECOND;
/// A thread ends after so many actions on average, in a crowd after half as many as it has threads.
/// The kernel starts and ends the threads of a process one by one, and the one that holds that lock
/// may wait until each other has had its turn: so thousands that end would wait for each other.
const ACTIONS: u64 = 24;

/// What the two processes know of a place: threads have it one after the other.
#[repr(C)]
struct Place {
    /// How often its thread has looked where it is.
    looks: AtomicU64,
    /// Looks that found it where it may not run.
    strayed: AtomicU64,
    /// Threads that it has had.
    threads: AtomicU64,
    /// The number of the one that it has.
    thread: AtomicU64,
    /// Odd while its affinity changes.
    version: AtomicU64,
    /// It waits here.
    bell: AtomicU64,
}

const NUMBERS: usize = size_of::<Place>() / size_of::<AtomicU64>();

/// What all of them know.
#[derive(Clone, Copy)]
struct Shared {
    places: &'static [Place],
    /// Odd while the cpuset changes.
    version: &'static AtomicU64,
}

impl Shared {
    fn new(threads: usize) -> Result<Shared> {
        let numbers = child::shared(threads * NUMBERS + 1)?;
        let (places, version) = numbers.split_at(threads * NUMBERS);
        // SAFETY: a place is so many of these numbers and nothing else.
        let places = unsafe { std::slice::from_raw_parts(places.as_ptr().cast(), threads) };
        Ok(Shared { places, version: &version[0] })
    }

    fn sum(&self, of: impl Fn(&Place) -> &AtomicU64) -> u64 {
        self.places.iter().map(|place| of(place).load(Relaxed)).sum()
    }
}

impl Place {
    fn bell(&self) -> &AtomicU32 {
        // SAFETY: the half lies in the number, and lasts as long; futexes access it atomically.
        unsafe { &*self.bell.as_ptr().cast::<AtomicU32>() }
    }

    fn ring(&self) {
        self.bell().fetch_add(1, SeqCst);
        futex::wake(self.bell(), 1);
    }
}

/// Marks the time in which something changes.
fn while_odd<T>(version: &AtomicU64, change: impl FnOnce() -> T) -> T {
    version.fetch_add(1, SeqCst);
    let changed = change();
    version.fetch_add(1, SeqCst);
    changed
}

/// Makes so many changes to so many threads. Then no thread may run on a CPU, and all on that CPU,
/// for each in turn.
pub fn run(changes: u64, threads: usize, seed: u64) -> Result<Value> {
    ensure!(changes > 0 && threads > 0, "at least one change, and one thread");
    let cpus = std::thread::available_parallelism()?.get() as u32;
    let shared = Shared::new(threads)?;
    let mut made = Made::default();
    let folder = made.cgroup("restless", "cpuset")?;
    let child = Child::start(move || live(shared, seed))?;
    enter(&folder, child.pid())?;
    let set_cpus = |set: Cpus| {
        while_odd(shared.version, || write(&folder.join("cpuset.cpus"), &set.to_string()))
    };
    first_of_all().context("cannot have SCHED_FIFO (needs root)")?;
    let mut random = Random(seed);
    until_all_run(shared)?;
    let mut all_ran = vec![];
    let mut done = [0u64; 4];
    for change in 1..=changes {
        let place = &shared.places[random.below(threads as u64) as usize];
        let kind = match random.below(32) {
            0..16 => 0,
            16..24 => 1,
            24..31 => 2,
            _ => 3,
        };
        let thread = place.thread.load(SeqCst) as u32;
        let took = match kind {
            // The thread may have ended, or its cpuset may exclude them all.
            0 => while_odd(&place.version, || some(cpus, &mut random).apply_to(thread)).is_ok(),
            1 => class(&mut random).apply_to(thread).is_ok(),
            2 => {
                place.ring();
                true
            }
            _ => {
                set_cpus(some(cpus, &mut random))?;
                true
            }
        };
        done[kind] += u64::from(took);
        if change % ROUND == 0 || change == changes {
            let took = until_all_run(shared)?;
            all_ran.push(took);
            let took = took / MILLISECOND;
            eprintln!("attune-load: {change} of {changes} changes; then all ran within {took} ms");
        }
    }
    let one_less = |cpu| (0..cpus).filter(|other| cpus == 1 || *other != cpu).collect();
    for set in (0..cpus).flat_map(|cpu| [one_less(cpu), Cpus::one(cpu)]) {
        set_cpus(set)?;
        all_ran.push(until_all_run(shared)?);
    }
    let strayed = shared.sum(|place| &place.strayed);
    ensure!(strayed == 0, "{strayed} times a thread ran where it may not");
    let [affinity, class, wake, cpuset] = done;
    drop(child);
    Ok(json!({
        "changes": { "affinity": affinity, "class": class, "wake": wake, "cpuset": cpuset },
        "threads": shared.sum(|place| &place.threads),
        "looks": shared.sum(|place| &place.looks),
        "all_ran_ns": numbers::quantiles(&mut all_ran),
    }))
}

/// The thread that makes changes, and the one that starts all others, must not wait for thousands
/// of them. What they start has the usual class.
fn first_of_all() -> io::Result<()> {
    Attributes::fifo(2).with_flags(RESET_ON_FORK).apply_to(0)
}

/// Some of the CPUs, at least one.
fn some(cpus: u32, random: &mut Random) -> Cpus {
    let one = random.below(u64::from(cpus)) as u32;
    (0..cpus).filter(|&cpu| cpu == one || random.below(2) == 0).collect()
}

fn class(random: &mut Random) -> Attributes {
    let nice = random.below(40) as i32 - 20;
    let of = |class| Attributes { class, nice, ..Attributes::default() };
    match random.below(4) {
        0 => Attributes::fifo(1),
        1 => of(Class::BATCH),
        2 => of(Class::IDLE),
        _ => of(Class::NORMAL),
    }
}

/// How long it took until each thread had run.
fn until_all_run(shared: Shared) -> Result<Time> {
    let looks = || shared.places.iter().map(|place| place.looks.load(Relaxed));
    let (before, since) = (looks().collect::<Vec<_>>(), clock::now());
    loop {
        let lost = looks().zip(&before).filter(|(now, before)| now <= before).count();
        let took = clock::now() - since;
        match lost {
            0 => return Ok(took),
            _ if took > PATIENCE => {
                bail!("{lost} threads have not run for {} s", PATIENCE / SECOND)
            }
            _ => clock::sleep_until(clock::now() + LOOK),
        }
    }
}

/// The process of the threads, until it is killed.
fn live(shared: Shared, seed: u64) -> i32 {
    let begun = || -> io::Result<()> {
        first_of_all()?;
        let leg = Box::leak(Box::new(move |relay: &'static Relay| lead(shared, relay)));
        for relay in Relay::several(shared.places.len(), leg)? {
            relay.next(seed.wrapping_mul(1_000_003).wrapping_add(relay.number as u64))?;
        }
        Ok(())
    };
    if let Err(error) = begun() {
        eprintln!("attune-load: the threads cannot start: {error}");
        return 1;
    }
    loop {
        clock::sleep_until(clock::now() + SECOND);
    }
}

/// The life of a thread; it leaves its place to another.
fn lead(shared: Shared, relay: &'static Relay) {
    let place = &shared.places[relay.number];
    let mut random = Random(relay.baton());
    let to_end = ACTIONS.max(shared.places.len() as u64 / 2);
    place.thread.store(u64::from(this_thread()), SeqCst);
    place.threads.fetch_add(1, Relaxed);
    loop {
        place.strayed.fetch_add(u64::from(is_astray(shared, place)), Relaxed);
        place.looks.fetch_add(1, Relaxed);
        // A thread that stays in a real-time class keeps the others from running.
        if random.below(4) == 0 {
            let _ = Class::NORMAL.apply();
        }
        if random.below(to_end) == 0 {
            if let Err(error) = relay.next(random.below(u64::MAX)) {
                eprintln!("attune-load: a thread: {error}");
                process::exit(1);
            }
            return;
        }
        match random.below(23) {
            0..7 => clock::compute(random.below(WORK)),
            7..13 => clock::sleep_until(clock::now() + random.below(SLEEP)),
            13..18 => futex::wait(place.bell(), place.bell().load(SeqCst), WAIT),
            _ => shared.places[random.below(shared.places.len() as u64) as usize].ring(),
        }
    }
}

/// Whether it runs where it may not. Where it may run is known if no change is under way.
fn is_astray(shared: Shared, place: &Place) -> bool {
    let versions = || [&place.version, shared.version].map(|version| version.load(SeqCst));
    let before = versions();
    let allowed = Cpus::of_this_thread();
    // SAFETY: asks for a number.
    let cpu = unsafe { libc::sched_getcpu() };
    let is_known = before == versions() && before.iter().all(|version| version % 2 == 0);
    is_known && allowed.is_ok_and(|allowed| !allowed.contains(cpu as u32))
}
