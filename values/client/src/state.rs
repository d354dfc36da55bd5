//! What this process supplies: names to words, threads to rows, and the engine that it reaches, if any.
//!
//! Invariant: the page stays at one address for the life of the process, whatever memory lies there; a word stands for one
//! name and is never used for another; a row belongs to one living thread.

use std::cell::UnsafeCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use attune_values::page::{Page, ROWS, WORDS};
use attune_values::wire::{NAME, Refusal, Request};

use crate::error::{Error, note};
use crate::link::{Answer, Link};
use crate::{fork, thread};

/// The engine's side takes words from the end; one is always left to it.
const OWN_WORDS: usize = WORDS - 2;
/// How often an engine is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub struct State {
    page: Page,
    /// Names in the order of their words, from word 1.
    names: Vec<String>,
    /// Row to thread.
    rows: BTreeMap<u16, i32>,
    /// Row and word of all values that are supplied.
    cells: BTreeSet<(u16, u8)>,
    link: Option<Link>,
    /// The user has been told that the engine has no page for us.
    told: bool,
    watched: bool,
}

impl State {
    fn new() -> io::Result<State> {
        Ok(State {
            page: Page::private()?,
            names: Vec::new(),
            rows: BTreeMap::new(),
            cells: BTreeSet::new(),
            link: None,
            told: false,
            watched: false,
        })
    }

    pub fn import(&mut self, thread: i32, name: &str) -> Result<&'static AtomicI64, Error> {
        if name.is_empty() || name.len() > NAME {
            return Err(Error::BadName);
        }
        self.start()?;
        let word = self.word(name)?;
        let row = self.row(thread)?;
        if self.cells.insert((row, word)) {
            let default = self.link.as_ref().and_then(|link| link.default_of(name)).unwrap_or(0);
            self.page.set(row.into(), word.into(), Some(default));
        }
        let value: *const AtomicI64 = self.page.word(row.into(), word.into());
        // SAFETY: the page is never unmapped: the state lives as long as the process, and other memory takes its place at
        // the same address.
        Ok(unsafe { &*value })
    }

    pub fn unregister(&mut self, name: &str) -> Result<(), Error> {
        let index = self.names.iter().position(|known| known == name);
        let word = index.map(|index| index as u8 + 1);
        let cells: Vec<_> = self.cells.iter().filter(|(_, own)| Some(*own) == word).copied().collect();
        if cells.is_empty() {
            return Err(Error::NotRegistered(name.to_owned()));
        }
        for (row, word) in cells {
            self.cells.remove(&(row, word));
            self.page.set(row.into(), word.into(), None);
        }
        Ok(())
    }

    /// The thread has ended, or supplies nothing any more.
    pub fn release(&mut self, thread: i32) {
        let Some(row) = self.rows.iter().find(|(_, own)| **own == thread).map(|(row, _)| *row) else {
            return;
        };
        self.rows.remove(&row);
        self.cells.retain(|(own, _)| *own != row);
        self.page.clear(row.into());
        self.ask(&Request::Unbind { row });
    }

    pub fn scheduler(&self) -> Option<String> {
        self.link.as_ref().map(|link| link.scheduler.clone())
    }

    /// The name's word. A name that the scheduler lacks gets one too where the user does not mind.
    fn word(&mut self, name: &str) -> Result<u8, Error> {
        if let Some(index) = self.names.iter().position(|known| known == name) {
            return Ok(index as u8 + 1);
        }
        if self.names.len() >= OWN_WORDS {
            return Err(Error::Full(format!("a process supplies at most {OWN_WORDS} imports")));
        }
        let word = self.names.len() as u8 + 1;
        if let Some(Answer::Refused(why, message)) =
            self.ask(&Request::Declare { word, name: name.to_owned() })
        {
            refused(why, message, name)?;
        }
        self.names.push(name.to_owned());
        Ok(word)
    }

    fn row(&mut self, thread: i32) -> Result<u16, Error> {
        if let Some((row, _)) = self.rows.iter().find(|(_, own)| **own == thread) {
            return Ok(*row);
        }
        if !thread::exists(thread) {
            return Err(Error::NoSuchThread(thread));
        }
        let row = match self.free_row() {
            Some(row) => row,
            None => {
                let gone: Vec<i32> =
                    self.rows.values().filter(|own| !thread::exists(**own)).copied().collect();
                gone.into_iter().for_each(|thread| self.release(thread));
                let full = || Error::Full(format!("at most {} threads of a process have values", ROWS - 1));
                self.free_row().ok_or_else(full)?
            }
        };
        if let Some(Answer::Refused(why, message)) = self.ask(&Request::Bind { row, thread }) {
            refused(why, message, "")?;
        }
        self.rows.insert(row, thread);
        if thread == thread::current() {
            thread::watch_end();
        }
        Ok(row)
    }

    fn free_row(&self) -> Option<u16> {
        (1..ROWS as u16).find(|row| !self.rows.contains_key(row))
    }

    /// None where there is no engine, or none any more.
    fn ask(&mut self, request: &Request) -> Option<Answer> {
        match self.link.as_ref()?.ask(request) {
            Ok(answer) => Some(answer),
            Err(_) => {
                self.link = None;
                None
            }
        }
    }

    /// Whether a scheduler is there that has all these thread imports. Connects to it then, and otherwise starts nothing.
    pub fn wanted(&mut self, names: &[&str]) -> Result<bool, Error> {
        let has = |link: &Link| names.iter().all(|name| link.default_of(name).is_some());
        if self.watched {
            return Ok(self.link.as_ref().is_some_and(has));
        }
        let Some((link, memory)) = self.open() else { return Ok(false) };
        if !has(&link) {
            return Ok(false);
        }
        fork::prepare()?;
        self.adopt(link, &memory);
        self.watch()?;
        Ok(true)
    }

    /// Looks for an engine, and has somebody look on.
    fn start(&mut self) -> Result<(), Error> {
        if self.watched {
            return Ok(());
        }
        fork::prepare()?;
        self.connect();
        self.watch()
    }

    fn watch(&mut self) -> Result<(), Error> {
        let builder = std::thread::Builder::new().name("attune-values".to_owned()).stack_size(64 << 10);
        without_signals(|| builder.spawn(watch))?;
        self.watched = true;
        Ok(())
    }

    fn connect(&mut self) {
        if let Some((link, memory)) = self.open() {
            self.adopt(link, &memory);
        }
    }

    /// An engine with a page for us. One that has none left is told of, once.
    fn open(&mut self) -> Option<(Link, OwnedFd)> {
        let opened = Link::open();
        match &opened {
            Err(Error::Full(why)) if !self.told => {
                note(&format!("the scheduler does not hear this process: {why}"));
            }
            _ => {}
        }
        self.told = matches!(opened, Err(Error::Full(_)));
        opened.ok()
    }

    /// Tells an engine all that we supply.
    fn adopt(&mut self, link: Link, memory: &OwnedFd) {
        if self.page.replace(memory.as_fd()).is_err() {
            return;
        }
        let names: Vec<(u8, String)> =
            self.names.iter().enumerate().map(|(i, name)| (i as u8 + 1, name.clone())).collect();
        let rows: Vec<(u16, i32)> = self.rows.iter().map(|(row, thread)| (*row, *thread)).collect();
        let defaults: Vec<Option<i64>> = names.iter().map(|(_, name)| link.default_of(name)).collect();
        self.link = Some(link);
        for (word, name) in names {
            if let Some(Answer::Refused(why, message)) =
                self.ask(&Request::Declare { word, name: name.clone() })
            {
                // Who has the storage already cannot be told otherwise.
                if let Err(error) = refused(why, message, &name) {
                    note(&error.to_string());
                }
            }
        }
        for (row, thread) in rows {
            self.ask(&Request::Bind { row, thread });
        }
        // What was never stored to has the scheduler's default; and all of it is there to be read.
        for &(row, word) in &self.cells {
            let cell = self.page.word(row.into(), word.into());
            if let Some(default) = defaults.get(word as usize - 1).copied().flatten() {
                let _ = cell.compare_exchange(0, default, Ordering::Relaxed, Ordering::Relaxed);
            }
            self.page.set(row.into(), word.into(), Some(cell.load(Ordering::Relaxed)));
        }
    }

    /// In a child: its only thread keeps its values, and nobody shares them.
    pub fn forked(&mut self, forker: i32) {
        self.link = None;
        self.watched = false;
        // Without memory of its own the child would write into its parent's; better nothing than that.
        if self.page.withdraw().is_err() {
            std::process::abort();
        }
        let me = thread::current();
        let theirs: Vec<u16> =
            self.rows.iter().filter(|(_, own)| **own != forker).map(|(row, _)| *row).collect();
        for row in theirs {
            self.rows.remove(&row);
            self.cells.retain(|(own, _)| *own != row);
            self.page.clear(row.into());
        }
        self.rows.values_mut().for_each(|own| *own = me);
    }
}

/// What the user wants done about a name that the scheduler lacks: `ATTUNE_UNKNOWN_IMPORTS`, as for user-level threads.
fn refused(why: Refusal, message: String, name: &str) -> Result<(), Error> {
    match why {
        Refusal::UnknownImport => match std::env::var("ATTUNE_UNKNOWN_IMPORTS").as_deref() {
            Ok("ignore") => Ok(()),
            Ok("warn") => {
                note(&message);
                Ok(())
            }
            _ => {
                note(&format!("{message} (ATTUNE_UNKNOWN_IMPORTS=ignore if that does not matter)"));
                Err(Error::UnknownImport(name.to_owned()))
            }
        },
        _ => Err(Error::Full(message)),
    }
}

/// Waits for the engine's end, and for an engine.
fn watch() {
    loop {
        let fd = match with(|state| Ok(state.link.as_ref().map(|link| link.as_raw_fd()))) {
            Ok(Some(fd)) => fd,
            _ => {
                std::thread::sleep(LOOK_AGAIN);
                let _ = with(|state| {
                    if state.link.is_none() {
                        state.connect();
                    }
                    Ok(())
                });
                continue;
            }
        };
        // Only its end: answers belong to whoever asked. Looked at again each second, since the number may be another's by then.
        let mut wait = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: one pollfd.
        unsafe { libc::poll(&mut wait, 1, LOOK_AGAIN.as_millis() as i32) };
        if wait.revents != 0 {
            let _ = with(|state| {
                if state.link.as_ref().is_some_and(|link| link.as_raw_fd() == fd) {
                    state.link = None;
                }
                Ok(())
            });
        }
    }
}

/// The one state of the process, and its lock, which is held over a fork.
struct Global {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    state: UnsafeCell<Option<State>>,
}

// SAFETY: the state is only reached under the lock.
unsafe impl Sync for Global {}

static GLOBAL: Global =
    Global { lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), state: UnsafeCell::new(None) };

/// Runs `job` with the state to itself.
pub fn with<T>(job: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
    struct Held;
    impl Drop for Held {
        fn drop(&mut self) {
            unlock();
        }
    }
    lock();
    let _held = Held;
    // SAFETY: the lock is held, by this thread alone, until `_held` is dropped.
    let state = unsafe { &mut *GLOBAL.state.get() };
    if state.is_none() {
        *state = Some(State::new()?);
    }
    match state {
        Some(state) => job(state),
        None => Err(io::Error::from(io::ErrorKind::OutOfMemory).into()),
    }
}

pub fn lock() {
    // SAFETY: a mutex that is initialised, and never destroyed.
    unsafe { libc::pthread_mutex_lock(GLOBAL.lock.get()) };
}

pub fn unlock() {
    // SAFETY: held by this thread.
    unsafe { libc::pthread_mutex_unlock(GLOBAL.lock.get()) };
}

/// The state, for whoever holds the lock.
///
/// # Safety
/// The caller holds the lock.
pub unsafe fn locked() -> Option<&'static mut State> {
    // SAFETY: the caller's promise.
    unsafe { (*GLOBAL.state.get()).as_mut() }
}

/// What `start` starts has all signals blocked: signals of the program are for its own threads, and one that it has blocked everywhere, to
/// read it from a signalfd, must not find a thread of ours that has not.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are plain data, filled before they are read.
    unsafe {
        let (mut all, mut own): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut own);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &own, std::ptr::null_mut());
        started
    }
}
