//! The scheduler language: source text in, checked scheduler out. Pure: no input or output, no panics.

pub mod diagnostic;
pub mod event;
pub mod ir;
pub mod resolve;
pub mod source;
pub mod syntax;
