//! Threads that take turns while something happens to the machine: each must go on.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::Builder;

use anyhow::{Context, Result, ensure};
use attune_linux::time::{MILLISECOND, SECOND, Time};

use crate::child::{self, Child};
use crate::clock;

const STACK: usize = 64 << 10;
/// CPU time of a turn of a computing thread.
const TURN: Time = MILLISECOND;
/// For which a sleeping thread sleeps.
const SLEEP: Time = 10 * MILLISECOND;
const LOOK: Time = MILLISECOND;
/// A thread that has not run for so long is lost.
const PATIENCE: Time = 60 * SECOND;

/// A process whose every second thread computes; the others sleep, and look at the clock. It is
/// killed when this is dropped.
pub struct Crowd {
    turns: &'static [AtomicU64],
    _process: Child,
}

impl Crowd {
    /// Starts so many threads, and waits until each has run.
    pub fn start(threads: usize) -> Result<Crowd> {
        ensure!(threads > 0, "at least one thread");
        let turns = child::shared(threads)?;
        let crowd = Crowd { turns, _process: Child::start(|| take_turns(turns))? };
        crowd.wait_until_all_ran("the start")?;
        Ok(crowd)
    }

    /// Waits until every thread has run once more. Err: one has not, a minute after the event.
    pub fn wait_until_all_ran(&self, event: &str) -> Result<()> {
        let before: Vec<u64> = self.turns.iter().map(|turn| turn.load(Relaxed)).collect();
        let all_ran =
            || self.turns.iter().zip(&before).all(|(turn, before)| turn.load(Relaxed) > *before);
        wait_until("not every thread runs on", event, all_ran)
    }
}

/// Waits until it is so. Err: it is not, a minute after the event.
pub fn wait_until(otherwise: &str, event: &str, so: impl Fn() -> bool) -> Result<()> {
    clock::wait_until(so, LOOK, PATIENCE).with_context(|| format!("{otherwise} after {event}"))
}

fn take_turns(turns: &'static [AtomicU64]) -> i32 {
    let mut started = vec![];
    for (number, turn) in turns.iter().enumerate() {
        let work = move || loop {
            turn.fetch_add(1, Relaxed);
            match number % 2 {
                0 => clock::compute(TURN),
                _ => clock::sleep_until(clock::now() + SLEEP),
            }
        };
        match Builder::new().stack_size(STACK).spawn(work) {
            Ok(thread) => started.push(thread),
            Err(error) => {
                eprintln!("attune-load: a thread: {error}");
                return 1;
            }
        }
    }
    // They go on until this process is killed.
    started.into_iter().for_each(|thread| drop(thread.join()));
    1
}
