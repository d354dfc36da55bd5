//! What can be done to threads, for both interfaces. Errors stand in `include/attune.h`.

use std::ffi::{CStr, c_void};

use crate::clock::NEVER;
use crate::errno::{Errno, Result};
use crate::process::{leave, with};
use crate::thread::{Body, Leave, State, ThreadId, ThreadRef, WaitsFor};

pub fn create(
    name: &CStr,
    stack_size: usize,
    userdata: *mut c_void,
    detached: bool,
    body: Body,
) -> Result<ThreadId> {
    with(|engine| {
        let thread = engine.create(name, stack_size, userdata, body)?;
        thread.detached.set(detached);
        Ok(thread.id)
    })?
}

/// Waits for the end of a thread and forgets it; what it returned.
pub fn join(id: ThreadId) -> Result<*mut c_void> {
    let waits = with(|engine| {
        let thread = engine.thread(id)?;
        let me = engine.current();
        if thread.detached.get() || thread.joiner.get().is_some() {
            return Err(Errno(libc::EINVAL));
        }
        if thread == me || waits_for_end_of(me, thread) {
            return Err(Errno(libc::EDEADLK));
        }
        if thread.state.get() == State::Dead {
            return Ok(false);
        }
        thread.joiner.set(Some(me));
        engine.prepare_wait(WaitsFor::Join(thread.id), NEVER);
        Ok(true)
    })??;
    if waits {
        leave(Leave::Wait)?;
    }
    with(|engine| {
        let thread = engine.thread(id)?;
        let result = if thread.panicked.get() {
            Err(Errno(libc::ECANCELED))
        } else {
            Ok(thread.result.get())
        };
        engine.forget(thread);
        result
    })?
}

/// Whether `thread` waits, directly or through others, for the end of `end`.
fn waits_for_end_of(end: ThreadRef, thread: ThreadRef) -> bool {
    let mut joiner = end.joiner.get();
    while let Some(waiting) = joiner {
        if waiting == thread {
            return true;
        }
        joiner = waiting.joiner.get();
    }
    false
}

pub fn detach(id: ThreadId) -> Result<()> {
    with(|engine| {
        let thread = engine.thread(id)?;
        if thread.detached.get() || thread.joiner.get().is_some() {
            return Err(Errno(libc::EINVAL));
        }
        thread.detached.set(true);
        if thread.state.get() == State::Dead {
            engine.forget(thread);
        }
        Ok(())
    })?
}

pub fn yield_to(id: ThreadId) -> Result<()> {
    let next = with(|engine| {
        let thread = engine.living_thread(id)?;
        if thread == engine.current() {
            return Ok(Leave::Yield);
        }
        engine.may_yield_to(thread).map(|()| Leave::YieldTo(thread))
    })??;
    leave(next)
}

pub fn suspend(id: ThreadId) -> Result<()> {
    let myself = with(|engine| {
        let thread = engine.living_thread(id)?;
        if thread == engine.current() {
            return engine.may_suspend(thread).map(|()| true);
        }
        engine.suspend_other(thread).map(|()| false)
    })??;
    if myself { leave(Leave::Suspend) } else { Ok(()) }
}

pub fn resume(id: ThreadId) -> Result<()> {
    with(|engine| engine.living_thread(id).and_then(|thread| engine.resume(thread)))?
}

pub fn set_userdata(id: ThreadId, userdata: *mut c_void) -> Result<()> {
    with(|engine| {
        let thread = engine.thread(id)?;
        thread.set_userdata(userdata);
        engine.bindings.bind_thread_imports(thread);
        Ok(())
    })?
}
