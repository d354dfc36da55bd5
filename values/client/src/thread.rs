//! Threads by the kernel's numbers, and the end of one.

use std::cell::Cell;

use crate::state;

/// The calling thread's number.
pub fn current() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}

/// Whether this process has that thread.
pub fn exists(thread: i32) -> bool {
    // SAFETY: signal 0 is only asked about, never sent.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) == 0 }
}

/// Gives the calling thread's row back when the thread ends.
pub fn watch_end() {
    thread_local! {
        static END: End = const { End(Cell::new(false)) };
    }
    // Too late in a thread that is ending already: its row goes when another needs it.
    let _ = END.try_with(|end| end.0.set(true));
}

struct End(Cell<bool>);

impl Drop for End {
    fn drop(&mut self) {
        if self.0.get() {
            let _ = state::with(|state| {
                state.release(current());
                Ok(())
            });
        }
    }
}
