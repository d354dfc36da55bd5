//! A device and its gateway: firmware at the end of a byte stream takes part in a cluster.
//!
//! - [`frame`] is what both say to each other, as bytes;
//! - [`gateway`] is the node as the cluster's manager sees it.
//!
//! The device's end is C: `engines/embedded/runtime/node.h`. Invariants: nothing here waits; what
//! comes over the wire is never believed to be well-formed; a write of the device counts once
//! while the gateway lives.

pub mod frame;
pub mod gateway;

pub use gateway::{Gateway, Told};
