//! The reference engine: interprets a scheduler and runs a machine of threads around it in virtual time.

pub mod interpreter;
pub mod policy;
