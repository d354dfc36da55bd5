//! What an engine must offer for values to reach it.

use std::io;
use std::os::fd::OwnedFd;

use attune_values::page::PageInParts;
use attune_values::wire::Import;

use crate::control::Control;

/// Where an engine keeps the pages of processes. Slots are numbers below [`Store::slots`]; a slot
/// holds one page at a time.
pub trait Store: Send {
    /// The scheduler's name.
    fn scheduler(&self) -> &str;

    /// Its thread imports.
    fn imports(&self) -> &[Import];

    /// The engine's answers to the user who runs it; None: it gives none.
    fn control(&mut self) -> Option<&mut dyn Control> {
        None
    }

    /// How many pages there can be; 0 for a scheduler without imports.
    fn slots(&self) -> u32;

    /// From now on the values of all threads of the process, present and future, lie in that
    /// page.
    fn open(&mut self, slot: u32, process: i32, page: &mut PageInParts) -> io::Result<()>;

    /// Whether the slot's page is still read. The engine gives one up whose process has gained
    /// rights by an exec.
    fn reads(&self, slot: u32, process: i32) -> bool;

    /// From now on that word of the slot's page stands for the import (an index into
    /// [`Store::imports`]); None: no word does.
    fn declare(&mut self, slot: u32, import: usize, word: Option<u8>) -> io::Result<()>;

    /// The row of the process's page holds the thread's own values. `NotFound` if the process has
    /// no such thread.
    fn bind(
        &mut self,
        slot: u32,
        page: &mut PageInParts,
        row: u16,
        process: i32,
        thread: i32,
    ) -> io::Result<()>;

    /// The thread has no row of its own any more. It may be gone.
    fn unbind(&mut self, slot: u32, process: i32, thread: i32);

    /// No one supplies values for the process any more.
    fn close(&mut self, slot: u32, process: i32);

    /// The thread imports that a table may supply; their indexes go into [`Store::open_table`].
    fn table_imports(&self) -> &[String] {
        &[]
    }

    /// Reads the table from now on: `columns` holds the imports with the words they stand in.
    /// Errors: `InvalidInput` for a descriptor that is no table of `attune_values::table`.
    fn open_table(
        &mut self,
        _table: u32,
        _map: OwnedFd,
        _columns: &[(usize, u8)],
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Its imports have their defaults again.
    fn close_table(&mut self, _table: u32) {}
}
