//! Takes what other processes say to a scheduler in the kernel: values, kept where `bpf/values.h`
//! reads them; and what its owner and root set and ask.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

use crate::loaded::Loaded;
use crate::program_call;
use crate::tables::{self, Tables};
use attune_broker::{Control, Store};
use attune_linux::process::Process;
use attune_values::page::PageInParts;
use attune_values::wire::{Import, Tunable};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// As in values.h.
const PAGES: u32 = 16384;
const UNBOUND: u32 = 1;
const ALL: i32 = 0;

/// A running scheduler, to other processes. When it ends first, nothing that they say has any
/// effect.
pub struct Values {
    scheduler: String,
    owner: u32,
    imports: Vec<Import>,
    /// A scheduler without imports has none.
    maps: Option<Maps>,
    /// A scheduler without imports has none of these either.
    tables: Option<Tables>,
    loaded: Arc<Loaded>,
    told: Option<Told>,
}

/// Hears what was set.
type Told = Box<dyn FnMut(&[(String, String)]) + Send>;

struct Maps {
    words: MapHandle,
    suppliers: MapHandle,
    shared: MapHandle,
    own: MapHandle,
    bind: OwnedFd,
}

impl Values {
    /// `owner`: the user whose run it is. `trust`: every user's programs supply what the owner's
    /// do.
    pub(crate) fn new(loaded: Arc<Loaded>, owner: u32, trust: bool) -> libbpf_rs::Result<Values> {
        let mut imports = loaded.image.description.thread_imports.clone();
        imports.iter_mut().for_each(|import| import.by_loader &= !trust);
        let maps = if imports.is_empty() { None } else { Some(Maps::new(&loaded.object)?) };
        let tables = match loaded.image.description.table_imports.len() {
            0 => None,
            imports => {
                let map = |name| map(&loaded.object, name);
                Some(Tables::new(map("attune_tables")?, map("attune_columns")?, imports))
            }
        };
        let scheduler = loaded.image.scheduler();
        Ok(Values { scheduler, owner, imports, maps, tables, loaded, told: None })
    }

    /// `told` hears each setting that a process has made.
    pub fn when_set(self, told: impl FnMut(&[(String, String)]) + Send + 'static) -> Values {
        Values { told: Some(Box::new(told)), ..self }
    }

    fn maps(&mut self) -> io::Result<&mut Maps> {
        self.maps.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn lacks(what: &str) -> libbpf_rs::Error {
    io::Error::other(format!("the object lacks {what}")).into()
}

fn map(object: &libbpf_rs::Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    match object.maps().find(|map| map.name() == name) {
        Some(map) => MapHandle::try_from(&map),
        None => Err(lacks(name)),
    }
}

impl Maps {
    fn new(object: &libbpf_rs::Object) -> libbpf_rs::Result<Maps> {
        let map = |name| map(object, name);
        let bind = object.progs().find(|program| program.name() == "attune_bind");
        Ok(Maps {
            words: map("attune_words")?,
            suppliers: map("attune_suppliers")?,
            shared: map("attune_shared_rows")?,
            own: map("attune_own_rows")?,
            bind: bind.ok_or_else(|| lacks("attune_bind"))?.as_fd().try_clone_to_owned()?,
        })
    }

    /// Says whose values the thread has; 0: all threads of the process. Those that begin meanwhile
    /// find it by themselves. `NotFound`: the process has no such thread, or the engine no record
    /// of it.
    fn assign(&self, process: i32, thread: i32, bound: u32) -> io::Result<()> {
        #[repr(C)]
        struct Binding {
            pid: i32,
            tgid: i32,
            bound: u32,
        }
        program_call::with(self.bind.as_fd(), Binding { pid: thread, tgid: process, bound })
    }

    fn open(&mut self, slot: u32, process: i32, page: &mut PageInParts) -> io::Result<()> {
        let first = Process::open(process as u32).map_err(ended)?;
        hold(&self.shared, &first, page, 0)?;
        let nothing = vec![0u8; self.words.value_size() as usize];
        self.words.update(&slot.to_ne_bytes(), &nothing, MapFlags::ANY).map_err(told)?;
        let bound = bound(slot, 0);
        self.suppliers
            .update(&process.to_ne_bytes(), &bound.to_ne_bytes(), MapFlags::ANY)
            .map_err(told)?;
        self.assign(process, ALL, bound)
    }

    fn bind(
        &self,
        slot: u32,
        page: &mut PageInParts,
        row: u16,
        process: i32,
        thread: i32,
    ) -> io::Result<()> {
        let it = Process::of_thread(thread as u32).map_err(ended)?;
        hold(&self.own, &it, page, row)?;
        // It is a thread of this process, or the row does not count.
        self.assign(process, thread, bound(slot, row)).inspect_err(|_| release(&self.own, &it))
    }

    fn unbind(&self, slot: u32, process: i32, thread: i32) {
        // It may have ended, and another thread may have its number.
        if self.assign(process, thread, bound(slot, 0)).is_ok()
            && let Ok(it) = Process::of_thread(thread as u32)
        {
            release(&self.own, &it);
        }
    }

    /// `attune_executes` of values.h takes a process away that has gained rights.
    fn reads(&self, slot: u32, process: i32) -> bool {
        let shared = self.suppliers.lookup(&process.to_ne_bytes(), MapFlags::ANY);
        shared.is_ok_and(|shared| shared.is_some_and(|it| it == bound(slot, 0).to_ne_bytes()))
    }

    fn declare(&mut self, slot: u32, import: usize, word: Option<u8>) -> io::Result<()> {
        let key = slot.to_ne_bytes();
        let mut words = self.words.lookup(&key, MapFlags::ANY).map_err(told)?.unwrap_or_default();
        *words.get_mut(import).ok_or(io::ErrorKind::NotFound)? = word.unwrap_or(0);
        self.words.update(&key, &words, MapFlags::ANY).map_err(told)
    }

    fn close(&mut self, process: i32) {
        // Each of these has happened already if it fails.
        let _ = self.suppliers.delete(&process.to_ne_bytes());
        let _ = self.assign(process, ALL, UNBOUND);
        if let Ok(first) = Process::open(process as u32) {
            release(&self.shared, &first);
        }
    }
}

/// A thread's row lies there from now on. The kernel holds that part of the page as long as the
/// thread is there.
fn hold(rows: &MapHandle, thread: &Process, page: &mut PageInParts, row: u16) -> io::Result<()> {
    let address = ptr::from_ref(page.row(row)?.word(0)) as u64;
    let thread = thread.as_fd().as_raw_fd().to_ne_bytes();
    rows.update(&thread, &address.to_ne_bytes(), MapFlags::ANY).map_err(told)
}

/// It lies there no more.
fn release(rows: &MapHandle, thread: &Process) {
    // There is none, then.
    let _ = rows.delete(&thread.as_fd().as_raw_fd().to_ne_bytes());
}

fn ended(_: io::Error) -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn told(error: libbpf_rs::Error) -> io::Error {
    io::Error::other(error)
}

/// `task.bound` of values.h.
fn bound(slot: u32, row: u16) -> u32 {
    (slot + 1) << 16 | u32::from(row)
}

impl Store for Values {
    fn scheduler(&self) -> &str {
        &self.scheduler
    }

    fn imports(&self) -> &[Import] {
        &self.imports
    }

    fn control(&mut self) -> Option<&mut dyn Control> {
        Some(self)
    }

    fn slots(&self) -> u32 {
        if self.maps.is_some() { PAGES } else { 0 }
    }

    fn open(&mut self, slot: u32, process: i32, page: &mut PageInParts) -> io::Result<()> {
        self.maps()?.open(slot, process, page)
    }

    fn reads(&self, slot: u32, process: i32) -> bool {
        self.maps.as_ref().is_some_and(|maps| maps.reads(slot, process))
    }

    fn declare(&mut self, slot: u32, import: usize, word: Option<u8>) -> io::Result<()> {
        self.maps()?.declare(slot, import, word)
    }

    fn bind(
        &mut self,
        slot: u32,
        page: &mut PageInParts,
        row: u16,
        process: i32,
        thread: i32,
    ) -> io::Result<()> {
        self.maps()?.bind(slot, page, row, process, thread)
    }

    fn unbind(&mut self, slot: u32, process: i32, thread: i32) {
        if let Ok(maps) = self.maps() {
            maps.unbind(slot, process, thread);
        }
    }

    fn close(&mut self, _slot: u32, process: i32) {
        if let Ok(maps) = self.maps() {
            maps.close(process);
        }
    }

    fn table_imports(&self) -> &[String] {
        &self.loaded.image.description.table_imports
    }

    fn open_table(&mut self, table: u32, map: OwnedFd, columns: &[(usize, u8)]) -> io::Result<()> {
        match &mut self.tables {
            Some(tables) => tables.open(table, map.as_fd(), columns),
            // There is nothing to read, but the writer learns now that its table is none.
            None => tables::check(map.as_fd()),
        }
    }

    fn close_table(&mut self, table: u32) {
        if let Some(tables) = &mut self.tables {
            tables.close(table);
        }
    }
}

impl Control for Values {
    fn owner(&self) -> u32 {
        self.owner
    }

    fn tunables(&self) -> Vec<Tunable> {
        self.loaded.tunables()
    }

    fn set(&mut self, settings: &[(String, String)]) -> Result<(), String> {
        self.loaded.set(settings).map_err(|error| error.to_string())?;
        if let Some(told) = &mut self.told {
            told(settings);
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Vec<u8>, String> {
        let snapshot = self.loaded.snapshot().map_err(|error| error.to_string())?;
        serde_json::to_vec(&snapshot).map_err(|error| error.to_string())
    }
}
