//! The supervisor with real programs, on the real kernel: every policy is as before, however it ends. Needs root and BTF; elsewhere it
//! says so and passes, but fails where CI=true. No time is asserted; waiting is bounded.

mod endings;
mod machine;
mod programs;
mod refusals;
mod room;
