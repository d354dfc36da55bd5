//! Shared variables of the cluster whose node this process is.
//!
//! Each variable has a model, which `attune build --request` chooses. `cache`: what these functions
//! read and write is the process's own copy, and they return at once. `request`: the owner does it,
//! and the calling thread waits for the answer. Failures: ENOTCONN: the process is no node of a
//! cluster; EINVAL: an operand of the other type; ETIMEDOUT: the owner has not answered, and may
//! perform what was asked still.

use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

pub use attune_language::ir::Value;
pub use attune_replica::Operation;

use super::nanoseconds;
use crate::clock::FOREVER;
use crate::shared_variables as variables;

/// A shared variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    number: u16,
    float: bool,
}

/// The shared variable of that name in the master's `global`. ENOENT.
pub fn find(name: &str) -> io::Result<Variable> {
    let (number, float) = variables::find(name)?;
    Ok(Variable { number, float })
}

impl Variable {
    /// The value.
    pub fn read(self, timeout: Option<Duration>) -> io::Result<Value> {
        Ok(variables::read(self.number, self.float, relative(timeout))?)
    }

    /// Changes it; the value after the change.
    pub fn change(self, operation: Operation, timeout: Option<Duration>) -> io::Result<Value> {
        Ok(variables::write(&[(self.number, operation)], relative(timeout))?)
    }

    /// The copy's value, which this crate's functions refresh: reading it is a plain load, under
    /// both models. Do not write to it. EINVAL: it is a float.
    pub fn copy_int(self) -> io::Result<&'static AtomicI64> {
        let word = variables::copy(self.number, false)?;
        // SAFETY: eight aligned bytes that live for ever; everything happens on one OS thread.
        Ok(unsafe { AtomicI64::from_ptr(word.cast()) })
    }

    /// As [`Variable::copy_int`], of a float: its bits. EINVAL: it is none.
    pub fn copy_float(self) -> io::Result<&'static AtomicU64> {
        let word = variables::copy(self.number, true)?;
        // SAFETY: as above.
        Ok(unsafe { AtomicU64::from_ptr(word) })
    }
}

/// Writes that take effect together: no node and no program sees a part of them. If the owner does
/// one of them it does all.
pub fn write(writes: &[(Variable, Operation)], timeout: Option<Duration>) -> io::Result<()> {
    let writes: Vec<_> =
        writes.iter().map(|(variable, operation)| (variable.number, *operation)).collect();
    Ok(variables::write(&writes, relative(timeout)).map(drop)?)
}

/// Waits until the manager has counted all that was written to the copy: a process that ends takes
/// along what was not.
pub fn flush(timeout: Option<Duration>) -> io::Result<()> {
    Ok(variables::flush(relative(timeout))?)
}

/// How long ago the process has heard of the manager.
pub fn age() -> io::Result<Duration> {
    Ok(Duration::from_nanos(variables::age()?.unsigned_abs()))
}

/// None never ends.
fn relative(timeout: Option<Duration>) -> i64 {
    timeout.map_or(FOREVER, nanoseconds)
}
