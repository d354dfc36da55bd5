//! What runs on a thread's own stack. Debuggers show a thread's frames down to this file's.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::worker;
use crate::handover::to_loop;
use crate::stack::GuardedStack;
use crate::stack_switch;
use crate::thread::{Body, Leave, ThreadRef};

/// Gives a new thread its stack, on which it begins its body.
pub fn prepare(thread: ThreadRef, stack: GuardedStack) {
    let extent = stack.extent();
    // SAFETY: nobody uses the stack, which is larger than what is written there.
    let sp = unsafe { stack_switch::prepare(extent.base(), begin, thread.as_ptr() as usize) };
    thread.sp.set(sp);
    thread.stack.set(extent);
    thread.side.has_stack(extent.lowest(), extent.usable());
    thread.memory.set(Some(stack));
}

extern "C" fn begin(thread: usize) -> ! {
    // SAFETY: `prepare` passes a thread, which lives until it has left for good.
    let Some(thread) = (unsafe { ThreadRef::from_ptr(thread as *const _) }) else {
        std::process::abort()
    };
    thread.side.arrived(|| &worker::with(thread).side);
    match thread.body.take() {
        Some(Body::C { start, argument }) => {
            // A panic of Rust code behind a C function's start must not unwind any further.
            match catch_unwind(AssertUnwindSafe(|| start(argument))) {
                Ok(result) => thread.result.set(result),
                Err(_) => thread.panicked.set(true),
            }
        }
        Some(Body::Rust(body)) => body(),
        None => {}
    }
    // It may have moved.
    to_loop(thread, worker::with(thread), Leave::Exit);
    // A thread that has left for good is never chosen again.
    std::process::abort()
}
