//! The one format in which knowledge reaches engines: typed values, their widths, what happens to one that does not fit.
//!
//! A scheduler computes with three types ([`Type`]); a variable of the application has one of eleven shapes in memory
//! ([`Width`]). [`Width::load`] and [`Width::store`] go from one to the other. Nothing here fails: a value that does
//! not fit is clamped to the nearest that does, and the result says so, for the caller to count.
//!
//! Generated C does the same by itself (`enum attune_width` in the ABI of compiled schedulers); the threads engine's
//! tests hold the two against each other.

mod value;
mod width;

pub use value::{Fitted, Type, Value, float_to_int};
pub use width::Width;
