//! Crowds of computing threads with random affinities, nice values and classes: how long a ready
//! thread waits, beside the bound that a policy promises. Needs root for nice values below 0.
//!
//! Each thread looks at the clock again and again. If the time between two looks is long, the
//! kernel says for how much of it the thread was ready, and how often it had a CPU. More than once
//! means that the thread did not come to look in its turn. That happens in the deterministic
//! machine, where one CPU stands still while another computes, and on a busy host. What the thread
//! waited for before and after is then not one wait, so it counts as a lost turn instead.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::Builder;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use attune_linux::process::raise_descriptor_limit;
use attune_linux::time::{MILLISECOND, Time};
use rustix::mm::{MlockAllFlags, mlockall};
use serde_json::{Value, json};

use crate::account::{Account, LONG, Turns};
use crate::child::{self, Child};
use crate::clock;
use crate::random::Random;

/// What a policy promises with n other threads: `fixed` and n times `per_thread`.
#[derive(Clone, Copy)]
pub struct Bound {
    pub fixed: Duration,
    pub per_thread: Duration,
}

impl Bound {
    fn of(self, others: usize) -> Duration {
        self.fixed + self.per_thread * others as u32
    }
}

/// Threads of the machine's own that may be ready meanwhile, and the process's first thread.
const OTHERS: usize = 10;
const STACK: usize = 64 << 10;
/// Each thread opens one file; the process's own.
const DESCRIPTORS: u64 = 64;
/// For the process to have its pages, and for each thread to be there.
const SET_UP: Time = 100 * MILLISECOND;
const SET_UP_OF_ONE: Time = 2 * MILLISECOND;

/// Runs so many mixes of up to `most` threads, each for one and a half times its bound.
pub fn run(mixes: u64, most: usize, seed: u64, bound: Bound) -> Result<Value> {
    ensure!(mixes > 0 && most > 0, "at least one mix, and one thread");
    let cpus = std::thread::available_parallelism()?.get();
    let (mut longest, mut worst, mut threads) = (0.0, 0.0, 0);
    let turns = Turns::new()?;
    for mix in 0..mixes {
        let mut random = Random(seed.wrapping_mul(1_000_003) + mix);
        let count = (most as f64).powf(random.part()).round().clamp(1.0, most as f64) as usize;
        let bound = bound.of(count + OTHERS);
        let waited = one(count, bound + bound / 2, cpus, turns, &mut random)?;
        threads += count;
        longest = f64::max(longest, waited as f64);
        worst = f64::max(worst, waited as f64 / bound.as_nanos() as f64);
    }
    let (all, lost) = turns.all_and_lost();
    Ok(json!({ "mixes": mixes, "threads": threads, "longest_wait_ns": longest,
        "worst_part_of_bound": worst, "turns": all, "lost_turns": lost,
        "lost_part_of_turns": lost as f64 / all.max(1) as f64 }))
}

/// One crowd in a process of its own; the longest wait.
fn one(
    count: usize,
    time: Duration,
    cpus: usize,
    turns: Turns,
    random: &mut Random,
) -> Result<u64> {
    let (waits, members) = (child::shared(count)?, members(random, count, cpus));
    let child = Child::start(|| match compute(&members, waits, turns, time) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("attune-load: a crowd: {error:#}");
            1
        }
    })?;
    child.wait()?;
    ensure!(waits.iter().all(|wait| wait.load(Relaxed) > 0), "a thread never ran");
    Ok(waits.iter().map(|wait| wait.load(Relaxed)).max().unwrap_or(0))
}

/// Each sleeps, as it is to be, until a time by which all are there. A timer wakes it, so no thread
/// must run before another can; and the first wait counts as well.
fn compute(members: &[Member], waits: &[AtomicU64], turns: Turns, time: Duration) -> Result<()> {
    let there = AtomicUsize::new(0);
    raise_descriptor_limit(members.len() as u64 + DESCRIPTORS);
    // All of the program and what it shares is there before anybody needs it. Thousands would ask
    // for a page at the same time, and one that loses its CPU while it fetches that page keeps the
    // others off it until its next turn.
    mlockall(MlockAllFlags::CURRENT).context("the program's pages cannot stay in memory")?;
    let begin = clock::now() + SET_UP + SET_UP_OF_ONE * members.len() as u64;
    let end = begin + time.as_nanos() as u64;
    std::thread::scope(|scope| -> Result<()> {
        for (member, wait) in members.iter().zip(waits) {
            let there = &there;
            Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                let result = member.apply().and_then(|()| Account::open()).and_then(|account| {
                    there.fetch_add(1, Relaxed);
                    take_turns(&account, begin..end, wait, turns)
                });
                if let Err(error) = result {
                    eprintln!("attune-load: a thread of the crowd: {error}");
                }
            })?;
        }
        clock::sleep_until(begin - MILLISECOND);
        let (there, all) = (there.load(Relaxed), members.len());
        ensure!(there == all, "only {there} of {all} threads were there when all began");
        Ok(())
    })
}

/// Sleeps until the period begins, and looks at the clock until it is over.
fn take_turns(
    account: &Account,
    period: Range<Time>,
    wait: &AtomicU64,
    turns: Turns,
) -> io::Result<()> {
    let mut before = account.had()?;
    let mut last = clock::now();
    clock::sleep_until(period.start);
    // A thread that ran has a wait, though it may be 0.
    wait.fetch_max(1, Relaxed);
    while last < period.end {
        let now = clock::now();
        if now - last >= LONG {
            let had = account.had()?;
            if let Some(waited) = had.wait_since(before) {
                wait.fetch_max(waited, Relaxed);
            }
            if now < period.end {
                // Beyond, threads that end keep each other from their looks.
                turns.count(had.turns - before.turns);
            }
            before = had;
        }
        last = now;
        clock::spin();
    }
    Ok(())
}

/// What one thread is like.
struct Member {
    cpus: Vec<usize>,
    nice: i32,
    idle: bool,
}

impl Member {
    fn apply(&self) -> std::io::Result<()> {
        // SAFETY: zeroes are an empty set, and the calls read what they are given.
        let done = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            self.cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
            let class = if self.idle { libc::SCHED_IDLE } else { libc::SCHED_OTHER };
            let plain = libc::sched_param { sched_priority: 0 };
            libc::sched_setaffinity(0, size_of_val(&set), &set) == 0
                && libc::sched_setscheduler(0, class, &plain) == 0
                && libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as u32, self.nice) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

/// Half of them may run anywhere and have nice 0.
fn members(random: &mut Random, count: usize, cpus: usize) -> Vec<Member> {
    let member = |_| {
        let plain = random.below(2) == 0;
        let first = random.below(cpus as u64) as usize;
        let allowed = (0..cpus).filter(|&cpu| plain || cpu == first || random.below(3) == 0);
        let cpus = allowed.collect();
        let nice = if plain { 0 } else { random.below(40) as i32 - 20 };
        Member { cpus, nice, idle: !plain && random.below(8) == 0 }
    };
    (0..count).map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_repeat_and_are_possible() {
        let of = |seed| members(&mut Random(seed), 200, 3);
        let some = of(1);
        assert!(some.iter().zip(of(1)).all(|(one, other)| one.cpus == other.cpus));
        assert!(some.iter().all(|member| !member.cpus.is_empty() && member.cpus[0] < 3));
        assert!(some.iter().all(|member| (-20..20).contains(&member.nice)));
        assert!(some.iter().any(|member| member.idle) && some.iter().any(|it| it.cpus.len() == 1));
    }

    #[test]
    fn a_bound_grows_with_the_others() {
        let bound = Bound { fixed: Duration::from_secs(1), per_thread: Duration::from_micros(100) };
        assert_eq!(bound.of(50), Duration::from_millis(1005));
    }
}
