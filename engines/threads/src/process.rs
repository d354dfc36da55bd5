//! The engines of this process: which OS thread may call which, and the switching of stacks.
//!
//! Each worker has an engine, and the program's first OS thread is the first worker. The main
//! program keeps the stack it came with, and there the worker's loop runs ([`run_from`]): it asks
//! the engine for the next thread and goes on with its stack; when it is the main program, the loop
//! returns into it. The loops of other workers run on the stacks of their OS threads. A thread that
//! leaves asks the engine on the loop's stack (handover.rs), and goes on with the next thread's
//! stack at once. So the handlers of a switch never use up a small stack.
//!
//! Invariants: an engine is touched only by its worker's OS thread, only inside [`with`], and
//! `with` is never entered twice (`busy`): a handler's verbatim code or a signal handler that calls
//! back gets EPERM. No stack is switched inside `with`.

use std::ffi::CStr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;

use crate::control;
use crate::engine::worker::{self, MOST_WORKERS, Worker};
use crate::engine::{Engine, modes};
use crate::errno::{Errno, Result};
use crate::handover::{self, Turn};
use crate::instruments;
use crate::load::{self, CompiledScheduler};
use crate::overflow;
use crate::report;
use crate::scheduler::Scheduler;
use crate::stack::StackPool;
use crate::thread::{Leave, ThreadRef};
use crate::trace::{self, recorder::Pen};

const NOBODY: usize = 0;
/// In a forked child, and while starting: every call fails.
const CLOSED: usize = 1;

/// See `struct attune_options`; zero means the default.
#[derive(Clone, Copy, Default)]
pub struct Settings<'a> {
    pub scheduler: Option<&'a CStr>,
    pub scheduler_in_program: Option<&'static CompiledScheduler>,
    pub stack_size: usize,
    pub stack_cache: usize,
    pub ignore_unknown_imports: bool,
    pub seed: u64,
    pub cluster: Option<&'a CStr>,
    pub workers: usize,
    pub preempt: bool,
    pub moves: bool,
}

/// Starts the engines, the first on the calling OS thread. EALREADY: they run.
pub fn start(settings: Settings) -> Result<()> {
    let owner = &worker::first().owner;
    if owner.compare_exchange(NOBODY, CLOSED, Relaxed, Relaxed).is_err() {
        return Err(Errno(libc::EALREADY));
    }
    let started = build(settings);
    owner.store(if started.is_ok() { worker::this_os_thread() } else { NOBODY }, Release);
    if let Some(gate) = started? {
        gate.wait();
    }
    Ok(())
}

/// The gate behind which the other workers wait, if there are any.
fn build(settings: Settings) -> Result<Option<Arc<Barrier>>> {
    let stacks = || StackPool::new(settings.stack_size, settings.stack_cache);
    let first_stacks = stacks()?;
    let count = workers(settings.workers)?;
    overflow::prepare()?;
    overflow::watch()?;
    instruments::find();
    // SAFETY: the handler only stores to an atomic.
    let watched = unsafe { libc::pthread_atfork(None, None, Some(close_in_child)) };
    if watched != 0 {
        return Err(Errno(watched));
    }
    let seed = std::env::var("ATTUNE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(settings.seed);
    let loaded = load::load(settings.scheduler, settings.scheduler_in_program);
    let mut scheduler = Scheduler::attach(loaded.scheduler(), seed);
    if let Some(cluster) = load::cluster(settings.cluster) {
        if count > 1 {
            report::cannot_start(
                "a node of a cluster has one worker, and ATTUNE_WORKERS or the program asks for \
                 more",
            );
        }
        if let Err(problem) = scheduler.join(&cluster) {
            report::cannot_start(&format!("{}: {problem}", scheduler.name().to_string_lossy()));
        }
    }
    let control = load::control();
    worker::prepare(count, control.is_some())?;
    // With one worker there is no other one to go to.
    let moves = count > 1 && load::moves(settings.moves, loaded);
    modes::opt_in(settings.preempt, moves);
    let first = worker::first();
    first.exceptions.find();
    let mut pens = trace::from_environment(count, loaded).into_iter();
    let ignore = settings.ignore_unknown_imports;
    let is_watched = control.is_some();
    let engine = Engine::start(first, scheduler, first_stacks, ignore, is_watched)?;
    // SAFETY: the worker is CLOSED, so no call looks at it.
    unsafe { *first.engine.get() = Some(traced(engine, pens.next())) };
    if let Some(place) = control
        && let Err(error) = control::start(&place, loaded)
    {
        report::cannot_start(&format!("ATTUNE_CONTROL={}: {error}", place.display()));
    }
    if count == 1 {
        return Ok(None);
    }
    let gate = Arc::new(Barrier::new(count));
    let built: Arc<[OnceLock<Result<()>>]> = (1..count).map(|_| OnceLock::new()).collect();
    for (place, &worker) in worker::all()[1..].iter().enumerate() {
        let (gate, built, stacks) = (gate.clone(), built.clone(), stacks()?);
        let pen = pens.next();
        // Each instance draws from a stream of its own.
        let seed = seed.wrapping_add(worker.index as u64);
        let body = move || {
            let scheduler = Scheduler::attach(loaded.scheduler(), seed);
            built[place]
                .get_or_init(|| build_other(worker, scheduler, stacks, ignore, is_watched, pen));
            // All are built, or the first worker ends the process; then all begin.
            gate.wait();
            gate.wait();
            run_from(with(|engine| Some(engine.begin())));
        };
        let name = format!("attune-{}", worker.index + 1);
        thread::Builder::new().name(name).spawn(body).map_err(|_| Errno(libc::EAGAIN))?;
    }
    gate.wait();
    for built in built.iter() {
        if let Some(Err(Errno(errno))) = built.get() {
            let error = std::io::Error::from_raw_os_error(*errno);
            report::cannot_start(&format!("a worker cannot start: {error}"));
        }
    }
    Ok(Some(gate))
}

/// On the OS thread of that worker.
fn build_other(
    worker: &'static Worker,
    scheduler: Scheduler,
    stacks: StackPool,
    ignore_unknown_imports: bool,
    is_watched: bool,
    pen: Option<Pen>,
) -> Result<()> {
    overflow::prepare()?;
    worker.exceptions.find();
    let engine = Engine::start(worker, scheduler, stacks, ignore_unknown_imports, is_watched)?;
    // SAFETY: no call looks at it before this OS thread is known as the worker.
    unsafe { *worker.engine.get() = Some(traced(engine, pen)) };
    worker::set_here(worker);
    Ok(())
}

/// The engine, whose trace begins where it began if there is one.
fn traced(mut engine: Engine, pen: Option<Pen>) -> Engine {
    if let Some(pen) = pen {
        engine.begin_trace(pen, i64::MIN);
    }
    engine
}

/// How many workers the environment or else the options ask for. EINVAL: too many.
fn workers(from_options: usize) -> Result<usize> {
    let Some(wanted) = std::env::var_os("ATTUNE_WORKERS").filter(|wanted| !wanted.is_empty())
    else {
        return if from_options <= MOST_WORKERS {
            Ok(from_options.max(1))
        } else {
            Err(Errno(libc::EINVAL))
        };
    };
    let number = wanted.to_str().and_then(|wanted| wanted.parse().ok());
    Ok(number.filter(|number| (1..=MOST_WORKERS).contains(number)).unwrap_or_else(|| {
        let wanted = wanted.to_string_lossy();
        report::cannot_start(&format!("ATTUNE_WORKERS={wanted}: it may be 1 to {MOST_WORKERS}"))
    }))
}

/// A child shares its parent's epoll instance and would disturb it; of a ring it lacks the memory.
extern "C" fn close_in_child() {
    worker::first().owner.store(CLOSED, Relaxed);
}

/// Runs `f` on the engine of the calling worker; the engines are started with the defaults if need
/// be. EPERM: not a worker's OS thread, or called from inside the engine. Errors of [`start`].
#[inline]
pub fn with<T>(f: impl FnOnce(&mut Engine) -> T) -> Result<T> {
    enter(here()?, f)
}

/// As [`with`], on the worker that the caller knows to be its own.
#[inline]
fn enter<T>(worker: &'static Worker, f: impl FnOnce(&mut Engine) -> T) -> Result<T> {
    // No locked exchange: only one OS thread gets here.
    if worker.busy.load(Relaxed) {
        return Err(Errno(libc::EPERM));
    }
    worker.busy.store(true, Relaxed);
    // SAFETY: this is the worker's OS thread, and `busy` says that no other reference is in use.
    let result = match unsafe { (*worker.engine.get()).as_mut() } {
        Some(engine) => Ok(f(engine)),
        None => Err(Errno(libc::EPERM)),
    };
    worker.busy.store(false, Relaxed);
    result
}

/// The running thread of the worker, which is the caller's. EPERM: called from inside the engine.
#[inline]
fn running(worker: &'static Worker) -> Result<ThreadRef> {
    if worker.busy.load(Relaxed) {
        return Err(Errno(libc::EPERM));
    }
    // SAFETY: as of `enter`; nothing else is done with the reference.
    let engine = unsafe { (*worker.engine.get()).as_ref() };
    engine.map(Engine::current).ok_or(Errno(libc::EPERM))
}

/// The running thread, if no other worker and no safe point can come between what the caller does
/// with it: the program has one worker, and has opted into nothing.
#[inline]
pub fn undisturbed() -> Option<ThreadRef> {
    if worker::several() || modes::any() {
        return None;
    }
    running(here().ok()?).ok()
}

/// The calling worker. Errors as of [`with`].
#[inline]
pub fn here() -> Result<&'static Worker> {
    let first = worker::first();
    if first.owner.load(Relaxed) == worker::this_os_thread() { Ok(first) } else { not_first() }
}

#[inline(never)]
fn not_first() -> Result<&'static Worker> {
    match worker::first().owner.load(Acquire) {
        NOBODY => match start(Settings::default()) {
            // Another OS thread was faster.
            Err(Errno(libc::EALREADY)) => Err(Errno(libc::EPERM)),
            other => other.map(|()| worker::first()),
        },
        CLOSED => Err(Errno(libc::EPERM)),
        _ => worker::here_if_not_first().ok_or(Errno(libc::EPERM)),
    }
}

/// Gives up the processor for the running thread, and returns when it is chosen again. The result
/// says how its wait ended.
#[inline]
pub fn leave(leave: Leave) -> Result<()> {
    let worker = here()?;
    let me = running(worker)?;
    if worker.exceptions.are_pending() {
        return leave_in_exception(me, worker, leave);
    }
    if me.sp.get() == 0 {
        leave_from_main(leave);
    } else if instruments::are_there() {
        handover::to_loop(me, worker, leave);
    } else if matches!(leave, Leave::Yield) {
        handover::to_chosen(me, worker, choose_after_yield);
    } else {
        worker.turn.set(Turn::Choose(leave));
        handover::to_chosen(me, worker, choose);
    }
    match me.outcome.get() {
        _ if !matches!(leave, Leave::Wait) => Ok(()),
        0 => Ok(()),
        outcome => Err(Errno(outcome)),
    }
}

/// The main program gives up the processor.
#[inline(never)]
fn leave_from_main(leave: Leave) {
    run_from(with(|engine| engine.switch(leave)));
}

/// The running thread has said in `turn` how it gives up the processor: where the worker goes on.
extern "C" fn choose(worker: &'static Worker) -> usize {
    match worker.turn.get() {
        Turn::Choose(leave) => go_on(worker, enter(worker, |engine| engine.switch(leave))),
        Turn::Run(chosen) => go_on(worker, chosen),
    }
}

/// The running thread yields: where the worker goes on.
extern "C" fn choose_after_yield(worker: &'static Worker) -> usize {
    go_on(worker, enter(worker, Engine::switch_by_yield))
}

/// Where the chosen thread goes on, or the loop, which knows what else there is to do.
#[inline]
fn go_on(worker: &'static Worker, chosen: Result<Option<ThreadRef>>) -> usize {
    match chosen {
        Ok(Some(next)) if next.sp.get() != 0 => {
            worker.runs(Some(next));
            next.sp.get()
        }
        _ => {
            worker.turn.set(Turn::Run(chosen));
            worker.view.sp.get()
        }
    }
}

/// As [`leave`], while the running thread has C++ exceptions of its own. Until it goes on it stays
/// on its worker, whose record they are put back into.
#[cold]
fn leave_in_exception(me: ThreadRef, worker: &Worker, why: Leave) -> Result<()> {
    let kept = worker.exceptions.put_aside();
    me.pins.set(me.pins.get().saturating_add(1));
    let result = leave(why);
    me.pins.set(me.pins.get().saturating_sub(1));
    worker.exceptions.put_back(kept);
    result
}

/// Ends the running thread.
pub fn exit() -> ! {
    if leave(Leave::Exit).is_err() {
        report::note("attune_exit was called outside the engine's threads");
    }
    // A thread that has left for good is never chosen again.
    std::process::abort()
}

/// Runs threads, from the given one on, until the main program is chosen. The main program has just
/// left, and this runs on its stack; on other workers it never returns.
fn run_from(mut next: Result<Option<ThreadRef>>) {
    let Ok(worker) = here() else { return };
    while let Ok(chosen) = next {
        let Some(chosen) = chosen else { std::process::exit(0) };
        if chosen.sp.get() == 0 {
            worker.runs(None);
            return;
        }
        worker.runs(Some(chosen));
        worker.side.leaves(|| &chosen.side, false);
        // SAFETY: just chosen.
        unsafe { handover::from_loop(worker, chosen) };
        // Where another thread has left, nobody watches.
        worker.side.arrived(|| &chosen.side);
        next = match worker.turn.get() {
            Turn::Run(chosen) => chosen,
            // A thread that ends has not just asked whether this process may call its engines.
            Turn::Choose(Leave::Exit) => with(|engine| engine.switch(Leave::Exit)),
            Turn::Choose(leave) => enter(worker, |engine| engine.switch(leave)),
        };
    }
}
