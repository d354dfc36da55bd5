//! The import functions of attune.h, for ordinary threads.
//!
//! `attune_t` is the kernel's number of a thread here. Linking a variable of the program's own is
//! for engines that share its memory; these functions say so.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::error::{Error, note};
use crate::{import_for, thread_import, unregister};

fn fail(errno: c_int) {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = errno };
}

fn text<'a>(name: *const c_char) -> Result<&'a str, Error> {
    if name.is_null() {
        return Err(Error::BadName);
    }
    // SAFETY: a string, as the header says.
    unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Error::BadName)
}

fn not_here(name: *const c_char, errno: c_int, why: &str) {
    note(&format!("{}: {why}", text(name).unwrap_or("?")));
    fail(errno);
}

const OWN_VARIABLE: &str = "an engine in the kernel cannot read this program's variables; \
    attune_thread_import_int gives one that it can";
const GLOBAL: &str =
    "global imports of an engine in the kernel belong to the user who loaded the scheduler";
const NO_FLOATS: &str = "an engine in the kernel has no floats";

#[unsafe(no_mangle)]
extern "C" fn attune_self() -> u64 {
    attune_linux::process::this_thread().into()
}

#[unsafe(no_mangle)]
extern "C" fn attune_thread_import_int(of: u64, name: *const c_char) -> *mut i64 {
    let found = text(name).and_then(|name| match of {
        0 => thread_import(name),
        thread => match i32::try_from(thread) {
            Ok(thread) => import_for(thread, name),
            Err(_) => Err(Error::NoSuchThread(-1)),
        },
    });
    match found {
        Ok(value) => value.0.as_ptr(),
        Err(error) => {
            fail(error.errno());
            ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn attune_unregister(name: *const c_char) -> c_int {
    match text(name).and_then(unregister) {
        Ok(()) => 0,
        Err(error) => {
            fail(error.errno());
            -1
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn attune_thread_import_float(_thread: u64, name: *const c_char) -> *mut f64 {
    not_here(name, libc::ENOTSUP, NO_FLOATS);
    ptr::null_mut()
}

#[unsafe(no_mangle)]
extern "C" fn attune_import_int(name: *const c_char) -> *mut i64 {
    not_here(name, libc::EPERM, GLOBAL);
    ptr::null_mut()
}

#[unsafe(no_mangle)]
extern "C" fn attune_import_float(name: *const c_char) -> *mut f64 {
    not_here(name, libc::EPERM, GLOBAL);
    ptr::null_mut()
}

#[unsafe(no_mangle)]
extern "C" fn attune_register_variable(
    name: *const c_char,
    _variable: *mut c_void,
    _kind: c_uint,
) -> c_int {
    not_here(name, libc::EPERM, GLOBAL);
    -1
}

#[unsafe(no_mangle)]
extern "C" fn attune_register_thread_variable(
    name: *const c_char,
    _offset: usize,
    _kind: c_uint,
) -> c_int {
    not_here(name, libc::ENOTSUP, OWN_VARIABLE);
    -1
}

#[unsafe(no_mangle)]
extern "C" fn attune_register_thread(name: *const c_char, _offset: usize) -> c_int {
    not_here(name, libc::ENOTSUP, OWN_VARIABLE);
    -1
}
