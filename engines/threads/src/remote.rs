//! Work on the engine of another worker: the calling thread waits, its worker's other threads go
//! on, and the other worker does the work when it next switches threads. Work on a thread follows
//! the thread: a worker that does not have it hands it to the thread's home, and that to the worker
//! that has it.
//!
//! Invariant: what a call borrows lies on the stack of a thread that does not run before the call
//! is over, since nothing but the end of the call ends its wait.

use std::ptr;

use crate::clock::NEVER;
use crate::engine::Engine;
use crate::engine::worker::{self, Message, Worker};
use crate::errno::{Errno, Result};
use crate::process::{here, leave, with};
use crate::thread::{Leave, ThreadId, WaitsFor};

/// Runs `f` on the engine that has the thread; 0 is the running thread.
#[inline]
pub fn on<T>(thread: ThreadId, f: impl FnOnce(&mut Engine) -> T) -> Result<T> {
    match other(thread)? {
        Some(worker) => call(worker, Some(thread), f),
        None => with(f),
    }
}

/// The worker to ask for the thread, if it is not the caller's.
#[inline]
pub fn other(thread: ThreadId) -> Result<Option<&'static Worker>> {
    // Before the engines start there is no other thread to name.
    if thread == 0 || !worker::several() {
        return Ok(None);
    }
    worker::home_of(thread)?;
    with(|engine| engine.whereabouts(thread))
}

/// Runs `f` on the engine of that worker, which may be the caller's.
pub fn on_worker<T>(worker: &'static Worker, f: impl FnOnce(&mut Engine) -> T) -> Result<T> {
    if ptr::eq(worker, here()?) { with(f) } else { call(worker, None, f) }
}

/// Runs `f` on every engine, the first worker's first, until one fails.
pub fn everywhere(mut f: impl FnMut(&mut Engine) -> Result<()>) -> Result<()> {
    here()?;
    worker::all().iter().try_for_each(|worker| on_worker(worker, &mut f)?)
}

/// As [`everywhere`], on the engines of all workers but the caller's.
pub fn elsewhere(mut f: impl FnMut(&mut Engine)) -> Result<()> {
    let here = here()?;
    let mut others = worker::all().iter().filter(|worker| !ptr::eq(**worker, here));
    others.try_for_each(|worker| call(worker, None, &mut f))
}

fn call<T>(
    worker: &'static Worker,
    about: Option<ThreadId>,
    f: impl FnOnce(&mut Engine) -> T,
) -> Result<T> {
    let mut result = None;
    ask(worker, about, WaitsFor::Worker(worker.index), |engine| {
        result = Some(f(engine));
        true
    })?;
    result.ok_or(Errno(libc::EPERM))
}

/// Runs `f` on the engine of another worker or, if it is about a thread, of the worker that has it
/// by then. The wait ends at once where `f` says so, and else when something there wakes the
/// calling thread.
pub fn ask(
    worker: &'static Worker,
    about: Option<ThreadId>,
    waits_for: WaitsFor,
    f: impl FnOnce(&mut Engine) -> bool,
) -> Result<()> {
    with(|engine| {
        let me = engine.current();
        engine.prepare_wait(waits_for, NEVER);
        let run: Box<dyn FnOnce(&mut Engine) + '_> = Box::new(move |engine: &mut Engine| {
            if f(engine) {
                engine.wake(me, 0);
            }
        });
        // SAFETY: what `f` borrows outlives the wait below, see the module's invariant.
        let run = unsafe {
            std::mem::transmute::<Box<dyn FnOnce(&mut Engine) + '_>, Box<dyn FnOnce(&mut Engine)>>(
                run,
            )
        };
        worker.post(match about {
            Some(thread) => Message::About(thread, run),
            None => Message::Call(run),
        });
    })?;
    leave(Leave::Wait)
}
