//! The supervisor with real programs, on the real kernel: every thread's attributes are as before,
//! however it ends. The tests need root and BTF; elsewhere they say so and pass, but fail where
//! CI=true. No time is asserted; waiting is bounded.

mod endings;
mod machine;
mod programs;
mod refusals;
mod room;
mod weights;
