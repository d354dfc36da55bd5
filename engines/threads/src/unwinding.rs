//! What the C++ runtime keeps of exceptions: those that are caught and not over, and how many are
//! on their way. It keeps them for each OS thread, so they would be those of another thread of ours
//! after a switch in a `catch` block, or in a destructor that an exception runs.
//!
//! A thread that gives up the processor there puts them aside on its own stack, and puts them back
//! when it goes on. A program without the C++ runtime has none, and one whose runtime is loaded
//! after the library has started is taken for such a one.
//!
//! Invariant: between two threads the runtime's record is empty.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use crate::instruments::function;

/// `__cxa_eh_globals` of the C++ ABI.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    caught: *mut c_void,
    uncaught: u32,
}

const NONE: Record = Record { caught: ptr::null_mut(), uncaught: 0 };

/// Where the C++ runtime keeps its record for one OS thread; null where there is no such runtime.
pub struct Exceptions {
    record: Cell<*mut Record>,
}

impl Exceptions {
    pub const fn new() -> Exceptions {
        Exceptions { record: Cell::new(ptr::null_mut()) }
    }

    /// To be called on the OS thread whose record it is.
    pub fn find(&self) {
        type Globals = extern "C" fn() -> *mut Record;
        // SAFETY: the name is that of a function with this signature.
        if let Some(globals) = unsafe { function::<Globals>(c"__cxa_get_globals") } {
            self.record.set(globals());
        }
    }

    /// Whether the running thread has any. A load and a branch where there is no C++.
    #[inline]
    pub fn are_pending(&self) -> bool {
        // SAFETY: null, or the record of this OS thread, which lives as long as it does.
        unsafe { self.record.get().as_ref() }.is_some_and(|record| *record != NONE)
    }

    /// Leaves the record empty.
    pub fn put_aside(&self) -> Record {
        let record = self.record.get();
        // SAFETY: as above.
        if record.is_null() { NONE } else { unsafe { record.replace(NONE) } }
    }

    /// What [`Exceptions::put_aside`] took, in the thread that it took it from.
    pub fn put_back(&self, kept: Record) {
        let record = self.record.get();
        if !record.is_null() {
            // SAFETY: as above.
            unsafe { record.write(kept) };
        }
    }
}
