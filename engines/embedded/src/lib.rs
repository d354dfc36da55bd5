//! The embedded engine: cooperative threads without an operating system, scheduled by a policy that
//! is compiled in.
//!
//! - [`source`] makes `attune.c` and `attune.h`, which a firmware project copies; the engine itself
//!   is C, in `runtime/`;
//! - [`firmware`] compiles a firmware with them and runs it, on QEMU's mps2-an385 or on this
//!   machine (`boards/`): for tests and experiments;
//! - [`stack`] adds up how much stack a firmware's functions take.

pub mod firmware;
mod source;
pub mod stack;

pub use source::{loadable, node_source, source};
