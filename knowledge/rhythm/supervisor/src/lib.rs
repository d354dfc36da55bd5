//! Reservations for programs that nobody can change: listens until it hears a program's beat, reserves CPU time for its threads in
//! that beat (SCHED_DEADLINE; `reservation.rs` says how), steers the budgets by what is used, and leaves every thread as it found it.
//!
//! ```text
//!   tracer ─events─▶ listener ─period─▶ program ─requests─▶ admission ─grants─▶ the kernel
//!                                          ▲                                      │
//!                                          └──── CPU time used ◀── controllers ◀──┘
//! ```
//!
//! [`Supervisor`] does one round after another, driven by whoever owns it: `attune tune`, or the daemon `attuned`. Invariants:
//!
//! - the bandwidths given never add up to more than the bound;
//! - before a thread is first changed its old policy stands in the journal, and a guardian waits to give it back ([`guardian`]);
//! - a thread that somebody else has reserved or made real-time is left alone.
//!
//! Times are nanoseconds of CLOCK_MONOTONIC; bandwidths are shares of one CPU.

pub mod admission;
mod clock;
pub mod daemon;
pub mod display;
pub mod guardian;
pub mod journal;
mod listener;
mod pace;
pub mod policy;
pub mod process;
mod program;
mod report;
mod reservation;
mod supervisor;
mod task;

pub use clock::monotonic_ns;
pub use report::{Note, ProgramStatus, Status, TaskStatus};
pub use supervisor::{Error, Options, Supervisor};

/// Where journals lie: of the machine's root, or where ATTUNE_STATE_DIR says.
pub fn state_folder() -> std::path::PathBuf {
    std::env::var_os("ATTUNE_STATE_DIR").map_or_else(|| "/run/attune".into(), Into::into)
}
