//! Hands the processor over: from the loop of a worker to a thread, and from a thread to the next
//! one or to the loop.
//!
//! A worker's *loop* (process.rs) lets threads run, on the stack that its OS thread came with. A
//! thread that gives up the processor calls the engine on that stack, below what the loop has left
//! there, and goes on with the thread that the engine chooses:
//!
//! ```text
//!   one thread's stack     the loop's stack             another thread's stack
//!   gives up  -----------> the engine chooses --------> goes on
//!                          (or the loop goes on)
//! ```
//!
//! So the handlers of a switch use up no thread's stack, and the memory that they work in is in the
//! cache however many threads there are. The loop itself goes on where the main program is next,
//! which shares its stack, and at each switch while a tool watches stacks.
//!
//! Invariant: `sp` of a thread that has a stack of its own and does not run is where it goes on;
//! that of a worker whose loop does not run is where the loop does.

use crate::engine::worker::{self, Worker};
use crate::errno::Result;
use crate::stack_switch;
use crate::thread::{Leave, ThreadRef};

/// What a thread that has left leaves to do.
#[derive(Clone, Copy)]
pub enum Turn {
    /// The engine has not heard of it yet, and is to choose the next thread.
    Choose(Leave),
    /// It has chosen the next thread. None: there is none left.
    Run(Result<Option<ThreadRef>>),
}

/// The engine chooses a thread, and where that one or the loop goes on.
pub type Choose = extern "C" fn(worker: &'static Worker) -> usize;

/// The running thread gives up the processor, and `choose` says where it goes on; returns when the
/// thread runs again, maybe on another worker.
#[inline]
pub fn to_chosen(thread: ThreadRef, worker: &'static Worker, choose: Choose) {
    // SAFETY: the loop waits where it let the thread, or one before it, run. `choose` returns what
    // the invariant speaks of.
    unsafe { stack_switch::switch_by(thread.sp.as_ptr(), worker.view.sp.get(), choose, worker) };
}

/// The running thread gives up the processor, and the loop goes on; returns as above.
#[inline(never)]
pub fn to_loop(thread: ThreadRef, worker: &'static Worker, leave: Leave) {
    worker.turn.set(Turn::Choose(leave));
    thread.side.leaves(|| &worker.side, matches!(leave, Leave::Exit));
    // SAFETY: as above.
    unsafe { stack_switch::switch(thread.sp.as_ptr(), worker.view.sp.get()) };
    thread.side.arrived(|| &worker::with(thread).side);
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
