//! OS threads that make calls which block, so that no worker does.
//!
//! There are as many as calls at a time, up to [`MOST`]; further calls wait for one. A helper
//! without a call ends after a while.
//!
//! Invariant: `idle` of the `threads` helpers wait for a call; a call is in `calls` until a helper
//! takes it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use attune_linux::signal;

use crate::errno::{Errno, Result};
use crate::instruments;

/// A blocked helper costs little but its stack.
const MOST: usize = 64;
/// Bytes, as the system gives an OS thread; memory is used only as deep as a call goes.
const STACK: usize = 8 << 20;
const REST: Duration = Duration::from_secs(5);

pub type Call = Box<dyn FnOnce() + Send>;

struct Pool {
    calls: VecDeque<Call>,
    threads: usize,
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { calls: VecDeque::new(), threads: 0, idle: 0 });
static CALLED: Condvar = Condvar::new();

/// Has a helper make the call, which must not panic. ENOMEM: there is no helper, and none can be
/// started.
pub fn make(call: Call) -> Result<()> {
    let mut pool = pool();
    pool.calls.push_back(call);
    instruments::released(&POOL);
    if pool.calls.len() > pool.idle && pool.threads < MOST {
        let helper = thread::Builder::new().name("attune-helper".to_owned()).stack_size(STACK);
        if signal::while_blocked(|| helper.spawn(serve)).is_ok() {
            pool.threads += 1;
        } else if pool.threads == 0 {
            pool.calls.pop_back();
            return Err(Errno(libc::ENOMEM));
        }
    }
    drop(pool);
    CALLED.notify_one();
    Ok(())
}

fn serve() {
    let mut pool = pool();
    loop {
        if let Some(call) = pool.calls.pop_front() {
            instruments::acquired(&POOL);
            drop(pool);
            call();
            pool = self::pool();
            continue;
        }
        pool.idle += 1;
        let rested = CALLED.wait_timeout(pool, REST).unwrap_or_else(PoisonError::into_inner);
        pool = rested.0;
        pool.idle -= 1;
        if rested.1.timed_out() && pool.calls.is_empty() {
            pool.threads -= 1;
            return;
        }
    }
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}
