//! The targets: a folder each, over one shared writer.

pub mod embedded;
pub mod kernel;
pub mod object;
