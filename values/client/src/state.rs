//! The values that this process supplies: names to words, threads to rows, and the engine that it
//! reaches, if any.
//!
//! Invariant: the page stays at one address for the life of the process, whatever memory lies
//! there; a word stands for one name and is never used for another; a row belongs to one living
//! thread.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicI64, Ordering};

use attune_linux::process;
use attune_values::page::{Page, ROWS, WORDS};
use attune_values::wire::{NAME, Refusal, Request};

use crate::error::{Error, note};
use crate::link::{Answer, Link};
use crate::rows::Rows;

/// The engine's side takes words from the end; one is always left to it.
const OWN_WORDS: usize = WORDS - 2;

pub struct State {
    page: Page,
    /// Names in the order of their words, from word 1.
    names: Vec<String>,
    rows: Rows,
    /// Row and word of all values that are supplied.
    cells: BTreeSet<(u16, u8)>,
    pub link: Option<Link>,
    /// The user has been told that the engine has no page for us.
    told: bool,
    /// A thread of ours looks for engines.
    pub watched: bool,
}

impl State {
    pub fn new() -> io::Result<State> {
        Ok(State {
            page: Page::private()?,
            names: Vec::new(),
            rows: Rows::default(),
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
        let word = self.word(name)?;
        let row = self.row(thread)?;
        if self.cells.insert((row, word)) {
            let default = self.link.as_ref().and_then(|link| link.default_of(name)).unwrap_or(0);
            self.page.row(row.into()).set(word.into(), Some(default));
        }
        let value: *const AtomicI64 = self.page.row(row.into()).word(word.into());
        // SAFETY: the page is never unmapped: the state lives as long as the process, and other
        // memory takes its place at the same address.
        Ok(unsafe { &*value })
    }

    pub fn unregister(&mut self, name: &str) -> Result<(), Error> {
        let index = self.names.iter().position(|known| known == name);
        let word = index.map(|index| index as u8 + 1);
        let cells: Vec<_> =
            self.cells.iter().filter(|(_, own)| Some(*own) == word).copied().collect();
        if cells.is_empty() {
            return Err(Error::NotRegistered(name.to_owned()));
        }
        for (row, word) in cells {
            self.cells.remove(&(row, word));
            self.page.row(row.into()).set(word.into(), None);
        }
        Ok(())
    }

    /// The thread has ended, or supplies nothing any more.
    pub fn release(&mut self, thread: i32) {
        let Some(row) = self.clear(thread) else { return };
        self.ask(&Request::Unbind { row });
    }

    /// The thread supplies nothing any more here; the row that it had.
    fn clear(&mut self, thread: i32) -> Option<u16> {
        let row = self.rows.take(thread)?;
        let cells: Vec<_> = self.cells.range((row, 0)..=(row, u8::MAX)).copied().collect();
        for cell in cells {
            self.cells.remove(&cell);
        }
        self.page.row(row.into()).clear();
        Some(row)
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
        if let Some(row) = self.rows.of(thread) {
            return Ok(row);
        }
        if !process::has_thread(std::process::id(), thread as u32) {
            return Err(Error::NoSuchThread(thread));
        }
        let row = match self.rows.free() {
            Some(row) => row,
            None => {
                let threads = self.rows.all().map(|(_, thread)| thread);
                let gone: Vec<i32> = threads
                    .filter(|own| !process::has_thread(std::process::id(), *own as u32))
                    .collect();
                gone.into_iter().for_each(|thread| self.release(thread));
                let full = || {
                    Error::Full(format!("at most {} threads of a process have values", ROWS - 1))
                };
                self.rows.free().ok_or_else(full)?
            }
        };
        if let Some(Answer::Refused(why, message)) = self.ask(&Request::Bind { row, thread }) {
            refused(why, message, "")?;
        }
        self.rows.give(row, thread);
        Ok(row)
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

    /// Whether the engine that we reach has all these thread imports.
    pub fn is_offered(&self, names: &[&str]) -> bool {
        self.link.as_ref().is_some_and(|link| offers(link, names))
    }

    /// Connects to an engine that has all these thread imports, after `prepare`; false: there is
    /// none.
    pub fn connect_if_offered(
        &mut self,
        names: &[&str],
        prepare: impl FnOnce() -> io::Result<()>,
    ) -> Result<bool, Error> {
        let Some((link, memory)) = self.open() else { return Ok(false) };
        if !offers(&link, names) {
            return Ok(false);
        }
        prepare()?;
        self.adopt(link, &memory);
        Ok(true)
    }

    /// Connects to the engine, if there is one.
    pub fn connect(&mut self) {
        if let Some((link, memory)) = self.open() {
            self.adopt(link, &memory);
        }
    }

    /// An engine with a page for us. If it has none left, the user is told so once.
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
        let rows: Vec<(u16, i32)> = self.rows.all().collect();
        let defaults: Vec<Option<i64>> =
            names.iter().map(|(_, name)| link.default_of(name)).collect();
        self.link = Some(link);
        for (word, name) in names {
            if let Some(Answer::Refused(why, message)) =
                self.ask(&Request::Declare { word, name: name.clone() })
            {
                // The caller already holds the pointer, so the error is only printed.
                if let Err(error) = refused(why, message, &name) {
                    note(&error.to_string());
                }
            }
        }
        for (row, thread) in rows {
            self.ask(&Request::Bind { row, thread });
        }
        // A value that was never stored becomes the scheduler's default. All values are supplied.
        for &(row, word) in &self.cells {
            let cell = self.page.row(row.into()).word(word.into());
            if let Some(default) = defaults.get(word as usize - 1).copied().flatten() {
                let _ = cell.compare_exchange(0, default, Ordering::Relaxed, Ordering::Relaxed);
            }
            self.page.row(row.into()).set(word.into(), Some(cell.load(Ordering::Relaxed)));
        }
    }

    /// In a child of fork: its only thread keeps its values, and shares them with no engine.
    pub fn forked(&mut self, forker: i32) {
        self.link = None;
        self.watched = false;
        // Without memory of its own the child would write into its parent's page.
        if self.page.withdraw().is_err() {
            std::process::abort();
        }
        let me = process::this_thread() as i32;
        let threads = self.rows.all().map(|(_, thread)| thread);
        let theirs: Vec<i32> = threads.filter(|thread| *thread != forker).collect();
        for thread in theirs {
            self.clear(thread);
        }
        self.rows.rename(forker, me);
    }
}

fn offers(link: &Link, names: &[&str]) -> bool {
    names.iter().all(|name| link.default_of(name).is_some())
}

/// What the user wants done about a name that the scheduler lacks: `ATTUNE_UNKNOWN_IMPORTS`, as for
/// user-level threads.
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
