//! What can be done to threads, for both interfaces. Errors stand in `include/attune.h`.

use std::ffi::c_void;

use crate::clock::NEVER;
use crate::engine::worker::{self, Worker};
use crate::engine::{Engine, New, modes};
use crate::errno::{Errno, Result};
use crate::preemption::safe_point;
use crate::process::{here, leave, with};
use crate::remote;
use crate::thread::{Leave, State, ThreadId, ThreadRef, WaitsFor};

/// On which worker a new thread is to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Here,
    LeastLoaded,
    /// From 0.
    Worker(usize),
}

impl Place {
    /// EINVAL: there is no such worker.
    fn find(self) -> Result<&'static Worker> {
        let here = here()?;
        match self {
            Place::Here => Ok(here),
            Place::LeastLoaded => Ok(worker::least_loaded()),
            Place::Worker(index) => worker::all().get(index).copied().ok_or(Errno(libc::EINVAL)),
        }
    }
}

pub fn create(new: New, place: Place) -> Result<ThreadId> {
    let create = |engine: &mut Engine| engine.create(new).map(|thread| thread.id);
    match place {
        Place::Here => with(create)?,
        _ => remote::on_worker(place.find()?, create)?,
    }
}

/// The caller has made a thread ready, which another worker may ask for.
pub fn offer() -> Result<()> {
    if modes::moves() { with(|engine| engine.give_if_asked()) } else { Ok(()) }
}

/// Until as many calls of [`unpin`] the calling thread stays on its worker. EOVERFLOW.
pub fn pin() -> Result<()> {
    with(|engine| {
        let pins = &engine.current().pins;
        pins.set(pins.get().checked_add(1).ok_or(Errno(libc::EOVERFLOW))?);
        Ok(())
    })?
}

/// EINVAL: it is not pinned.
pub fn unpin() -> Result<()> {
    with(|engine| {
        let pins = &engine.current().pins;
        pins.set(pins.get().checked_sub(1).ok_or(Errno(libc::EINVAL))?);
        Ok(())
    })?
}

/// Waits for the end of a thread and forgets it; what it returned.
pub fn join(id: ThreadId) -> Result<*mut c_void> {
    safe_point();
    if let Some(worker) = remote::other(id)? {
        let me = with(|engine| engine.current())?;
        // The end of the thread ends this wait, or else the call does.
        let mut begun = Ok(false);
        remote::ask(worker, Some(id), WaitsFor::Join(id), |engine| {
            begun = begin_join(engine, id, me);
            begun != Ok(true)
        })?;
        begun?;
    } else {
        let waits = with(|engine| {
            let waits = begin_join(engine, id, engine.current())?;
            if waits {
                engine.prepare_wait(WaitsFor::Join(id), NEVER);
            }
            Ok(waits)
        })??;
        if waits {
            leave(Leave::Wait)?;
        }
    }
    remote::on(id, |engine| {
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

/// Whether the end of the thread, which belongs to this engine, will wake `me`. False: it has
/// ended.
fn begin_join(engine: &Engine, id: ThreadId, me: ThreadRef) -> Result<bool> {
    let thread = engine.thread(id)?;
    if thread.detached.get() || thread.joiner.get().is_some() {
        return Err(Errno(libc::EINVAL));
    }
    if thread == me || waits_for_end_of(engine, me, thread) {
        return Err(Errno(libc::EDEADLK));
    }
    if thread.state.get() == State::Dead {
        return Ok(false);
    }
    thread.joiner.set(Some(me));
    Ok(true)
}

/// Whether `thread` waits, directly or through others of its worker, for the end of `end`.
fn waits_for_end_of(engine: &Engine, end: ThreadRef, thread: ThreadRef) -> bool {
    let mut next = Some(end);
    while let Some(ends) = next.filter(|ends| engine.has(*ends)) {
        next = ends.joiner.get();
        if next == Some(thread) {
            return true;
        }
    }
    false
}

pub fn detach(id: ThreadId) -> Result<()> {
    remote::on(id, |engine| {
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
    if remote::other(id)?.is_some() {
        return leave(Leave::Yield);
    }
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
    let me = with(|engine| engine.current())?;
    let myself = remote::on(id, |engine| {
        let thread = engine.living_thread(id)?;
        if thread == me {
            return engine.may_suspend(thread).map(|()| true);
        }
        engine.suspend_other(thread).map(|()| false)
    })??;
    if myself { leave(Leave::Suspend) } else { Ok(()) }
}

pub fn resume(id: ThreadId) -> Result<()> {
    remote::on(id, |engine| engine.living_thread(id).and_then(|thread| engine.resume(thread)))??;
    safe_point();
    Ok(())
}

pub fn set_userdata(id: ThreadId, userdata: *mut c_void) -> Result<()> {
    remote::on(id, |engine| {
        let thread = engine.thread(id)?;
        thread.set_userdata(userdata);
        engine.bindings.bind_thread_imports(thread);
        Ok(())
    })?
}
