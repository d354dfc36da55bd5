//! The one [`State`] of this process: its lock, the thread that looks for engines, and what must
//! happen when a thread ends and when the process forks.
//!
//! The lock is a pthread mutex, since fork takes it in the parent and releases it in the child.

use std::cell::{Cell, UnsafeCell};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use attune_linux::time::SECOND;
use attune_linux::watch::Place;
use attune_linux::{poll, process, signal};
use attune_values::wire;

use crate::error::Error;
use crate::state::State;

/// How often an engine is looked for where nothing says that one has come, in ns.
const LOOK_AGAIN: u64 = SECOND;

struct Global {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    state: UnsafeCell<Option<State>>,
}

// SAFETY: the state is reached with the lock held only.
unsafe impl Sync for Global {}

static GLOBAL: Global =
    Global { lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), state: UnsafeCell::new(None) };

/// The storage of a thread's value. From the first one on, a thread of ours looks for engines.
pub fn import(thread: i32, name: &str) -> Result<&'static AtomicI64, Error> {
    let value = with(|state| {
        if !state.watched {
            notice_forks()?;
            state.connect();
            watch(state)?;
        }
        state.import(thread, name)
    })?;
    if thread == process::this_thread() as i32 {
        notice_end();
    }
    Ok(value)
}

/// Whether a scheduler is there that has all these thread imports. Connects to it then, and
/// otherwise starts nothing.
pub fn wanted(names: &[&str]) -> Result<bool, Error> {
    with(|state| {
        if state.watched {
            return Ok(state.is_offered(names));
        }
        if !state.connect_if_offered(names, notice_forks)? {
            return Ok(false);
        }
        watch(state)?;
        Ok(true)
    })
}

/// Does something with the state, which no other thread sees meanwhile.
pub fn with<T>(job: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
    struct Held;
    impl Drop for Held {
        fn drop(&mut self) {
            unlock();
        }
    }
    lock();
    let _held = Held;
    // SAFETY: the lock is held, by this thread alone, until `_held` is dropped.
    let state = unsafe { &mut *GLOBAL.state.get() };
    if state.is_none() {
        *state = Some(State::new()?);
    }
    match state {
        Some(state) => job(state),
        None => Err(io::Error::from(io::ErrorKind::OutOfMemory).into()),
    }
}

fn lock() {
    // SAFETY: a mutex that is initialised, and never destroyed.
    unsafe { libc::pthread_mutex_lock(GLOBAL.lock.get()) };
}

fn unlock() {
    // SAFETY: held by this thread.
    unsafe { libc::pthread_mutex_unlock(GLOBAL.lock.get()) };
}

/// Starts the thread that looks for engines. The program's signals stay away from it.
fn watch(state: &mut State) -> io::Result<()> {
    let builder = std::thread::Builder::new().name("attune-values".to_owned()).stack_size(64 << 10);
    signal::while_blocked(|| builder.spawn(look_for_engines))?;
    state.watched = true;
    Ok(())
}

/// Sleeps until the engine is gone, or until it is time to look for one.
fn look_for_engines() {
    loop {
        let fd = match with(|state| Ok(state.link.as_ref().map(AsRawFd::as_raw_fd))) {
            Ok(Some(fd)) => fd,
            _ => {
                wait_for_engine();
                continue;
            }
        };
        // Only its end counts here: answers belong to the thread that asked. The wait is short,
        // since the number may be another descriptor's by then.
        let mut wait = [poll::pollfd { fd, events: poll::HUNG_UP, revents: 0 }];
        if poll::wait(&mut wait, LOOK_AGAIN).is_ok_and(|ready| ready > 0) {
            let _ = with(|state| {
                if state.link.as_ref().is_some_and(|link| link.as_raw_fd() == fd) {
                    state.link = None;
                }
                Ok(())
            });
        }
    }
}

/// Connects as soon as an engine listens; returns without one after [`LOOK_AGAIN`].
fn wait_for_engine() {
    let path = wire::path();
    // The place is watched before it is looked at, so that no engine comes in between.
    let place = Place::watch(&path);
    for again in [true, false] {
        let connected = with(|state| {
            if state.link.is_none() {
                state.connect();
            }
            Ok(state.link.is_some())
        });
        if !again || connected.unwrap_or(false) {
            return;
        }
        let came = place.as_ref().map(|place| place.wait(LOOK_AGAIN));
        if !matches!(came, Ok(Ok(_))) {
            // Its folder is not there yet, or the user has no watches left.
            std::thread::sleep(std::time::Duration::from_nanos(LOOK_AGAIN));
        }
    }
}

/// The calling thread's row is released when it ends.
fn notice_end() {
    struct End(Cell<bool>);
    impl Drop for End {
        fn drop(&mut self) {
            if self.0.get() {
                let _ = with(|state| {
                    state.release(process::this_thread() as i32);
                    Ok(())
                });
            }
        }
    }
    thread_local! {
        static END: End = const { End(Cell::new(false)) };
    }
    // A thread that is ending already keeps its row until another thread needs it.
    let _ = END.try_with(|end| end.0.set(true));
}

/// From now on a child of fork finds the lock free, and does not write into its parent's page.
fn notice_forks() -> io::Result<()> {
    static NOTICED: OnceLock<i32> = OnceLock::new();
    // SAFETY: functions of the right shape that live for ever.
    let error = *NOTICED.get_or_init(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_in_parent), Some(after_in_child))
    });
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// The thread that is forking.
static FORKER: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" fn before_fork() {
    lock();
    FORKER.store(process::this_thread() as i32, Ordering::Relaxed);
}

unsafe extern "C" fn after_in_parent() {
    unlock();
}

unsafe extern "C" fn after_in_child() {
    // SAFETY: `before_fork` took the lock, in the thread that the child has.
    if let Some(state) = unsafe { (*GLOBAL.state.get()).as_mut() } {
        state.forked(FORKER.load(Ordering::Relaxed));
    }
    unlock();
}
