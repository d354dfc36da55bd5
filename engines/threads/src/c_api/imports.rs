//! Imports.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use attune_values::Width;

use super::{posix, status};
use crate::errno::{Errno, Result};
use crate::import_operations as operations;
use crate::thread::ThreadId;

fn name<'a>(name: *const c_char) -> Result<&'a CStr> {
    if name.is_null() {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: a string, as the header says.
    Ok(unsafe { CStr::from_ptr(name) })
}

fn width(kind: c_uint) -> Result<Width> {
    Width::from_abi(kind).ok_or(Errno(libc::EINVAL))
}

#[unsafe(no_mangle)]
extern "C" fn attune_register_variable(
    import: *const c_char,
    variable: *mut c_void,
    kind: c_uint,
) -> c_int {
    status(|| {
        let (name, width) = (name(import)?, width(kind)?);
        operations::register(name, variable, width)
    })
}

#[unsafe(no_mangle)]
extern "C" fn attune_register_thread_variable(
    import: *const c_char,
    offset: usize,
    kind: c_uint,
) -> c_int {
    status(|| {
        let (name, width) = (name(import)?, width(kind)?);
        operations::register_thread(name, offset, width)
    })
}

#[unsafe(no_mangle)]
extern "C" fn attune_register_thread(import: *const c_char, offset: usize) -> c_int {
    attune_register_thread_variable(import, offset, Width::I32 as c_uint)
}

#[unsafe(no_mangle)]
extern "C" fn attune_unregister(import: *const c_char) -> c_int {
    status(|| {
        let name = name(import)?;
        operations::unregister(name)
    })
}

#[unsafe(no_mangle)]
extern "C" fn attune_import_int(import: *const c_char) -> *mut i64 {
    global(import, Width::I64).cast()
}

#[unsafe(no_mangle)]
extern "C" fn attune_import_float(import: *const c_char) -> *mut f64 {
    global(import, Width::F64).cast()
}

#[unsafe(no_mangle)]
extern "C" fn attune_thread_import_int(thread: ThreadId, import: *const c_char) -> *mut i64 {
    of_thread(thread, import, Width::I64).cast()
}

#[unsafe(no_mangle)]
extern "C" fn attune_thread_import_float(thread: ThreadId, import: *const c_char) -> *mut f64 {
    of_thread(thread, import, Width::F64).cast()
}

fn global(import: *const c_char, width: Width) -> *mut c_void {
    posix(ptr::null_mut(), || {
        let name = name(import)?;
        operations::import(name, width)
    })
}

fn of_thread(thread: ThreadId, import: *const c_char, width: Width) -> *mut c_void {
    posix(ptr::null_mut(), || {
        let name = name(import)?;
        operations::thread_import(thread, name, width)
    })
}
