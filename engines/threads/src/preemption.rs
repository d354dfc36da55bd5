//! Safe points: where a running thread gives way when its stay is over (engine/stay.rs), in a
//! program that has opted into preemption, and where its worker gives others to workers that ask
//! (engine/moves.rs), in one whose threads may move.
//!
//! A safe point is `attune_check`, and each call that may let other threads run: a call that may
//! wait is one before it tries, so that nothing is held meanwhile that it takes; a call that may
//! wake others is one after it has. In a program that has opted into neither a safe point costs a
//! load and a branch.
//!
//! Invariant: no safe point lies inside the engine, in a handler, under the lock of sync.rs, or
//! between the begin of a wait and its end.

use std::thread;

use crate::engine::modes;
use crate::errno::Result;
use crate::process::{leave, with};
use crate::thread::Leave;

/// The safe point of a call. Where the caller is no thread of ours, the call itself says so.
#[inline]
pub fn safe_point() {
    if modes::any() {
        let _ = give_way_if_over();
    }
}

/// The safe point that a program makes. EPERM: a foreign OS thread, or a handler.
#[inline]
pub fn check() -> Result<()> {
    if modes::any() { give_way_if_over() } else { Ok(()) }
}

#[cold]
#[inline(never)]
fn give_way_if_over() -> Result<()> {
    let over = with(|engine| {
        let over = modes::preemption() && engine.stay_is_over();
        if modes::moves() {
            engine.give_if_asked();
        }
        over
    })?;
    // Rust counts panics for each OS thread: to others it would look as if they were unwinding.
    if over && !thread::panicking() { leave(Leave::Yield) } else { Ok(()) }
}

/// How long the calling thread may still run, in nanoseconds; NEVER: its stay has no end.
pub fn slice_left() -> Result<i64> {
    with(|engine| engine.slice_left())
}
