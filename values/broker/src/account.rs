//! One process's page: its words and rows, and what the engine's store is told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::BorrowedFd;

use attune_linux::process::{self, Process};
use attune_linux::procfs;
use attune_values::page::{PageInParts, WORDS, unshared};
use attune_values::wire::Refusal;

use crate::refused::{Answer, Refused};
use crate::rows::Rows;
use crate::store::Store;

/// The page of one process.
pub struct Account {
    pub slot: u32,
    pub user: u32,
    pub process: Process,
    /// When it started, in clock ticks since boot; None: the kernel does not say.
    pub start: Option<u64>,
    page: PageInParts,
    /// Import to word.
    words: BTreeMap<usize, u8>,
    rows: Rows,
    /// The words and rows that the process itself named. The others hold hints.
    own_words: BTreeSet<u8>,
    own_rows: BTreeSet<u16>,
    /// The process itself supplies values.
    pub own: bool,
    /// Another process gave hints.
    pub hinted: bool,
}

fn unable(error: io::Error) -> Refused {
    Refused::new(Refusal::Full, format!("no page can be had: {error}"))
}

impl Account {
    /// A fresh page in the store's slot, for a process that lives.
    pub fn open(
        store: &mut impl Store,
        slot: u32,
        number: i32,
        user: u32,
        process: Process,
    ) -> Answer<Account> {
        let mut page = PageInParts::of(unshared().map_err(unable)?);
        store.open(slot, number, &mut page).map_err(unable)?;
        Ok(Account {
            slot,
            user,
            process,
            start: procfs::start_time(number as u32),
            page,
            words: BTreeMap::new(),
            rows: Rows::default(),
            own_words: BTreeSet::new(),
            own_rows: BTreeSet::new(),
            own: false,
            hinted: false,
        })
    }

    /// The process has ended, or supplies nothing any more.
    pub fn close(mut self, store: &mut impl Store, process: i32) {
        for row in self.rows.taken().collect::<Vec<_>>() {
            self.unbind(store, process, row);
        }
        store.close(self.slot, process);
    }

    /// The memory of its values.
    pub fn page(&self) -> BorrowedFd<'_> {
        self.page.memory()
    }

    /// How many words and rows the process itself has named.
    pub fn named(&self) -> (usize, usize) {
        (self.own_words.len(), self.own_rows.len())
    }

    /// A word that the process itself names.
    pub fn declare_own(&mut self, store: &mut impl Store, import: usize, word: u8) -> Answer<()> {
        self.declare(store, import, word)?;
        self.own_words.insert(word);
        Ok(())
    }

    /// A row that the process itself names.
    pub fn bind_own(
        &mut self,
        store: &mut impl Store,
        process: i32,
        row: u16,
        thread: i32,
    ) -> Answer<()> {
        self.bind(store, process, row, thread)?;
        self.own_rows.insert(row);
        Ok(())
    }

    pub fn unbind_own(&mut self, store: &mut impl Store, process: i32, row: u16) {
        self.own_rows.remove(&row);
        self.unbind(store, process, row);
    }

    /// Takes back all that the process itself named.
    pub fn forget_own(&mut self, store: &mut impl Store, process: i32) {
        self.own = false;
        for row in std::mem::take(&mut self.own_rows) {
            self.unbind(store, process, row);
        }
        for word in std::mem::take(&mut self.own_words) {
            self.withdraw(store, word);
        }
    }

    fn declare(&mut self, store: &mut impl Store, import: usize, word: u8) -> Answer<()> {
        // The word's earlier import is supplied no more.
        if self.words.get(&import) != Some(&word) {
            self.withdraw(store, word);
        }
        store.declare(self.slot, import, Some(word)).map_err(unable)?;
        self.words.insert(import, word);
        Ok(())
    }

    /// Clears the word in all rows.
    fn withdraw(&mut self, store: &mut impl Store, word: u8) {
        let imports: Vec<usize> = self
            .words
            .iter()
            .filter(|(_, taken)| **taken == word)
            .map(|(import, _)| *import)
            .collect();
        for import in imports {
            self.words.remove(&import);
            // Should it fail, the word's values are gone all the same.
            let _ = store.declare(self.slot, import, None);
        }
        for row in self.rows.taken().chain([0]) {
            // Its memory is there already: a row is written where it is made.
            let _ = self.page.row(row).map(|row| row.set(word.into(), None));
        }
    }

    fn unbind(&mut self, store: &mut impl Store, process: i32, row: u16) {
        if let Some(thread) = self.rows.take_back(row) {
            store.unbind(self.slot, process, thread);
            // As above.
            let _ = self.page.row(row).map(|row| row.clear());
        }
    }

    fn bind(&mut self, store: &mut impl Store, process: i32, row: u16, thread: i32) -> Answer<()> {
        let bound = store.bind(self.slot, &mut self.page, row, process, thread);
        bound.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Refused::new(
                Refusal::NoSuchThread,
                format!("process {process} has no thread {thread}"),
            ),
            _ => unable(error),
        })?;
        if let Some(before) = self.rows.give(row, thread) {
            store.unbind(self.slot, process, before);
        }
        Ok(())
    }

    /// Another process's values for the row.
    pub fn hint(
        &mut self,
        store: &mut impl Store,
        row: u16,
        values: impl Iterator<Item = (usize, Option<i64>)>,
    ) -> Answer<()> {
        for (import, value) in values {
            let word = self.word_for(store, import)?;
            self.page.row(row).map_err(unable)?.set(word.into(), value);
        }
        Ok(())
    }

    /// The import's word; a new one is taken from the end, since processes take theirs from the
    /// start.
    fn word_for(&mut self, store: &mut impl Store, import: usize) -> Answer<u8> {
        if let Some(word) = self.words.get(&import) {
            return Ok(*word);
        }
        let free =
            (1..WORDS as u8).rev().find(|word| !self.words.values().any(|taken| taken == word));
        let word =
            free.ok_or_else(|| Refused::new(Refusal::Full, "all words of its page are taken"))?;
        self.declare(store, import, word)?;
        Ok(word)
    }

    /// The thread's row; a new one is taken from the end.
    pub fn row_for(&mut self, store: &mut impl Store, process: i32, thread: i32) -> Answer<u16> {
        if let Some(row) = self.rows.of(thread) {
            return Ok(row);
        }
        for row in self.rows.ended(|thread| !process::has_thread(process as u32, thread as u32)) {
            self.own_rows.remove(&row);
            self.unbind(store, process, row);
        }
        let row = self.rows.free();
        let row =
            row.ok_or_else(|| Refused::new(Refusal::Full, "all rows of its page are taken"))?;
        // Whatever the process has written there.
        self.page.row(row).map_err(unable)?.clear();
        self.bind(store, process, row, thread)?;
        Ok(row)
    }
}
