//! The one engine of this process: which OS thread may call it, and the switching of stacks.
//!
//! The main program keeps the stack it came with, and that is also where all choosing happens: a
//! thread that leaves suspends its fiber, the loop in [`choose_and_run`], on the main program's
//! stack, asks the engine for the next and resumes that one; when it is the main program, the loop
//! returns into it. So the scheduler's handlers never use up a small stack.
//!
//! Invariants: the engine is touched only by the OS thread `OWNER`, only inside [`with`], and
//! `with` is never entered twice (`BUSY`): a handler's verbatim code or a signal handler that calls
//! back gets EPERM. No stack is switched inside `with`, except that the main loop holds nothing of
//! the engine while another thread runs.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::engine::Engine;
use crate::errno::{Errno, Result};
use crate::load;
use crate::overflow;
use crate::report;
use crate::scheduler::Scheduler;
use crate::stack::StackPool;
use crate::thread::Leave;

static OWNER: AtomicUsize = AtomicUsize::new(NOBODY);
static BUSY: AtomicBool = AtomicBool::new(false);
static ENGINE: Slot = Slot(UnsafeCell::new(None));

const NOBODY: usize = 0;
/// In a forked child, and while starting: every call fails.
const CLOSED: usize = 1;

struct Slot(UnsafeCell<Option<Engine>>);

// SAFETY: touched only by OWNER, see the module's invariants.
unsafe impl Sync for Slot {}

/// See `struct attune_options`; zero means the default.
#[derive(Clone, Copy, Default)]
pub struct Settings<'a> {
    pub scheduler: Option<&'a CStr>,
    pub stack_size: usize,
    pub stack_cache: usize,
    pub ignore_unknown_imports: bool,
    pub seed: u64,
    pub cluster: Option<&'a CStr>,
}

/// Starts the engine on the calling OS thread. EALREADY: it runs.
pub fn start(settings: Settings) -> Result<()> {
    if OWNER.compare_exchange(NOBODY, CLOSED, Relaxed, Relaxed).is_err() {
        return Err(Errno(libc::EALREADY));
    }
    let started = build(settings);
    let owner = if started.is_ok() { this_os_thread() } else { NOBODY };
    OWNER.store(owner, Relaxed);
    started
}

fn build(settings: Settings) -> Result<()> {
    let stacks = StackPool::new(settings.stack_size, settings.stack_cache)?;
    overflow::watch()?;
    // SAFETY: the handler only stores to an atomic.
    let watched = unsafe { libc::pthread_atfork(None, None, Some(close_in_child)) };
    if watched != 0 {
        return Err(Errno(watched));
    }
    let seed = std::env::var("ATTUNE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(settings.seed);
    let mut scheduler = Scheduler::attach(load::load(settings.scheduler), seed);
    if let Some(cluster) = load::cluster(settings.cluster)
        && let Err(problem) = scheduler.join(&cluster)
    {
        report::cannot_start(&format!("{}: {problem}", scheduler.name().to_string_lossy()));
    }
    let engine = Engine::start(scheduler, stacks, settings.ignore_unknown_imports)?;
    // SAFETY: OWNER is CLOSED, so no call looks at it.
    unsafe { *ENGINE.0.get() = Some(engine) };
    Ok(())
}

/// A child shares its parent's epoll instance and would disturb it.
extern "C" fn close_in_child() {
    OWNER.store(CLOSED, Relaxed);
}

/// Runs `f` on the engine, which is started with the defaults if need be.
/// EPERM: not the engine's OS thread, or called from inside the engine. Errors of [`start`].
#[inline]
pub fn with<T>(f: impl FnOnce(&mut Engine) -> T) -> Result<T> {
    if OWNER.load(Relaxed) != this_os_thread() {
        start_or_refuse()?;
    }
    // No locked exchange: only one OS thread gets here.
    if BUSY.load(Relaxed) {
        return Err(Errno(libc::EPERM));
    }
    BUSY.store(true, Relaxed);
    // SAFETY: this is the owner, and BUSY says that no other reference is in use.
    let result = match unsafe { (*ENGINE.0.get()).as_mut() } {
        Some(engine) => Ok(f(engine)),
        None => Err(Errno(libc::EPERM)),
    };
    BUSY.store(false, Relaxed);
    result
}

#[cold]
fn start_or_refuse() -> Result<()> {
    match OWNER.load(Relaxed) {
        NOBODY => match start(Settings::default()) {
            // Another OS thread was faster.
            Err(Errno(libc::EALREADY)) => Err(Errno(libc::EPERM)),
            other => other,
        },
        _ => Err(Errno(libc::EPERM)),
    }
}

fn this_os_thread() -> usize {
    // SAFETY: always allowed.
    (unsafe { libc::pthread_self() }) as usize
}

/// Gives up the processor for the running thread, and returns when it is chosen again. The result
/// says how its wait ended.
pub fn leave(leave: Leave) -> Result<()> {
    let me = with(|engine| engine.current())?;
    // SAFETY: set when the fiber began, valid until it ends; null in the main program.
    match unsafe { me.yielder.get().as_ref() } {
        Some(yielder) => yielder.suspend(leave),
        None => choose_and_run(leave),
    }
    match me.outcome.get() {
        _ if !matches!(leave, Leave::Wait) => Ok(()),
        0 => Ok(()),
        outcome => Err(Errno(outcome)),
    }
}

/// Ends the running thread.
pub fn exit() -> ! {
    if leave(Leave::Exit).is_err() {
        report::note("attune_exit was called outside the engine's threads");
    }
    // A thread that has left for good is never chosen again.
    std::process::abort()
}

/// Runs other threads until the main program is chosen. The main program has just left, and this
/// runs on its stack.
fn choose_and_run(mut leave: Leave) {
    loop {
        let Ok(next) = with(|engine| engine.switch(leave)) else { return };
        let Some(next) = next else { std::process::exit(0) };
        // SAFETY: the fiber belongs to a living thread that is not running.
        let Some(fiber) = (unsafe { (*next.fiber.get()).as_mut() }) else {
            overflow::runs(None);
            return;
        };
        overflow::runs(Some(next));
        leave = fiber.resume(()).as_yield().unwrap_or(Leave::Exit);
    }
}
