//! A store in plain memory, for tests.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attune_values::page::{Page, PageInParts};
use attune_values::wire::{Import, Storage, Tunable, Type};

use crate::control::Control;
use crate::store::Store;

/// Clones are the same store.
#[derive(Clone, Debug)]
pub struct Memory {
    imports: Vec<Import>,
    slots: u32,
    /// The user who may take snapshots and set the tunable.
    owner: Option<u32>,
    tunable: Arc<AtomicI64>,
    inside: Arc<Mutex<BTreeMap<u32, Slot>>>,
    names: Vec<String>,
    /// By table: imports and words.
    tables: Arc<Mutex<BTreeMap<u32, Columns>>>,
}

/// Imports, and the words in which they stand.
type Columns = Vec<(usize, u8)>;

#[derive(Debug)]
struct Slot {
    process: i32,
    page: Page,
    /// Import to word.
    words: BTreeMap<usize, u8>,
    /// Thread to row.
    rows: BTreeMap<i32, u16>,
}

impl Memory {
    pub fn new(imports: &[(&str, i64)], slots: u32) -> Memory {
        let import = |(name, default): &(&str, i64)| Import {
            name: (*name).to_owned(),
            default: *default,
            by_loader: false,
        };
        let names = imports.iter().map(|(name, _)| (*name).to_owned()).collect();
        let imports = imports.iter().map(import).collect();
        Memory {
            names,
            tables: Arc::default(),
            imports,
            slots,
            owner: None,
            tunable: Arc::new(AtomicI64::new(7)),
            inside: Arc::default(),
        }
    }

    /// The same, and only root and the owner may supply the import.
    pub fn by_loader(mut self, name: &str) -> Memory {
        let named = self.imports.iter_mut().filter(|import| import.name == name);
        named.for_each(|import| import.by_loader = true);
        self
    }

    /// The same with one tunable, `level`, a number.
    pub fn owned_by(self, user: u32) -> Memory {
        Memory { owner: Some(user), ..self }
    }

    /// The thread's value as an engine reads it: its own, else its process's, else the default.
    pub fn value(&self, process: i32, thread: i32, name: &str) -> Option<i64> {
        let import = self.imports.iter().position(|import| import.name == name)?;
        let supplied = self.read(process, |slot| {
            let word = usize::from(*slot.words.get(&import)?);
            let row = slot.rows.get(&thread).copied().map(usize::from);
            row.and_then(|row| slot.page.row(row).get(word)).or_else(|| slot.page.row(0).get(word))
        });
        Some(supplied.unwrap_or(self.imports[import].default))
    }

    /// Stores where the thread's own value lies, as a scheduler does that assigns to an import.
    pub fn assign(&self, process: i32, thread: i32, name: &str, value: i64) -> bool {
        let import = self.imports.iter().position(|import| import.name == name);
        self.read(process, |slot| {
            let word = usize::from(*slot.words.get(&import?)?);
            let row = slot.page.row(usize::from(*slot.rows.get(&thread)?));
            row.set(word, Some(value));
            Some(())
        })
        .is_some()
    }

    /// Threads of the process that have a row.
    pub fn threads(&self, process: i32) -> Vec<i32> {
        self.read(process, |slot| Some(slot.rows.keys().copied().collect())).unwrap_or_default()
    }

    /// The imports that tables supply now, with the words that they stand in.
    pub fn tabled(&self) -> Vec<(String, u8)> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = tables.values().flatten();
        columns.map(|&(import, word)| (self.names[import].clone(), word)).collect()
    }

    /// What a kernel does when the process executes a set-uid program.
    pub fn gains_rights(&self, process: i32) {
        self.lock().retain(|_, slot| slot.process != process);
    }

    /// Processes that have a page.
    pub fn processes(&self) -> Vec<i32> {
        self.lock().values().map(|slot| slot.process).collect()
    }

    fn read<T>(&self, process: i32, read: impl FnOnce(&Slot) -> Option<T>) -> Option<T> {
        self.lock().values().find(|slot| slot.process == process).and_then(read)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Slot>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, slot: u32, change: impl FnOnce(&mut Slot)) -> io::Result<()> {
        self.lock().get_mut(&slot).map(change).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Store for Memory {
    fn scheduler(&self) -> &str {
        "memory"
    }

    fn imports(&self) -> &[Import] {
        &self.imports
    }

    fn control(&mut self) -> Option<&mut dyn Control> {
        self.owner.is_some().then_some(self as &mut dyn Control)
    }

    fn slots(&self) -> u32 {
        self.slots
    }

    fn open(&mut self, slot: u32, process: i32, page: &mut PageInParts) -> io::Result<()> {
        let page = Page::of(page.memory())?;
        self.lock()
            .insert(slot, Slot { process, page, words: BTreeMap::new(), rows: BTreeMap::new() });
        Ok(())
    }

    fn reads(&self, slot: u32, process: i32) -> bool {
        self.lock().get(&slot).is_some_and(|slot| slot.process == process)
    }

    fn declare(&mut self, slot: u32, import: usize, word: Option<u8>) -> io::Result<()> {
        self.change(slot, |slot| {
            match word {
                Some(word) => slot.words.insert(import, word),
                None => slot.words.remove(&import),
            };
        })
    }

    fn bind(
        &mut self,
        slot: u32,
        _page: &mut PageInParts,
        row: u16,
        process: i32,
        thread: i32,
    ) -> io::Result<()> {
        if !std::path::Path::new(&format!("/proc/{process}/task/{thread}")).exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(slot, |slot| {
            slot.rows.insert(thread, row);
        })
    }

    fn unbind(&mut self, slot: u32, _process: i32, thread: i32) {
        // Gone already, if not.
        let _ = self.change(slot, |slot| {
            slot.rows.remove(&thread);
        });
    }

    fn close(&mut self, slot: u32, _process: i32) {
        self.lock().remove(&slot);
    }

    fn table_imports(&self) -> &[String] {
        &self.names
    }

    fn open_table(&mut self, table: u32, _: OwnedFd, columns: &[(usize, u8)]) -> io::Result<()> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.insert(table, columns.to_vec());
        Ok(())
    }

    fn close_table(&mut self, table: u32) {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).remove(&table);
    }
}

impl Control for Memory {
    fn owner(&self) -> u32 {
        self.owner.unwrap_or(0)
    }

    fn tunables(&self) -> Vec<Tunable> {
        vec![Tunable {
            scheduler: self.scheduler().to_owned(),
            role: None,
            name: "level".to_owned(),
            storage: Storage::Tunable,
            ty: Type::Int,
            value: self.tunable.load(Ordering::Relaxed),
        }]
    }

    fn set(&mut self, settings: &[(String, String)]) -> Result<(), String> {
        let parse = |(name, value): &(String, String)| match value.parse() {
            Ok(value) if name == "level" => Ok(value),
            _ => Err(format!("{name} cannot be {value}")),
        };
        let values = settings.iter().map(parse).collect::<Result<Vec<i64>, String>>()?;
        values.into_iter().for_each(|value| self.tunable.store(value, Ordering::Relaxed));
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(&self.tunable.load(Ordering::Relaxed)).map_err(|error| error.to_string())
    }
}
