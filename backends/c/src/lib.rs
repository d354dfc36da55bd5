//! Checked scheduler to C, and the one runtime that every C engine shares.
//!
//! The text for any target is the runtime (`runtime/`, pasted in), the scheduler's thread record,
//! variables and containers under their own names, and a function for each handler. A target adds
//! what its engine needs around that:
//!
//! - [`generate`], and [`generate_node`] for a cluster's node, write a shared object with a table
//!   through which an engine finds everything (`target/object`, `runtime/attune_scheduler.h`);
//!   [`compile`] hands it to the C compiler;
//! - [`kernel`] writes one BPF program from one scheduler, or from two that share a machine, and
//!   the engine's own C;
//! - [`embedded`] writes one C file and its header for a firmware, the engine within.
//!
//! `writer` turns the IR into C and asks its target the questions of `writer/target.rs`; `runtime`
//! chooses what of the runtime a scheduler needs; `compiler` runs `cc`, the only input and output
//! here.

mod compiler;
mod policy;
mod runtime;
mod target;
mod writer;

pub use compiler::{CompileError, CompilerMessage, compile};
pub use policy::{Node, Policy, Refusal};
pub use target::object::{Options, generate, generate_node};
pub use target::{embedded, kernel};
