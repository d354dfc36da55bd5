//! The scheduler language: source text in, checked scheduler out. Pure: no input or output, no panics.

pub mod event;
pub mod ir;
pub mod source;
