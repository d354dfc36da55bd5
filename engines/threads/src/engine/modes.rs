//! What a program has opted into when it started: preemption (stay.rs), threads that move between
//! workers (moves.rs).
//!
//! One word holds all, so that a program which has opted into nothing asks once where it would ask
//! for each.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const PREEMPTION: u8 = 1;
const MOVES: u8 = 2;

static MODES: AtomicU8 = AtomicU8::new(0);

/// Before the first engine starts.
pub fn opt_in(preemption: bool, moves: bool) {
    let modes = if preemption { PREEMPTION } else { 0 } | if moves { MOVES } else { 0 };
    MODES.store(modes, Relaxed);
}

/// Whether the program has opted into anything.
#[inline]
pub fn any() -> bool {
    MODES.load(Relaxed) != 0
}

#[inline]
pub fn preemption() -> bool {
    MODES.load(Relaxed) & PREEMPTION != 0
}

#[inline]
pub fn moves() -> bool {
    MODES.load(Relaxed) & MOVES != 0
}
