//! The reference engine: interprets a scheduler and runs a machine of threads around it in virtual time.

pub mod diagnostic;
pub mod interpreter;
mod machine;
pub mod metrics;
mod outcome;
pub mod policy;
mod recorder;
pub mod report;
#[cfg(test)]
mod testing;
mod workload;

pub use diagnostic::Diagnostic;
pub use machine::{Options, Usage, simulate};
pub use outcome::{Ending, Outcome};
pub use workload::Workload;
