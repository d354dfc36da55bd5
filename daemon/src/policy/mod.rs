//! The policy that `attuned` keeps in the kernel: what the configuration says of it
//! ([`config`]), the process that holds it and is started again when it ends ([`keeper`]), and
//! what is known of each run ([`record`]).
//!
//! The service does not hold the policy itself. It starts `attune run --service`, the *holder*,
//! which outlives it: a service that is killed takes no scheduler away, and the next service
//! finds the holder by its record. A second such process stands by with the policy loaded
//! ([`turn`]). `docs/internals/service.md` has a table of what happens when which process dies.

pub mod config;
mod files;
pub mod keeper;
pub mod kept;
mod pace;
pub mod record;
pub mod turn;

pub use config::Policy;
pub use keeper::{Keeper, State, Status};
pub use record::{Cause, End, Joined, Record, Runs};
