//! The scheduler language: source text in, checked scheduler out. Pure: no input or output, no panics.

pub mod analysis;
mod check;
pub mod diagnostic;
pub mod event;
pub mod ir;
pub mod kernel;
mod lower;
pub mod protocol;
pub mod resolve;
pub mod source;
pub mod syntax;

pub use check::{Checked, EngineReport, Options, Transfers, check};
