//! What runs on a thread's own stack.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::stack::GuardedStack;
use crate::thread::{Body, Fiber, ThreadRef};
use crate::worker::Worker;

/// A fiber that runs the thread's body when its worker first resumes it.
pub fn new(stack: GuardedStack, thread: ThreadRef, worker: &'static Worker) -> Fiber {
    Fiber::with_stack(stack, move |yielder, ()| {
        thread.side.arrived(&worker.side);
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
        thread.side.leaves(&worker.side, true);
    })
}
