//! The OS thread that writes a trace: it empties the workers' rings, turns records into packets and
//! writes whole packets to the file, every few milliseconds.
//!
//! A thread that moves is in the records of two workers. Those of its new worker wait, from its
//! arrival on, until its old worker's say that it has left; or until that worker's records have
//! been read once, where these were lost.
//!
//! Invariant: it takes no lock that a worker ever waits for, and workers never wake it.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use attune_linux::signal;

use super::record::{Record, What};
use super::recorder::Eye;
use super::story::Story;
use crate::clock;
use crate::report;

/// How long the writer rests when it has caught up.
const REST: Duration = Duration::from_millis(5);
/// Bytes after which packets go to the file.
const PORTION: usize = 1 << 16;

/// A trace that is being written, for all threads.
#[derive(Default)]
pub struct Writing {
    is_over: AtomicBool,
    writer: OnceLock<Thread>,
    /// What came of it, when it has ended: an errno.
    outcome: Mutex<Option<Result<(), i32>>>,
    ended: Condvar,
}

impl Writing {
    /// The rest of the records is to be written at once, and no more is to come.
    pub fn finish(&self) {
        self.is_over.store(true, Relaxed);
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// What came of it, if it has ended.
    pub fn outcome(&self) -> Option<Result<(), i32>> {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the OS thread until the trace has ended. False: it has not in that time.
    pub fn wait(&self, patience: Duration) -> bool {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(outcome, patience, |outcome| outcome.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
    }
}

pub struct Writer {
    pub file: File,
    pub path: PathBuf,
    pub story: Story,
    /// By worker.
    pub eyes: Vec<Eye>,
    pub order: Order,
}

/// Which rings were read to their ends when. Counts readings of rings.
#[derive(Default)]
pub struct Order {
    readings: u64,
    /// By worker, when all of its ring was read last.
    read: Vec<u64>,
    /// By worker, since when a record waits for those of another one.
    waits_since: Vec<Option<u64>>,
}

impl Order {
    pub fn new(workers: usize) -> Order {
        Order { readings: 0, read: vec![0; workers], waits_since: vec![None; workers] }
    }

    /// The next record of the worker's ring waits for those of another worker, which may have come.
    /// True: it still waits.
    fn holds(&mut self, worker: usize, before: usize) -> bool {
        let since = *self.waits_since[worker].get_or_insert(self.readings);
        self.read.get(before).is_some_and(|read| *read <= since)
    }

    fn goes_on(&mut self, worker: usize) {
        self.waits_since[worker] = None;
    }

    fn has_read(&mut self, worker: usize, all: bool) {
        self.readings += 1;
        if all {
            self.read[worker] = self.readings;
        }
    }

    fn nothing_waits(&self) -> bool {
        self.waits_since.iter().all(Option::is_none)
    }
}

impl Writer {
    /// Writes until all workers have put their pens down, or until [`Writing::finish`].
    pub fn start(self) -> io::Result<Arc<Writing>> {
        let writing = Arc::new(Writing::default());
        let shared = writing.clone();
        let body = move || self.run(&shared);
        let builder = thread::Builder::new().name("attune-trace".to_owned());
        let handle = signal::while_blocked(|| builder.spawn(body))?;
        // Nobody else sets it.
        let _ = writing.writer.set(handle.thread().clone());
        Ok(writing)
    }

    fn run(mut self, writing: &Writing) {
        let written = self.follow(writing);
        if let Err(error) = &written {
            let path = self.path.display();
            report::note(&format!("the trace {path} ends here: {error}; the program goes on"));
        }
        // A child of a fork may hold the file open, and its lock is to end all the same.
        let _ = self.file.unlock();
        // Workers see that nobody reads their rings any more.
        drop(self);
        let outcome = written.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO));
        *writing.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        writing.ended.notify_all();
    }

    fn follow(&mut self, writing: &Writing) -> io::Result<()> {
        loop {
            // Asked before the rings are read, so that nothing comes afterwards.
            let last = writing.is_over.load(Relaxed)
                || self.eyes.iter().all(|eye| eye.ring.is_abandoned());
            let mut busy = false;
            for worker in 0..self.eyes.len() {
                busy |= self.read(worker)?;
            }
            let last = last && self.order.nothing_waits();
            if last {
                self.end();
            }
            self.write(0)?;
            if last {
                return Ok(());
            }
            if !busy && self.order.nothing_waits() {
                thread::park_timeout(REST);
            }
        }
    }

    fn end(&mut self) {
        for (worker, eye) in self.eyes.iter().enumerate() {
            let count = eye.gap.count.swap(0, Relaxed);
            if count > 0 {
                let (from, until) = (eye.gap.from.load(Relaxed), eye.gap.until.load(Relaxed));
                let lost = What::Lost { until, count };
                self.story.hear(worker, &Record { at: from, thread: 0, what: lost });
            }
        }
        self.story.end(clock::now());
    }

    /// Reads what the ring holds now. True: it was half full.
    fn read(&mut self, worker: usize) -> io::Result<bool> {
        let there = self.eyes[worker].ring.slots();
        let mut left = there;
        while left > 0 {
            let Ok(record) = self.eyes[worker].ring.peek().copied() else { break };
            if let Some(before) = self.story.waits_for(&record)
                && self.order.holds(worker, before)
            {
                break;
            }
            self.order.goes_on(worker);
            // It is there.
            let _ = self.eyes[worker].ring.pop();
            left -= 1;
            self.story.hear(worker, &record);
            self.write(PORTION)?;
        }
        self.order.has_read(worker, left == 0);
        Ok(there >= self.eyes[worker].ring.buffer().capacity() / 2)
    }

    /// Writes the packets if they are more than so many bytes.
    fn write(&mut self, most: usize) -> io::Result<()> {
        if self.story.timeline.waiting() > most {
            self.story.timeline.write_to(&mut self.file)?;
        }
        Ok(())
    }
}
