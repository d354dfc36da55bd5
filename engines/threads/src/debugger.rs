//! What a debugger finds in a process, or in its core file, without running anything in it.
//!
//! `gdb/attune.py` reads it: [`attune_debugger`] says at which byte of a block each field lies, so
//! that the script needs no types, and where the workers are. Each worker's [`View`] says where the
//! threads are that were created there, and a thread says which worker has it. Where a thread goes
//! on that has left, its stack says (stack_switch.rs).
//!
//! Invariant: [`Places`] and the script agree on the order of the fields and on [`VERSION`].
//! Units: bytes.

use std::cell::Cell;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering::Relaxed};

use attune_abi as abi;

use crate::engine::worker::{self, Worker};
use crate::scheduler::Scheduler;
use crate::thread::{RECORD_OFFSET, Thread, ThreadRef};

/// To be raised whenever [`Places`], [`View`] or what they lead to changes.
const VERSION: u32 = 4;

/// A worker, for a debugger.
#[repr(C)]
pub struct View {
    /// Its OS thread's number in the kernel.
    os_thread: AtomicI32,
    /// The slots of the table of the threads that were created there, and how many there are.
    slots: AtomicPtr<Option<ThreadRef>>,
    slot_count: AtomicUsize,
    scheduler: AtomicPtr<abi::Scheduler>,
    instance: AtomicPtr<abi::Instance>,
    /// Where the worker's loop goes on, and with it the main program.
    pub sp: Cell<usize>,
}

impl View {
    pub const fn new() -> View {
        View {
            os_thread: AtomicI32::new(0),
            slots: AtomicPtr::new(ptr::null_mut()),
            slot_count: AtomicUsize::new(0),
            scheduler: AtomicPtr::new(ptr::null_mut()),
            instance: AtomicPtr::new(ptr::null_mut()),
            sp: Cell::new(0),
        }
    }

    /// The calling OS thread is the worker, and runs this scheduler.
    pub fn starts(&self, scheduler: &Scheduler) {
        let (constant, instance) = scheduler.addresses();
        // SAFETY: always allowed.
        self.os_thread.store(unsafe { libc::gettid() }, Relaxed);
        self.scheduler.store(ptr::from_ref(constant).cast_mut(), Relaxed);
        self.instance.store(instance, Relaxed);
    }

    /// The threads' table may have moved.
    pub fn has_threads(&self, slots: &[Option<ThreadRef>]) {
        self.slots.store(slots.as_ptr().cast_mut(), Relaxed);
        self.slot_count.store(slots.len(), Relaxed);
    }
}

/// Where things lie in blocks of memory, and the workers.
#[repr(C)]
pub struct Places {
    version: u32,
    fields: [u32; 14],
    worker_count: AtomicUsize,
    workers: AtomicPtr<&'static Worker>,
}

#[unsafe(no_mangle)]
#[used]
#[allow(non_upper_case_globals, reason = "a symbol of a C library")]
pub static attune_debugger: Places = Places {
    version: VERSION,
    fields: [
        offset_of!(Worker, view) as u32,
        offset_of!(Thread, id) as u32,
        offset_of!(Thread, at) as u32,
        offset_of!(Thread, state) as u32,
        offset_of!(Thread, suspended) as u32,
        offset_of!(Thread, waits_for) as u32,
        offset_of!(Thread, sp) as u32,
        offset_of!(Thread, times) as u32,
        offset_of!(Thread, chosen) as u32,
        offset_of!(Thread, name) as u32,
        offset_of!(Thread, stack) as u32,
        (RECORD_OFFSET + offset_of!(abi::Thread, container)) as u32,
        offset_of!(abi::Scheduler, containers) as u32,
        offset_of!(abi::Scheduler, container_count) as u32,
    ],
    worker_count: AtomicUsize::new(0),
    workers: AtomicPtr::new(ptr::null_mut()),
};

/// All workers are known.
pub fn has_workers() {
    let workers = worker::all();
    attune_debugger.workers.store(workers.as_ptr().cast_mut(), Relaxed);
    attune_debugger.worker_count.store(workers.len(), Relaxed);
}
