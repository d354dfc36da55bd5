//! A trace of what the program's threads do, which Perfetto opens: from the program's start where
//! `ATTUNE_TRACE` names a file, or from one call to another.
//!
//! Each worker writes short records into a ring of its own ([`recorder`]), from which an OS thread
//! of the library's ([`writer`]) makes a timeline ([`story`]) in the file. A worker never waits for
//! that: where the ring is full, records are lost, and the trace says when and how many.
//!
//! Invariant: a process writes at most one trace, and a forked child none.

pub mod record;
pub mod recorder;
mod story;
mod words;
mod writer;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use attune_timeline::Clocks;

use crate::clock;
use crate::errno::{Errno, Result, check};
use crate::load::{self, Loaded};
use crate::report;
use recorder::{Eye, Pen};
use story::Story;
use writer::{Order, Writer, Writing};

/// How long a process that ends waits for its trace.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The process that writes a trace, so that a forked child does not take it for its own.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static STATE: Mutex<State> = Mutex::new(State { writing: None, changes: false });

struct State {
    writing: Option<Arc<Writing>>,
    /// A thread begins or ends a trace.
    changes: bool,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins the trace that the environment asks for: a pen for each worker. A file that cannot be
/// written is told, and the program runs without a trace.
pub fn from_environment(workers: usize, loaded: Loaded) -> Vec<Pen> {
    let Some(path) = load::trace() else { return Vec::new() };
    let begun = open(&path).and_then(|file| begin(file, &path, workers, loaded));
    begun.unwrap_or_else(|Errno(errno)| {
        let why = match errno {
            libc::EBUSY => "another process writes its trace there".to_owned(),
            libc::ENXIO => "no program reads from that pipe".to_owned(),
            _ => io::Error::from_raw_os_error(errno).to_string(),
        };
        let path = path.display();
        report::note(&format!("ATTUNE_TRACE={path}: {why}; the program runs without a trace"));
        Vec::new()
    })
}

/// The right to begin or to end a trace.
pub struct Change(());

impl Change {
    /// EALREADY: another thread has it.
    pub fn take() -> Result<Change> {
        if std::mem::replace(&mut state().changes, true) {
            return Err(Errno(libc::EALREADY));
        }
        Ok(Change(()))
    }

    /// A pen for each worker. EALREADY: a trace is being written; EBUSY: by another process, to the
    /// same file; those of open(2).
    pub fn begin(&self, path: &Path, workers: usize, loaded: Loaded) -> Result<Vec<Pen>> {
        if state().writing.as_ref().is_some_and(|writing| writing.outcome().is_none()) {
            return Err(Errno(libc::EALREADY));
        }
        begin(open(path)?, path, workers, loaded)
    }

    /// EALREADY: there is no trace to end.
    pub fn may_end(&self) -> Result<()> {
        state().writing.as_ref().map(|_| ()).ok_or(Errno(libc::EALREADY))
    }

    /// What came of the trace, once all of it is written: workers have put down their pens. The
    /// error is that of the write that failed.
    pub fn outcome(&self) -> Option<Result<()>> {
        let mut state = state();
        let outcome = state.writing.as_ref()?.outcome()?;
        state.writing = None;
        Some(outcome.map_err(Errno))
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        state().changes = false;
    }
}

fn begin(file: File, path: &Path, workers: usize, loaded: Loaded) -> Result<Vec<Pen>> {
    static AT_EXIT: Once = Once::new();
    let clocks = Clocks {
        monotonic: clock::now(),
        boottime: clock::read(libc::CLOCK_BOOTTIME),
        realtime: clock::read(libc::CLOCK_REALTIME),
    };
    let story = Story::new(clocks, &report::program(), loaded, workers);
    let (pens, eyes): (Vec<Pen>, Vec<Eye>) = (0..workers).map(|_| recorder::ring()).unzip();
    let order = Order::new(eyes.len());
    let writer = Writer { file, path: path.to_owned(), story, eyes, order };
    state().writing = Some(writer.start().map_err(|_| Errno(libc::EAGAIN))?);
    PROCESS.store(std::process::id(), Relaxed);
    report::at_the_end(finish);
    // SAFETY: the function may be called whenever the process ends.
    AT_EXIT.call_once(|| unsafe {
        libc::atexit(finish);
    });
    Ok(pens)
}

/// Opens the file for this process alone, and empties it.
fn open(path: &Path) -> Result<File> {
    let errno = |error: io::Error| Errno(error.raw_os_error().unwrap_or(libc::EIO));
    let mut options = OpenOptions::new();
    // A pipe without a reader would stop all threads.
    options.write(true).create(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(errno)?;
    // The writer may wait for a reader.
    // SAFETY: a plain system call.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) })?;
    // A program that this one starts may have the same environment. Where a file system knows no
    // locks, it is not noticed.
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(Errno(libc::EBUSY));
    }
    if file.metadata().map_err(errno)?.is_file() {
        file.set_len(0).map_err(errno)?;
    }
    Ok(file)
}

/// Writes the rest of the trace, if there is one: the process ends.
extern "C" fn finish() {
    // In a forked child the lock may be taken for ever.
    if PROCESS.load(Relaxed) != std::process::id() {
        return;
    }
    let writing = state().writing.clone();
    if let Some(writing) = writing {
        writing.finish();
        if !writing.wait(LAST_WORDS) {
            report::note("the trace lacks its end: its file takes no more");
        }
    }
}
