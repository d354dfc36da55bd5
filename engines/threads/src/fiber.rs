//! What runs on a thread's own stack.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::engine::worker;
use crate::stack::GuardedStack;
use crate::thread::{Body, Fiber, ThreadRef};

/// A fiber that runs the thread's body when it is first resumed, from the stack of the worker that
/// has the thread by then.
pub fn new(stack: GuardedStack, thread: ThreadRef) -> Fiber {
    Fiber::with_stack(stack, move |yielder, ()| {
        thread.side.arrived(|| &worker::with(thread).side);
        thread.yielder.set(yielder);
        match thread.body.take() {
            Some(Body::C { start, argument }) => {
                // A panic of Rust code behind a C function's start must not unwind into the engine.
                match catch_unwind(AssertUnwindSafe(|| start(argument))) {
                    Ok(result) => thread.result.set(result),
                    Err(_) => thread.panicked.set(true),
                }
            }
            Some(Body::Rust(body)) => body(),
            None => {}
        }
        thread.yielder.set(ptr::null());
        thread.side.leaves(|| &worker::with(thread).side, true);
    })
}
