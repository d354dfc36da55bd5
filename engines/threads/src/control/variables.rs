//! A scheduler's variables by the tables of its ABI, for those who look from outside. Numbers and
//! times only: the messages know no floats.

use std::ffi::c_void;

use attune_abi::{IMPORTED, Import, TUNABLE, TYPE_FLOAT, TYPE_TIME, Variable};
use attune_values::wire::{Storage, Type};
use attune_values::{Value, Width, float_to_int};

use crate::scheduler::{Scheduler, text};

pub fn name(variable: &Variable) -> String {
    text(variable.name).to_string_lossy().into_owned()
}

/// None: it is a float.
pub fn ty(variable: &Variable) -> Option<Type> {
    match variable.ty {
        TYPE_FLOAT => None,
        TYPE_TIME => Some(Type::Time),
        _ => Some(Type::Int),
    }
}

/// None: it cannot be set from outside.
pub fn storage(variable: &Variable) -> Option<Storage> {
    let settable = ty(variable).is_some() && variable.length == 0;
    match variable.imported {
        TUNABLE if settable => Some(Storage::Tunable),
        IMPORTED if settable && variable.width != 0 => Some(Storage::Import),
        _ => None,
    }
}

/// Whether the program supplies the import; of one, `place` says where it is.
pub fn is_linked(variable: &Variable, place: *mut c_void) -> bool {
    // SAFETY: the table says that an import lies there.
    variable.imported == IMPORTED && unsafe { !(*place.cast::<Import>()).link.is_null() }
}

/// The value that a handler would read.
pub fn read(scheduler: &Scheduler, variable: &Variable, place: *mut c_void) -> i64 {
    if variable.imported != IMPORTED {
        // SAFETY: the table says that an int64_t lies there, and no handler runs.
        return unsafe { *place.cast::<i64>() };
    }
    // SAFETY: the table says that an import lies there, and its width in the state; a variable that
    // is linked is there as long as the thread may run.
    unsafe {
        let import = &*place.cast::<Import>();
        if import.link.is_null() {
            return import.value as i64;
        }
        let width = *scheduler.place::<u32>(variable.width);
        let Some(width) = Width::from_abi(width) else { return 0 };
        let bytes = std::slice::from_raw_parts(import.link.cast::<u8>(), width.size());
        match width.load(bytes).value {
            Value::Int(number) | Value::Time(number) => number,
            Value::Float(number) => float_to_int(number).value,
        }
    }
}

/// Sets a tunable, or an import that the program does not supply.
pub fn write(variable: &Variable, place: *mut c_void, value: i64) {
    // SAFETY: as in `read`; nothing else refers to the place.
    unsafe {
        if variable.imported == IMPORTED {
            (*place.cast::<Import>()).value = value as u64;
        } else {
            *place.cast::<i64>() = value;
        }
    }
}
