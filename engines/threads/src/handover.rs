//! Hands the processor over: from a thread to its worker's loop, from the loop to a thread, and
//! from a thread that yields to the next one.
//!
//! A worker's *loop* (process.rs) runs threads, on the stack that its OS thread came with. A thread
//! that gives up the processor goes on with the loop, and tells it what is left to do.
//!
//! Invariant: `sp` of a thread that has a stack of its own and does not run is where it goes on;
//! that of a worker whose loop does not run is where the loop does.

use crate::engine::Turn;
use crate::engine::worker::{self, Worker};
use crate::stack_switch;
use crate::thread::{Leave, ThreadRef};

/// Handlers, and what the engine does beside them, may take so much of a thread's stack, in bytes.
pub const ROOM: usize = 32 * 1024;

/// Whether there is room on the running thread's stack for a turn of the engine.
#[inline]
pub fn has_room(thread: ThreadRef) -> bool {
    let here = 0u8;
    &raw const here as usize > thread.floor.get()
}

/// The running thread gives up the processor; returns when it runs again, maybe on another worker.
#[inline]
pub fn to_loop(thread: ThreadRef, worker: &'static Worker, turn: Turn) {
    let for_good = matches!(turn, Turn::Leave(Leave::Exit));
    worker.turn.set(Some(turn));
    thread.side.leaves(|| &worker.side, for_good);
    // SAFETY: the loop waits where it let the thread, or one before it, run.
    unsafe { stack_switch::switch(thread.sp.as_ptr(), worker.view.sp.get()) };
    thread.side.arrived(|| &worker::with(thread).side);
}

/// The running thread gives up the processor for another one; returns when it runs again.
///
/// # Safety
/// The engine has chosen `next`, another thread with a stack of its own.
#[inline]
pub unsafe fn to_thread(thread: ThreadRef, next: ThreadRef) {
    // SAFETY: the caller's.
    unsafe { stack_switch::switch(thread.sp.as_ptr(), next.sp.get()) };
}

/// The loop lets a thread run; returns when that or another one gives up the processor.
///
/// # Safety
/// The engine has chosen `next`, a thread with a stack of its own.
#[inline]
pub unsafe fn from_loop(worker: &'static Worker, next: ThreadRef) {
    // SAFETY: the caller's.
    unsafe { stack_switch::switch(worker.view.sp.as_ptr(), next.sp.get()) };
}
