//! Transfers of files, and calls that helpers make for threads.
//!
//! Invariant: each ends exactly one wait, that of the thread which began it. `calls` counts the
//! calls under way; transfers count as waits for descriptors.

use std::os::fd::RawFd;

use super::Engine;
use crate::clock::NEVER;
use crate::engine::worker::{Message, Worker};
use crate::errno::Result;
use crate::io::helpers::{self, Call};
use crate::io::uring::{Operation, Transfer};
use crate::thread::{ThreadRef, WaitsFor};

/// A thread that waits for its call.
struct Caller {
    worker: &'static Worker,
    thread: ThreadRef,
}

// SAFETY: a helper only hands the thread back to its worker.
unsafe impl Send for Caller {}

impl Caller {
    fn goes_on(self) {
        let Caller { worker, thread } = self;
        worker.post(Message::Call(Box::new(move |engine| {
            engine.calls -= 1;
            engine.wake(thread, 0);
        })));
    }
}

impl Engine {
    /// Begins a transfer of the running thread, which is about to wait unless the operation has a
    /// result already. False: the worker has no ring, and nothing has begun.
    ///
    /// # Safety
    /// The operation and the buffer stay where they are until the operation has a result.
    pub unsafe fn begin_transfer(
        &mut self,
        fd: RawFd,
        operation: &Operation,
        transfer: Transfer,
    ) -> bool {
        // SAFETY: the caller's promise.
        let begun = unsafe { self.descriptors.start(operation, transfer) };
        if begun {
            // The kernel begins now, not when threads next wait.
            self.poll_descriptors(0);
            if operation.result.get().is_none() {
                self.prepare_wait(WaitsFor::File(fd), NEVER);
            }
        }
        begun
    }

    /// A helper makes the call; the running thread is about to wait for its end. ENOMEM, EMFILE,
    /// ENFILE: there can be no helper.
    pub fn begin_call(&mut self, call: Call) -> Result<()> {
        let bell = self.worker.ensure_bell()?;
        self.descriptors.watch_bell(bell);
        let caller = Caller { worker: self.worker, thread: self.current };
        helpers::make(Box::new(move || {
            call();
            caller.goes_on();
        }))?;
        self.calls += 1;
        self.prepare_wait(WaitsFor::Call, NEVER);
        Ok(())
    }
}
