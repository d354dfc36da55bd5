//! Reservations for programs that cannot be changed: listens until it hears a program's beat,
//! reserves CPU time for its threads in that beat (SCHED_DEADLINE; `reservation.rs` says how),
//! steers the budgets by the CPU time that is used, and leaves every thread as it found it.
//!
//! ```text
//!   tracer ─events─▶ listener ─period─▶ program ─requests─▶ admission ─grants─▶ the kernel
//!                                          ▲                                      │
//!                                          └──── CPU time used ◀── controllers ◀──┘
//! ```
//!
//! The daemon also has the weights of programs that the person at a display deals with
//! ([`weights`]), and keeps a policy in the kernel ([`policy`]).
//!
//! [`Supervisor`] does one round after another, driven by its owner: `attune tune`, or the daemon
//! `attuned`. Invariants:
//!
//! - the bandwidths given never add up to more than the bound;
//! - before a thread is first changed its attributes stand in the journal, and a guardian waits to
//!   give them back ([`guardian`]);
//! - a thread that another program has reserved or made real-time is left alone.
//!
//! Times are those of [`attune_linux::time`]; bandwidths are shares of one CPU.

pub mod admission;
pub mod daemon;
pub mod display;
pub mod guardian;
pub mod journal;
pub mod kernel;
mod listener;
mod pace;
pub mod policy;
mod program;
mod report;
mod reservation;
mod supervisor;
mod target;
mod task;
pub mod weights;

pub use admission::Account;
pub use report::{Note, ProgramStatus, Status, TaskStatus};
pub use supervisor::{Error, Options, Supervisor, USER_BOUND};
pub use target::Target;

/// Where journals lie: of the machine's root, or where ATTUNE_STATE_DIR says.
pub fn state_folder() -> std::path::PathBuf {
    std::env::var_os("ATTUNE_STATE_DIR").map_or_else(|| "/run/attune".into(), Into::into)
}
