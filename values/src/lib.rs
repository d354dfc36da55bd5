//! The one format in which knowledge reaches engines: typed values, their widths, and how they get
//! from one process to another.
//!
//! A scheduler computes with three types ([`Type`]); a variable of the application has one of
//! eleven shapes in memory ([`Width`]). [`Width::load`] and [`Width::store`] go from one to the
//! other. Neither fails: a value that does not fit is clamped to the nearest that does, and the
//! result says so, for the caller to count.
//!
//! Generated C does the same by itself (`enum attune_width` in the ABI of compiled schedulers); the
//! threads engine's tests hold the two against each other.
//!
//! Between processes values lie in a [`page`](page::Page) that one process shares with the engine,
//! and the two agree over a socket which import each value is ([`wire`]). `values/client` is the
//! process's side, `values/broker` the engine's. A privileged program supplies values for other
//! processes through a [`table`] in the kernel. [`program`] is what a program tells of its own
//! threads.

pub mod enclosed;
pub mod names;
pub mod page;
pub mod program;
pub mod socket;
pub mod table;
pub mod text;
mod value;
mod width;
pub mod wire;

pub use value::{Fitted, Type, Value, float_to_int};
pub use width::Width;
