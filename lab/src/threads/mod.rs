//! Experiments with user-level threads: what a switch costs, how many threads there can be, beside
//! other libraries of threads.
//!
//! Every contestant is one small program over the same measurements (`lab/peers/threads/bench.h`),
//! compiled here. A round runs each once, beginning with another one each time; claims rest on
//! ratios within rounds, so a machine that changes its speed changes both sides.

mod contestant;
mod moving;
mod rounds;
pub mod thread_scale;
pub mod yield_cost;
