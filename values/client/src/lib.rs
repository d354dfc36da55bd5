//! A process's side of values for an engine outside it: the import functions of attune.h for
//! ordinary threads.
//!
//! A program that is scheduled by the kernel engine links with `attune_client` where one on
//! user-level threads links with `attune_threads`, and uses the same header:
//!
//! ```c
//! int64_t *deadline = attune_thread_import_int(ATTUNE_SELF, "deadline");
//! *deadline = attune_now() + 40000000;   // the scheduler reads it there; a store is all it costs
//! ```
//!
//! ```no_run
//! let deadline = attune_client::thread_import("deadline")?;
//! deadline.set(40_000_000);
//! # Ok::<(), attune_client::Error>(())
//! ```
//!
//! No engine need be there: the storage is there all the same, and an engine that starts later, or
//! again, reads the values in it. A thread of ours, which sleeps, looks for engines. A process
//! supplies thread imports of type int and time; global imports belong to the user who loaded the
//! scheduler, and a scheduler in the kernel has no floats.
//!
//! After a fork the child has the values of the thread that forked, to itself; it is an engine's
//! client again when it next asks for an import.

mod c_api;
mod error;
mod global;
mod link;
mod rows;
mod state;
mod table;

use std::sync::atomic::{AtomicI64, Ordering};

use attune_linux::process;

pub use error::Error;
pub use table::{Change, Table};

/// The storage of one value of one thread. It stays while the process lives; once its thread has
/// ended, another may get it.
#[derive(Clone, Copy, Debug)]
pub struct Value(&'static AtomicI64);

impl Value {
    /// An int, or a time in nanoseconds.
    pub fn set(self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// What was stored last, by us or by the scheduler.
    pub fn get(self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The calling thread's value of a thread import. It starts with the value in force.
pub fn thread_import(name: &str) -> Result<Value, Error> {
    global::import(process::this_thread() as i32, name).map(Value)
}

/// The value of another thread of this process, by its number (`gettid`).
pub fn import_for(thread: i32, name: &str) -> Result<Value, Error> {
    global::import(thread, name).map(Value)
}

/// Supplies the import for no thread any more: its default holds again.
pub fn unregister(name: &str) -> Result<(), Error> {
    global::with(|state| state.unregister(name))
}

/// Whether a scheduler runs that has thread imports of all these names. Without one, no thread is
/// started that would look for one: for a program that can do without.
pub fn wanted(names: &[&str]) -> bool {
    global::wanted(names).unwrap_or(false)
}

/// The scheduler that our values reach, if there is one.
pub fn scheduler() -> Option<String> {
    global::with(|state| Ok(state.scheduler())).ok().flatten()
}
