//! The C interface, `include/attune.h`: a thin layer that turns arguments and failures into C's.
//!
//! What each function does, and its errors, stand in the header. Every function here may be handed
//! what C programs hand over by mistake: null where the header allows it, numbers of threads that
//! are gone; pointers that are not null must point to what the header says.

mod imports;
mod io;
mod shared;
mod sync;
mod threads;
mod trace;

use std::ffi::c_int;

use crate::errno::{self, Result};

/// -1 with errno, or what `f` says with errno as it was.
fn posix<T>(failure: T, f: impl FnOnce() -> Result<T>) -> T {
    let before = errno::at_entry();
    match f() {
        Ok(value) => {
            errno::set(before);
            value
        }
        Err(error) => {
            errno::set(error.0);
            failure
        }
    }
}

/// 0, or -1 with errno.
fn status(f: impl FnOnce() -> Result<()>) -> c_int {
    posix(-1, || f().map(|()| 0))
}
