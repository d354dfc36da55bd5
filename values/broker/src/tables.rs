//! Which tables by process an engine reads, and which import stands in which of them.
//!
//! Invariant: an import stands in one table at most, and a table belongs to one living connection.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use attune_values::table::{TABLES, WORDS};
use attune_values::wire::Refusal;

use crate::refused::{Answer, Refused};
use crate::store::Store;

/// The imports of each table, by the table's number.
#[derive(Default)]
pub struct Tables(BTreeMap<u32, Vec<usize>>);

impl Tables {
    /// A table whose words stand for these imports. Its number, and the imports that the scheduler
    /// has.
    pub fn open(
        &mut self,
        store: &mut impl Store,
        map: OwnedFd,
        columns: &[Option<String>],
    ) -> Answer<(u32, Vec<String>)> {
        if columns.len() > WORDS {
            let message = format!("a table has {WORDS} columns at most, not {}", columns.len());
            return Err(Refused::new(Refusal::Garbled, message));
        }
        let mut found: Vec<(usize, u8)> = Vec::new();
        let mut names = Vec::new();
        for (word, name) in columns.iter().enumerate() {
            let Some(name) = name else { continue };
            let imports = store.table_imports();
            let Some(import) = imports.iter().position(|import| import == name) else { continue };
            if found.iter().any(|(known, _)| *known == import) {
                let message = format!("two columns are called {name}");
                return Err(Refused::new(Refusal::Garbled, message));
            }
            if self.0.values().flatten().any(|taken| *taken == import) {
                let message = format!("another program supplies {name} already: end it first");
                return Err(Refused::new(Refusal::Taken, message));
            }
            found.push((import, word as u8));
            names.push(name.clone());
        }
        let free = (0..TABLES as u32).find(|table| !self.0.contains_key(table));
        let table = free.ok_or_else(|| {
            Refused::new(Refusal::Full, format!("{TABLES} tables are read already: end a program"))
        })?;
        store.open_table(table, map, &found).map_err(|error| {
            let message = format!("the engine cannot read this table: {error}");
            Refused::new(Refusal::Unable, message)
        })?;
        self.0.insert(table, found.into_iter().map(|(import, _)| import).collect());
        Ok((table, names))
    }

    pub fn close(&mut self, store: &mut impl Store, table: u32) {
        if self.0.remove(&table).is_some() {
            store.close_table(table);
        }
    }
}
