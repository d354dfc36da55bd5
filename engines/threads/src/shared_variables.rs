//! What threads do with the shared variables of a cluster, for both interfaces. Errors stand in
//! `include/attune.h`.
//!
//! Each variable has a model. `cache`: reads and writes are those of the process's own copy, and
//! nothing waits. `request`: the owner does them, and the calling thread waits for its answer.

use attune_language::ir::Value;
use attune_replica::Operation;
use attune_replica::messages::Shared;

use crate::clock;
use crate::cluster::Cluster;
use crate::errno::{Errno, Result};
use crate::io;
use crate::process::{leave, with};
use crate::thread::Leave;

/// How often a thread looks whether its writes have been counted. Nanoseconds.
const LOOK_AGAIN: i64 = 200_000;

/// The number of a shared variable, and whether it is a float. ENOENT.
pub fn find(name: &str) -> Result<(Shared, bool)> {
    with(|engine| {
        let cluster = engine.cluster()?;
        let variable = cluster.find(name).ok_or(Errno(libc::ENOENT))?;
        Ok((variable, cluster.is_float(variable) == Some(true)))
    })?
}

/// EINVAL: there is no such variable.
pub fn is_float(variable: Shared) -> Result<bool> {
    with(|engine| engine.cluster()?.is_float(variable).ok_or(Errno(libc::EINVAL)))?
}

/// EINVAL: there is no such variable, or it is of the other type.
fn check(cluster: &Cluster, variable: Shared, float: bool) -> Result<()> {
    let fits = cluster.is_float(variable) == Some(float);
    if fits { Ok(()) } else { Err(Errno(libc::EINVAL)) }
}

/// The word that holds the copy's value, for ever.
pub fn copy(variable: Shared, float: bool) -> Result<*mut u64> {
    with(|engine| {
        let cluster = engine.cluster()?;
        check(cluster, variable, float)?;
        cluster.copy(variable).ok_or(Errno(libc::EINVAL))
    })?
}

/// By the variable's model.
pub fn read(variable: Shared, float: bool, timeout: i64) -> Result<Value> {
    let cached = with(|engine| {
        let cluster = engine.cluster()?;
        check(cluster, variable, float)?;
        Ok((!cluster.is_requested(variable)).then(|| cluster.value(variable)))
    })??;
    cached.map_or_else(|| request(variable, Vec::new(), timeout), Ok)
}

/// Writes that take effect together, at the owner if one of the variables asks for that; the value
/// of the first one after them all. EINVAL: there are none.
pub fn write(writes: &[(Shared, Operation)], timeout: i64) -> Result<Value> {
    let &(first, _) = writes.first().ok_or(Errno(libc::EINVAL))?;
    let cached = with(|engine| {
        let cluster = engine.cluster()?;
        for &(variable, operation) in writes {
            check(cluster, variable, matches!(operation.operand(), Value::Float(_)))?;
        }
        if writes.iter().any(|(variable, _)| cluster.is_requested(*variable)) {
            return Ok(None);
        }
        cluster.queue(writes);
        Ok(Some(cluster.value(first)))
    })??;
    cached.map_or_else(|| request(first, writes.to_vec(), timeout), Ok)
}

/// Waits until the owner has answered. ETIMEDOUT: it may perform the writes still.
fn request(variable: Shared, writes: Vec<(Shared, Operation)>, timeout: i64) -> Result<Value> {
    let number = with(|engine| engine.ask(variable, writes, clock::deadline(timeout)))??;
    let ended = leave(Leave::Wait);
    let answer = with(|engine| engine.take_answer(number))?;
    answer.ok_or_else(|| ended.err().unwrap_or(Errno(libc::ETIMEDOUT)))
}

/// Waits until the manager has counted all that has been written to the copy. ETIMEDOUT.
pub fn flush(timeout: i64) -> Result<()> {
    let deadline = clock::deadline(timeout);
    let written = with(|engine| engine.cluster().map(|cluster| cluster.written()))??;
    loop {
        if with(|engine| engine.cluster().map(|cluster| cluster.has_counted(written)))?? {
            return Ok(());
        }
        let now = clock::now();
        if now >= deadline {
            return Err(Errno(libc::ETIMEDOUT));
        }
        io::sleep_until(now.saturating_add(LOOK_AGAIN).min(deadline))?;
    }
}

/// How long ago the manager was heard of.
pub fn age() -> Result<i64> {
    with(|engine| engine.cluster().map(|cluster| cluster.age(clock::now())))?
}
