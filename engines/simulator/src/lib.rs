//! The reference engine: interprets a scheduler and runs a machine of threads around it in virtual
//! time.

pub mod diagnostic;
mod duration;
pub mod interpreter;
mod machine;
pub mod metrics;
mod outcome;
mod recorder;
pub mod report;
pub mod scheduler;
#[cfg(test)]
mod testing;
mod workload;

pub use diagnostic::Diagnostic;
pub use duration::duration;
pub use machine::{Options, Parcel, Part, Per, Reading, simulate, simulate_instances};
pub use metrics::Usage;
pub use outcome::{Ending, Outcome};
pub use workload::program::SharedChange;
pub use workload::{Workload, cluster};
