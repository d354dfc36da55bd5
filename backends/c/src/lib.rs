//! Checked scheduler to C, and the one runtime that every C engine shares.
//!
//! [`generate`] writes one self-contained C11 file: the runtime (`runtime/`, pasted in), the scheduler's thread record,
//! variables and containers under their own names, a function for each handler, and the table through which an engine
//! finds all of it (`runtime/attune_scheduler.h`). [`generate_both`] writes two schedulers into one text, for an engine that lets
//! them share a machine. [`compile`] hands a text to the C compiler.
//!
//! - `writer` turns the IR into C: [`generate`] is pure.
//! - `runtime` chooses what of the runtime a scheduler needs.
//! - `compiler` runs `cc`, the only input and output here.

mod compiler;
mod runtime;
mod writer;

pub use compiler::{CompileError, CompilerMessage, compile};
pub use writer::{Options, Policy, Refusal, Surroundings, Target, generate, generate_both};
