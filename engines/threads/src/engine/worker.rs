//! A worker: an OS thread with an engine of its own, and the inbox by which other workers reach it.
//!
//! The first worker is the OS thread that started the library, and a program has only this one
//! unless it asks for more. A thread's number says on which worker it was created, its *home*, and
//! there it stays unless threads may move (moves.rs).
//!
//! Invariants: only its own OS thread touches a worker's engine and the threads that it has, apart
//! from a thread's place in the queue of a mutex, a condition or a semaphore (see sync.rs). Other
//! workers post messages, which the engine takes when it switches threads. A worker sleeps only
//! after it has said so and has then found its inbox empty, so no message waits for a sleeper.
//! A message to the worker that `at` names comes behind the thread.

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst,
};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::debugger::{self, View};
use crate::engine::Engine;
use crate::engine::board::Board;
use crate::errno::{Errno, Result, check};
use crate::handover::Turn;
use crate::instruments::{self, Side};
use crate::thread::{Leave, Thread, ThreadId, ThreadRef};
use crate::unwinding::Exceptions;

pub const MOST_WORKERS: usize = 64;

pub type Call = Box<dyn FnOnce(&mut Engine)>;

/// What one worker tells another.
pub enum Message {
    /// The thread's wait is over, with this outcome.
    Wake(ThreadRef, i32),
    /// To be run on the engine.
    Call(Call),
    /// To be run on the engine that has the thread of that number.
    About(ThreadId, Call),
    /// A worker without ready threads asks for one.
    Asks,
    /// A thread is this worker's from now on. `alarm`: when it comes. `from`: the index of the
    /// worker that had it.
    Arrives { thread: ThreadRef, alarm: Option<i64>, from: usize },
    /// A thread that was created here has ended elsewhere.
    Ended(ThreadRef),
    /// No thread of the process can ever run again: say what yours are doing.
    Describe,
}

// SAFETY: a thread that is named belongs to the worker that receives the message. What a call has
// borrowed stays where it is, and untouched, until the call is over (see remote.rs).
unsafe impl Send for Message {}

pub struct Worker {
    /// From 0; programs count from 1.
    pub index: usize,
    /// The OS thread, or one of the constants of process.rs.
    pub owner: AtomicUsize,
    /// A reference to the engine is in use.
    pub busy: AtomicBool,
    /// The running thread, for the fault handler; null for the program's first one.
    pub running: AtomicPtr<Thread>,
    /// What debuggers look for.
    pub view: View,
    /// The stack on which it chooses, for tools that watch memory.
    pub side: Side,
    /// What the thread that has left leaves to do.
    pub turn: Cell<Turn>,
    /// C++ exceptions of the running thread.
    pub exceptions: Exceptions,
    pub engine: UnsafeCell<Option<Engine>>,
    /// What other workers see of its ready threads.
    pub board: Board,
    /// Threads that have not ended. Kept only where there are several workers.
    load: AtomicUsize,
    has_mail: AtomicBool,
    messages: Mutex<Vec<Message>>,
    asleep: AtomicBool,
    /// An eventfd that ends the sleep; -1 where no other OS thread posts messages.
    bell: AtomicI32,
}

// SAFETY: by the module's invariants one OS thread touches `engine`, `side`, `turn`, `exceptions`
// and the view's `sp`; the rest is made for sharing.
unsafe impl Sync for Worker {}

static FIRST: Worker = Worker::new(0);
static ONLY_FIRST: [&Worker; 1] = [&FIRST];
static ALL: OnceLock<Box<[&'static Worker]>> = OnceLock::new();
static SEVERAL: AtomicBool = AtomicBool::new(false);
/// Bits of a thread's number that say its worker.
static BITS: AtomicU32 = AtomicU32::new(0);
/// Threads of all workers that have not ended, where there are several.
static LIVING: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    static HERE: Cell<Option<&'static Worker>> = const { Cell::new(None) };
}

/// The worker that the program's first thread belongs to.
#[inline]
pub fn first() -> &'static Worker {
    &FIRST
}

/// Whether the program has more than one worker.
#[inline]
pub fn several() -> bool {
    SEVERAL.load(Relaxed)
}

pub fn all() -> &'static [&'static Worker] {
    ALL.get().map_or(&ONLY_FIRST, |all| all)
}

/// Number of bits of a thread's number that say its worker.
pub fn number_bits() -> u32 {
    BITS.load(Relaxed)
}

/// The worker, but the first, that this OS thread is.
pub fn here_if_not_first() -> Option<&'static Worker> {
    HERE.get()
}

pub fn set_here(worker: &'static Worker) {
    HERE.set(Some(worker));
}

/// The calling worker, if this OS thread is one. A signal handler may ask.
pub fn known() -> Option<&'static Worker> {
    if FIRST.owner.load(Relaxed) == this_os_thread() { Some(&FIRST) } else { HERE.get() }
}

pub fn this_os_thread() -> usize {
    // SAFETY: always allowed.
    (unsafe { libc::pthread_self() }) as usize
}

/// The worker that has the thread or, while it moves, is to have it.
#[inline]
pub fn with(thread: ThreadRef) -> &'static Worker {
    all().get(thread.at.load(Relaxed)).copied().unwrap_or(&FIRST)
}

/// The worker that created the thread of that number. ESRCH: there is no such worker.
pub fn home_of(thread: ThreadId) -> Result<&'static Worker> {
    let index = (thread.wrapping_sub(1) & ((1 << number_bits()) - 1)) as usize;
    all().get(index).copied().ok_or(Errno(libc::ESRCH))
}

/// The worker with the fewest threads that have not ended.
pub fn least_loaded() -> &'static Worker {
    all().iter().min_by_key(|worker| worker.load.load(Relaxed)).copied().unwrap_or(&FIRST)
}

/// Makes `count` workers of one, before the first engine starts. `is_asked`: an OS thread that is
/// no worker posts messages. Errors of eventfd(2).
pub fn prepare(count: usize, is_asked: bool) -> Result<()> {
    if count < 2 {
        if is_asked {
            FIRST.hang_up_bell()?;
        }
        debugger::has_workers();
        return Ok(());
    }
    let more = (1..count).map(|index| &*Box::leak(Box::new(Worker::new(index))));
    let workers: Box<[&'static Worker]> = std::iter::once(&FIRST).chain(more).collect();
    for worker in &workers {
        worker.hang_up_bell()?;
    }
    FIRST.load.store(1, Relaxed);
    BITS.store(count.next_power_of_two().trailing_zeros(), Relaxed);
    SEVERAL.store(ALL.set(workers).is_ok(), Relaxed);
    debugger::has_workers();
    Ok(())
}

impl Worker {
    const fn new(index: usize) -> Worker {
        Worker {
            index,
            owner: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            view: View::new(),
            side: Side::new(),
            turn: Cell::new(Turn::Choose(Leave::Exit)),
            exceptions: Exceptions::new(),
            running: AtomicPtr::new(ptr::null_mut()),
            engine: UnsafeCell::new(None),
            board: Board::new(),
            load: AtomicUsize::new(0),
            has_mail: AtomicBool::new(false),
            messages: Mutex::new(Vec::new()),
            asleep: AtomicBool::new(false),
            bell: AtomicI32::new(-1),
        }
    }

    /// Whether the thread, which waits or which this worker has, is this worker's.
    #[inline]
    pub fn has(&self, thread: ThreadRef) -> bool {
        thread.at.load(Relaxed) == self.index
    }

    /// The thread that runs from now on; None: the program's first one, whose stack the system
    /// guards.
    #[inline]
    pub fn runs(&self, thread: Option<ThreadRef>) {
        let thread = thread.map_or(ptr::null_mut(), |thread| thread.as_ptr().cast_mut());
        self.running.store(thread, Relaxed);
    }

    /// A thread has been created.
    pub fn count_in(&self) {
        if several() {
            self.load.fetch_add(1, Relaxed);
            LIVING.fetch_add(1, SeqCst);
        }
    }

    /// A thread that was counted here is counted there from now on.
    pub fn passes_load_to(&self, other: &Worker) {
        self.load.fetch_sub(1, Relaxed);
        other.load.fetch_add(1, Relaxed);
        other.board.gets_one_more();
    }

    /// A thread has ended, and so many are left here. True: it was the last of the process.
    pub fn count_out(&self, left: u64) -> bool {
        if !several() {
            return left == 0;
        }
        self.load.fetch_sub(1, Relaxed);
        LIVING.fetch_sub(1, SeqCst) == 1
    }

    /// The descriptor by which OS threads that are no workers end its sleep. Errors of eventfd(2).
    pub fn ensure_bell(&self) -> Result<libc::c_int> {
        if self.bell().is_none() {
            self.hang_up_bell()?;
        }
        Ok(self.bell.load(Relaxed))
    }

    fn hang_up_bell(&self) -> Result<()> {
        // SAFETY: a plain system call.
        let bell = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        self.bell.store(bell, Relaxed);
        Ok(())
    }

    /// The descriptor that polls watch.
    pub fn bell(&self) -> Option<libc::c_int> {
        Some(self.bell.load(Relaxed)).filter(|bell| *bell >= 0)
    }

    pub fn post(&self, message: Message) {
        self.deliver(message, || {});
    }

    /// As [`Worker::post`], of a message with which this worker gets the thread.
    pub fn receive(&self, thread: ThreadRef, message: Message) {
        self.deliver(message, || thread.at.store(self.index, Relaxed));
    }

    /// `meanwhile`: what happens together with the message.
    fn deliver(&self, message: Message, meanwhile: impl FnOnce()) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        instruments::acquired(self);
        meanwhile();
        messages.push(message);
        instruments::released(self);
        drop(messages);
        self.has_mail.store(true, SeqCst);
        if self.asleep.swap(false, SeqCst) {
            let one = 1u64;
            // SAFETY: eight readable bytes. It fails only where the counter is full, which rings.
            unsafe { libc::write(self.bell.load(Relaxed), (&raw const one).cast(), 8) };
        }
    }

    /// Has this worker, which is the caller's, look into its inbox at its next switch.
    pub fn reminds_itself(&self) {
        self.has_mail.store(true, Relaxed);
    }

    #[inline]
    pub fn has_mail(&self) -> bool {
        self.has_mail.load(Relaxed)
    }

    /// Takes all messages.
    pub fn take_mail(&self) -> Vec<Message> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_mail.store(false, SeqCst);
        instruments::acquired(self);
        let taken = std::mem::take(&mut *messages);
        instruments::released(self);
        taken
    }

    /// Says that this worker is about to sleep. False: it must look into its inbox first.
    pub fn falls_asleep(&self) -> bool {
        self.asleep.store(true, SeqCst);
        !self.has_mail.load(SeqCst)
    }

    /// Ends what [`Worker::falls_asleep`] began.
    pub fn wakes_up(&self) {
        self.asleep.store(false, SeqCst);
        let mut rings = 0u64;
        // SAFETY: room for eight bytes; a bell that has not rung says EAGAIN.
        unsafe { libc::read(self.bell.load(Relaxed), (&raw mut rings).cast(), 8) };
    }
}
