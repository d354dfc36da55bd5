//! fork: the child must not write into its parent's page, and must find the lock free.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::{state, thread};

/// The thread that is forking.
static FORKER: AtomicI32 = AtomicI32::new(0);

/// From now on forks are noticed.
pub fn prepare() -> io::Result<()> {
    static PREPARED: OnceLock<i32> = OnceLock::new();
    // SAFETY: functions of the right shape that live for ever.
    let error = *PREPARED.get_or_init(|| unsafe {
        libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child))
    });
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

unsafe extern "C" fn before() {
    state::lock();
    FORKER.store(thread::current(), Ordering::Relaxed);
}

unsafe extern "C" fn after_in_parent() {
    state::unlock();
}

unsafe extern "C" fn after_in_child() {
    // SAFETY: `before` took the lock, in the thread that the child has.
    if let Some(state) = unsafe { state::locked() } {
        state.forked(FORKER.load(Ordering::Relaxed));
    }
    state::unlock();
}
