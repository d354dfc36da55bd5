//! A place where tracers can look: how late a program's timers are, seen from outside the program.
//!
//! ```text
//! bpftrace -e 'uprobe:./program:attune_coop_timer { @late_ns = hist(nsecs - arg0); }'
//! ```

use crate::time::Time;

/// Called when a timer event that was due at `release` is about to run its callback. Does nothing.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn attune_coop_timer(release: Time) {
    // Else the compiler would leave the call out.
    std::hint::black_box(release);
}
