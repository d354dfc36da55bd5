//! Shared variables of a cluster.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr;

use attune_language::ir::Value;
use attune_replica::Operation;
use attune_replica::messages::Shared;

use super::{posix, status};
use crate::cluster::operation;
use crate::errno::{Errno, Result};
use crate::shared_variables as shared;

/// `struct attune_write`.
#[repr(C)]
pub struct Write {
    variable: c_int,
    change: c_uint,
    integer: i64,
    real: f64,
}

fn number(variable: c_int) -> Result<Shared> {
    Shared::try_from(variable).map_err(|_| Errno(libc::EINVAL))
}

/// An int's value is one.
fn whole(value: Value) -> i64 {
    match value {
        Value::Int(value) => value,
        Value::Float(value) => value as i64,
    }
}

fn changed(change: c_uint, operand: Value) -> Result<Operation> {
    operation(change, operand).ok_or(Errno(libc::EINVAL))
}

/// # Safety
/// null, or a place for the result.
unsafe fn store<T>(place: *mut T, result: T) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(result) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_shared(name: *const c_char) -> c_int {
    posix(-1, || {
        if name.is_null() {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: a string, as the header says.
        let name = unsafe { CStr::from_ptr(name) };
        let name = name.to_str().map_err(|_| Errno(libc::ENOENT))?;
        shared::find(name).map(|(variable, _)| variable.into())
    })
}

#[unsafe(no_mangle)]
extern "C" fn attune_shared_int(variable: c_int) -> *const i64 {
    posix(ptr::null(), || Ok(shared::copy(number(variable)?, false)?.cast()))
}

#[unsafe(no_mangle)]
extern "C" fn attune_shared_float(variable: c_int) -> *const f64 {
    posix(ptr::null(), || Ok(shared::copy(number(variable)?, true)?.cast()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_shared_read_int(
    variable: c_int,
    value: *mut i64,
    timeout: i64,
) -> c_int {
    status(|| {
        let read = shared::read(number(variable)?, false, timeout)?;
        // SAFETY: as the header says.
        unsafe { store(value, whole(read)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_shared_read_float(
    variable: c_int,
    value: *mut f64,
    timeout: i64,
) -> c_int {
    status(|| {
        let read = shared::read(number(variable)?, true, timeout)?;
        // SAFETY: as the header says.
        unsafe { store(value, read.as_float()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_shared_change_int(
    variable: c_int,
    change: c_uint,
    operand: i64,
    value: *mut i64,
    timeout: i64,
) -> c_int {
    status(|| {
        let operation = changed(change, Value::Int(operand))?;
        let after = shared::write(&[(number(variable)?, operation)], timeout)?;
        // SAFETY: as the header says.
        unsafe { store(value, whole(after)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_shared_change_float(
    variable: c_int,
    change: c_uint,
    operand: f64,
    value: *mut f64,
    timeout: i64,
) -> c_int {
    status(|| {
        let operation = changed(change, Value::Float(operand))?;
        let after = shared::write(&[(number(variable)?, operation)], timeout)?;
        // SAFETY: as the header says.
        unsafe { store(value, after.as_float()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_shared_write(
    writes: *const Write,
    count: c_int,
    timeout: i64,
) -> c_int {
    status(|| {
        let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL))?;
        if writes.is_null() || count == 0 {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: as many as the caller says.
        let writes = unsafe { std::slice::from_raw_parts(writes, count) };
        let operations: Result<Vec<(Shared, Operation)>> = writes
            .iter()
            .map(|write| {
                let variable = number(write.variable)?;
                let float = shared::is_float(variable)?;
                let operand =
                    if float { Value::Float(write.real) } else { Value::Int(write.integer) };
                Ok((variable, changed(write.change, operand)?))
            })
            .collect();
        shared::write(&operations?, timeout).map(drop)
    })
}

#[unsafe(no_mangle)]
extern "C" fn attune_shared_flush(timeout: i64) -> c_int {
    status(|| shared::flush(timeout))
}

#[unsafe(no_mangle)]
extern "C" fn attune_shared_age() -> i64 {
    posix(-1, shared::age)
}
