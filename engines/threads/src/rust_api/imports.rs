//! Imports: the program's variables under the scheduler's names.
//!
//! A variable of one's own is an atomic of static life ([`register`]); a program that has none lets
//! the engine own it ([`import_int`], [`set_thread_int`]). Failures: ENOENT: the scheduler has no
//! such import, said on stderr too unless the options or ATTUNE_UNKNOWN_IMPORTS say that it does
//! not matter; EINVAL: it is an import of the other sort.

use std::ffi::{CString, c_void};
use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64,
};

pub use attune_values::Width;

use super::ThreadId;
use crate::import_operations as operations;

/// A variable that may be registered.
pub trait Import: Sync {
    /// Its shape in memory.
    const WIDTH: Width;
    fn place(&self) -> *mut c_void;
}

macro_rules! imports {
    ($($atomic:ty => $width:ident),*) => {$(
        impl Import for $atomic {
            const WIDTH: Width = Width::$width;

            fn place(&self) -> *mut c_void {
                self.as_ptr().cast()
            }
        }
    )*};
}

imports!(
    AtomicBool => Bool,
    AtomicI8 => I8, AtomicI16 => I16, AtomicI32 => I32, AtomicI64 => I64,
    AtomicU8 => U8, AtomicU16 => U16, AtomicU32 => U32, AtomicU64 => U64
);

/// Lets the scheduler read and write `variable` under `name`.
pub fn register<V: Import>(name: &str, variable: &'static V) -> io::Result<()> {
    // SAFETY: it lives for ever, and may be written through a shared reference.
    unsafe { register_raw(name, variable.place(), V::WIDTH) }
}

/// As [`register`], of any variable.
///
/// # Safety
/// It lives until [`unregister`], and may be read and written whenever a function of this crate
/// runs.
pub unsafe fn register_raw(name: &str, variable: *mut c_void, width: Width) -> io::Result<()> {
    let name = CString::new(name)?;
    Ok(operations::register(&name, variable, width)?)
}

/// Lets the scheduler read and write a field of every thread's userdata.
///
/// # Safety
/// At `offset` of every userdata that is not null lies such a variable, as long as it is the
/// userdata.
pub unsafe fn register_thread(name: &str, offset: usize, width: Width) -> io::Result<()> {
    let name = CString::new(name)?;
    Ok(operations::register_thread(&name, offset, width)?)
}

/// The default holds again. EINVAL: nothing is registered.
pub fn unregister(name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    Ok(operations::unregister(&name)?)
}

/// A variable that the engine owns, starting with the value in force.
pub fn import_int(name: &str) -> io::Result<&'static AtomicI64> {
    let name = CString::new(name)?;
    let place = operations::import(&name, Width::I64)?;
    // SAFETY: eight aligned bytes that live for ever.
    Ok(unsafe { AtomicI64::from_ptr(place.cast()) })
}

/// Sets a thread's import, in storage that the engine owns. EBUSY: registered by offset or as a
/// float.
pub fn set_thread_int(thread: ThreadId, name: &str, value: i64) -> io::Result<()> {
    // SAFETY: the storage is alive here.
    thread_place(thread, name, Width::I64).map(|place| unsafe { place.cast::<i64>().write(value) })
}

/// What a thread's import is, in storage that the engine owns. EBUSY.
pub fn thread_int(thread: ThreadId, name: &str) -> io::Result<i64> {
    // SAFETY: as above.
    thread_place(thread, name, Width::I64).map(|place| unsafe { place.cast::<i64>().read() })
}

/// As [`set_thread_int`], of a float.
pub fn set_thread_float(thread: ThreadId, name: &str, value: f64) -> io::Result<()> {
    // SAFETY: as above.
    thread_place(thread, name, Width::F64).map(|place| unsafe { place.cast::<f64>().write(value) })
}

fn thread_place(thread: ThreadId, name: &str, width: Width) -> io::Result<*mut c_void> {
    let name = CString::new(name)?;
    Ok(operations::thread_import(thread.0, &name, width)?)
}
