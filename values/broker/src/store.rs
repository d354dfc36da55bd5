//! What an engine must offer for values to reach it.

use std::io;
use std::os::fd::OwnedFd;

use attune_values::wire::Import;

use crate::control::Control;

/// Where an engine keeps the pages of processes. Slots are numbers below [`Store::slots`]; a slot holds one page at a time.
pub trait Store: Send {
    /// The scheduler's name.
    fn scheduler(&self) -> &str;

    /// Its thread imports.
    fn imports(&self) -> &[Import];

    /// Who answers for the engine to whoever runs it; None: nobody.
    fn control(&mut self) -> Option<&mut dyn Control> {
        None
    }

    /// How many pages there can be. None for a scheduler without imports.
    fn slots(&self) -> u32;

    /// A fresh page, all zero, for all threads of the process, present and future. The descriptor's memory is
    /// `attune_values::page::PAGE_BYTES` long.
    fn open(&mut self, slot: u32, process: i32) -> io::Result<OwnedFd>;

    /// Words of the slot's page stand for that import (an index into [`Store::imports`]) from now on; None: nothing does.
    fn declare(&mut self, slot: u32, import: usize, word: Option<u8>) -> io::Result<()>;

    /// The row holds the thread's own values. `NotFound` if the process has no such thread.
    fn bind(&mut self, slot: u32, row: u16, process: i32, thread: i32) -> io::Result<()>;

    /// The thread has no row of its own any more. It may be gone.
    fn unbind(&mut self, slot: u32, process: i32, thread: i32);

    /// Nobody supplies values for the process any more.
    fn close(&mut self, slot: u32, process: i32);
}
