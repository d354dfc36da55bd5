//! Starting, threads, numbers.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{CString, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{ptr, thread};

use super::nanoseconds;
use crate::clock::{self, NEVER};
use crate::engine::{New, worker};
use crate::errno::Errno;
use crate::io::sleep_until as sleep_to;
use crate::load::CompiledScheduler;
use crate::operations::{self, Place};
use crate::preemption;
use crate::process::{self, Settings, here, leave, with};
use crate::statistics::{self, Statistics};
use crate::thread::{Body, Leave};

/// A thread's number. Never used again after the thread; the program itself is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(pub u64);

/// How the library starts; the defaults are those of `struct attune_options`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A compiled scheduler, used when ATTUNE_SCHED is unset.
    pub scheduler: Option<PathBuf>,
    /// One that is part of the program ([`compiled_scheduler!`](crate::compiled_scheduler)), used
    /// when neither names a file.
    pub scheduler_in_program: Option<&'static CompiledScheduler>,
    /// Bytes of a thread's stack; 0: 256 KiB.
    pub stack_size: usize,
    /// Stacks kept for new threads when theirs end; 0: all. The kernel may take the memory of all
    /// but 4096 when it runs short and the program has had nothing to do.
    pub stack_cache: usize,
    /// Registering a name that the scheduler lacks succeeds quietly.
    pub ignore_unknown_imports: bool,
    /// The seed of `random(n)` in the scheduler.
    pub seed: u64,
    /// The cluster whose node this process is, used when ATTUNE_CLUSTER is unset.
    pub cluster: Option<String>,
    /// Workers, used when ATTUNE_WORKERS is unset; 0: one.
    pub workers: usize,
    /// A thread whose slice is over gives way at its safe points, such as [`check`].
    pub preempt: bool,
}

/// Starts the library on the calling OS thread. Optional: any other call starts it with the
/// defaults. Ends the process with status 2 if the scheduler cannot be used.
///
/// # Errors
/// EALREADY: it runs already. EINVAL: no such path or stack size. ENOMEM, EMFILE, ENFILE.
pub fn init(options: &Options) -> io::Result<()> {
    let path = options
        .scheduler
        .as_ref()
        .map(|path| CString::new(path.as_os_str().as_bytes()))
        .transpose()?;
    let cluster = options.cluster.as_deref().map(CString::new).transpose()?;
    Ok(process::start(Settings {
        scheduler: path.as_deref(),
        scheduler_in_program: options.scheduler_in_program,
        stack_size: options.stack_size,
        stack_cache: options.stack_cache,
        ignore_unknown_imports: options.ignore_unknown_imports,
        seed: options.seed,
        cluster: cluster.as_deref(),
        workers: options.workers,
        preempt: options.preempt,
        // A Rust thread may hold what is not Send from one call to the next, so it stays.
        moves: false,
    })?)
}

/// The settings of a new thread.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    name: String,
    stack_size: usize,
    userdata: Option<ptr::NonNull<c_void>>,
}

impl Builder {
    pub fn new() -> Builder {
        Builder::default()
    }

    /// For messages; cut to 31 bytes.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = name.into();
        self
    }

    /// Bytes, rounded up to pages, at least 16 KiB.
    pub fn stack_size(mut self, size: usize) -> Builder {
        self.stack_size = size;
        self
    }

    /// What thread imports registered by offset point into; in force before the scheduler sees the
    /// thread.
    pub fn userdata(mut self, userdata: ptr::NonNull<c_void>) -> Builder {
        self.userdata = Some(userdata);
        self
    }

    /// A thread that runs `f` when the scheduler chooses it, on the caller's worker.
    ///
    /// # Errors
    /// EAGAIN: no memory for its stack. EINVAL: stack size too large, or a NUL in the name. EPERM:
    /// a foreign OS thread.
    pub fn spawn<T: 'static>(self, f: impl FnOnce() -> T + 'static) -> io::Result<JoinHandle<T>> {
        self.start(Place::Here, f)
    }

    /// As [`Builder::spawn`], on any worker, where the thread stays: another OS thread may run `f`
    /// and make its result. The caller waits until that worker next switches threads.
    ///
    /// ```compile_fail
    /// # use attune_threads::{Builder, Worker};
    /// let here = std::rc::Rc::new(1);
    /// Builder::new().spawn_on(Worker::LeastLoaded, move || println!("{here}"));
    /// ```
    ///
    /// # Errors
    /// As there. EINVAL: no such worker, too.
    pub fn spawn_on<T: Send + 'static>(
        self,
        worker: Worker,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        self.start(worker.place(), f)
    }

    /// What `f` is, and its result, may go to the OS thread of that place.
    fn start<T: 'static>(
        self,
        place: Place,
        f: impl FnOnce() -> T + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let name = CString::new(if self.name.is_empty() { "thread".into() } else { self.name })?;
        let packet: Packet<T> = Arc::new(Cell::new(None));
        let ours = packet.clone();
        let run = move || ours.set(Some(catch_unwind(AssertUnwindSafe(f))));
        let new = New {
            name: &name,
            stack_size: self.stack_size,
            userdata: self.userdata.map_or(ptr::null_mut(), ptr::NonNull::as_ptr),
            detached: false,
            pinned: false,
            body: Body::Rust(Box::new(run)),
        };
        let id = operations::create(new, place)?;
        Ok(JoinHandle { id: ThreadId(id), packet, joined: false })
    }
}

/// Where a new thread lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// The one with the fewest threads that have not ended.
    LeastLoaded,
    /// From 1 to [`workers`].
    Number(usize),
}

impl Worker {
    fn place(self) -> Place {
        match self {
            Worker::LeastLoaded => Place::LeastLoaded,
            // 0 is none either.
            Worker::Number(number) => Place::Worker(number.wrapping_sub(1)),
        }
    }
}

/// Set by the thread before it ends, on its worker, and taken by the thread that has joined it,
/// which its end precedes. If none does, the last of the two drops what is there.
type Packet<T> = Arc<Cell<Option<thread::Result<T>>>>;

/// The right to a thread's result. Dropped, it lets the thread go on unjoined.
pub struct JoinHandle<T> {
    id: ThreadId,
    packet: Packet<T>,
    joined: bool,
}

impl<T> JoinHandle<T> {
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Waits until the thread ends.
    ///
    /// # Errors
    /// What it panicked with, as with std's threads; an [`io::Error`] in the box if it cannot be
    /// joined (EDEADLK) or has ended without a result (ECANCELED: with attune_exit).
    pub fn join(mut self) -> thread::Result<T> {
        let failed = |errno: Errno| Box::new(io::Error::from(errno)) as Box<dyn Any + Send>;
        operations::join(self.id.0).map_err(failed)?;
        self.joined = true;
        self.packet.take().unwrap_or_else(|| Err(failed(Errno(libc::ECANCELED))))
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if !self.joined {
            // It fails only where there is nothing left to detach.
            let _ = operations::detach(self.id.0);
        }
    }
}

/// [`Builder::spawn`] with the defaults.
///
/// # Errors
/// As there.
pub fn spawn<T: 'static>(f: impl FnOnce() -> T + 'static) -> io::Result<JoinHandle<T>> {
    Builder::new().spawn(f)
}

/// [`Builder::spawn_on`] with the defaults.
///
/// # Errors
/// As there.
pub fn spawn_on<T: Send + 'static>(
    worker: Worker,
    f: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().spawn_on(worker, f)
}

/// How many workers there are. EPERM: a foreign OS thread.
pub fn workers() -> io::Result<usize> {
    Ok(here().map(|_| worker::all().len())?)
}

/// The number of the worker on which the calling thread runs, from 1. EPERM: a foreign OS thread.
pub fn worker() -> io::Result<usize> {
    Ok(here().map(|worker| worker.index + 1)?)
}

/// The running thread. EPERM: a foreign OS thread.
pub fn current() -> io::Result<ThreadId> {
    Ok(with(|engine| ThreadId(engine.current().id))?)
}

/// Lets the scheduler choose again. EPERM: a foreign OS thread.
pub fn yield_now() -> io::Result<()> {
    Ok(leave(Leave::Yield)?)
}

/// A safe point: the calling thread gives way if its slice is over, or if the scheduler wants to
/// choose again. Nothing without [`Options::preempt`], and while a panic unwinds. EPERM: a foreign
/// OS thread.
pub fn check() -> io::Result<()> {
    Ok(preemption::check()?)
}

/// How long the calling thread may still run before it gives way at a safe point. None: nothing
/// ends its stay. EPERM: a foreign OS thread.
pub fn timeslice_left() -> io::Result<Option<Duration>> {
    let left = preemption::slice_left()?;
    Ok((left != NEVER).then(|| Duration::from_nanos(left.unsigned_abs())))
}

/// Yields and asks the scheduler to choose `thread` next. ESRCH; EAGAIN: it is not ready to run.
pub fn yield_to(thread: ThreadId) -> io::Result<()> {
    Ok(operations::yield_to(thread.0)?)
}

/// Keeps a thread, possibly the calling one, from running until [`resume`].
/// ESRCH; EALREADY: it is suspended; ENOTSUP: the scheduler cannot suspend.
pub fn suspend(thread: ThreadId) -> io::Result<()> {
    Ok(operations::suspend(thread.0)?)
}

/// ESRCH; EINVAL: it is not suspended.
pub fn resume(thread: ThreadId) -> io::Result<()> {
    Ok(operations::resume(thread.0)?)
}

/// Now, in nanoseconds of CLOCK_MONOTONIC.
pub fn now() -> i64 {
    clock::now()
}

pub fn sleep(duration: Duration) -> io::Result<()> {
    Ok(sleep_to(clock::deadline(nanoseconds(duration)))?)
}

/// Until a time on the clock of [`now`]; one that has passed is a yield.
pub fn sleep_until(time: i64) -> io::Result<()> {
    Ok(sleep_to(time)?)
}

/// The name of the scheduler that runs.
pub fn scheduler_name() -> io::Result<String> {
    Ok(with(|engine| engine.scheduler.name().to_string_lossy().into_owned())?)
}

/// Numbers about the engine and its threads.
pub fn statistics() -> io::Result<Statistics> {
    Ok(statistics::collect()?)
}
