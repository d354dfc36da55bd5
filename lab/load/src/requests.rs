//! A messenger and its workers, after the description of schbench: a worker that is free asks for a
//! request, sleeps until the messenger wakes it, notes how long that took, and computes. Tail
//! latencies of waking up where all are busy.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use anyhow::{Result, ensure};
use attune_linux::futex::{wait, wake};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::{clock, hogs, numbers};

/// Requests that a worker notes; more are not.
const ROOM: usize = 100_000;

/// The last request.
const OVER: u64 = u64::MAX;

/// What a worker shares with the messenger: words of its memory, and behind them the times that it
/// notes.
#[derive(Clone, Copy)]
enum Word {
    /// 0: it wants a request; [`OVER`]; otherwise when it was woken.
    Woken,
    /// It has begun to wait. The messenger's word changes when a worker has.
    Free,
    /// Times noted. The messenger's word: all is over.
    Count,
    Times,
}

struct Worker(&'static [AtomicU64]);

impl Worker {
    fn at(&self, word: Word) -> &AtomicU64 {
        &self.0[word as usize]
    }

    /// The lower half of a word, which a futex looks at.
    fn futex(&self, word: Word) -> &AtomicU32 {
        // SAFETY: the half lies in the word, and lasts as long; futexes access it atomically.
        unsafe { AtomicU32::from_ptr(self.at(word).as_ptr().cast()) }
    }
}

/// Workers that compute for `work` for each request, beside hogs, for `time` after half a second to
/// find their balance.
pub fn run(workers: usize, hog_count: usize, work: Duration, time: Duration) -> Result<Value> {
    ensure!((1..=256).contains(&workers), "1 to 256 workers");
    let work = work.as_nanos() as u64;
    let begin = clock::now() + 500_000_000;
    let end = begin + time.as_nanos() as u64;
    let shared = |_| Ok(Worker(child::shared(Word::Times as usize + ROOM)?));
    let team = (0..workers).map(shared).collect::<Result<Vec<_>>>()?;
    let bell = Worker(child::shared(Word::Times as usize)?);
    let hogs = (0..hog_count).map(|_| hogs::start(0)).collect::<Result<Vec<_>>>()?;
    let mut children = vec![Child::start(|| messenger(&team, &bell, end))?];
    for worker in &team {
        children.push(Child::start(|| serve(worker, &bell, work, begin, end))?);
    }
    children.into_iter().try_for_each(Child::wait)?;
    drop(hogs);
    let mut times = vec![];
    for worker in &team {
        let count = worker.at(Word::Count).load(Acquire) as usize;
        times.extend(
            worker.0[Word::Times as usize..][..count].iter().map(|time| time.load(Relaxed)),
        );
    }
    ensure!(!times.is_empty(), "no request was served");
    let rate = times.len() as f64 * 1e9 / time.as_nanos() as f64;
    Ok(json!({ "wakeup_ns": numbers::quantiles(&mut times), "requests_per_second": rate,
            "workers": workers }))
}

/// Wakes every worker that is free, until the end; then all of them.
fn messenger(team: &[Worker], bell: &Worker, end: u64) -> i32 {
    while clock::now() < end {
        let rung = bell.at(Word::Free).load(Acquire);
        let mut woke = false;
        for worker in team {
            if worker.at(Word::Free).swap(0, AcqRel) == 1 {
                worker.at(Word::Woken).store(clock::now(), Release);
                wake(worker.futex(Word::Woken), 1);
                woke = true;
            }
        }
        if !woke {
            wait(bell.futex(Word::Free), rung as u32, 20_000_000);
        }
    }
    // A worker that begins to wait now sees the one or the other.
    bell.at(Word::Count).store(1, SeqCst);
    for worker in team {
        worker.at(Word::Woken).store(OVER, SeqCst);
        wake(worker.futex(Word::Woken), 1);
    }
    0
}

fn serve(worker: &Worker, bell: &Worker, work: u64, begin: u64, end: u64) -> i32 {
    let mut count = 0;
    loop {
        worker.at(Word::Woken).store(0, SeqCst);
        if bell.at(Word::Count).load(SeqCst) != 0 {
            worker.at(Word::Woken).store(OVER, SeqCst);
        }
        worker.at(Word::Free).store(1, Release);
        bell.at(Word::Free).fetch_add(1, AcqRel);
        wake(bell.futex(Word::Free), 1);
        let mut woken = worker.at(Word::Woken).load(Acquire);
        while woken == 0 {
            // The time-out is for a messenger that is gone.
            if clock::now() > end + 2_000_000_000 {
                return 1;
            }
            wait(worker.futex(Word::Woken), 0, 500_000_000);
            woken = worker.at(Word::Woken).load(Acquire);
        }
        if woken == OVER {
            worker.at(Word::Count).store(count as u64, Release);
            return 0;
        }
        if woken >= begin && count < ROOM {
            worker.0[Word::Times as usize + count]
                .store(clock::now().saturating_sub(woken), Relaxed);
            count += 1;
        }
        clock::compute(work);
    }
}
