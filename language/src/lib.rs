//! The scheduler language: source text in, checked scheduler out. Pure: no input or output, no
//! panics.

pub mod analysis;
mod check;
pub mod diagnostic;
pub mod engine;
pub mod ir;
mod lower;
pub mod resolve;
pub mod source;
pub mod syntax;

pub use check::{Checked, Cluster, Family, Options, check};
pub use engine::report::{EngineReport, Explanation, Origin, Transfers, Waiting};
