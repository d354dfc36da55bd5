//! A node's part of a cluster: its copy of what all share, and what it says to the master.
//!
//! Data and state machines without input, output, clocks or policies, so that every engine can be
//! a node. Times are nanoseconds of the caller's clock.
//!
//! - [`operation`] is what an assignment does to a shared number, [`writes`] merges operations,
//!   [`change`] those of a node whose handlers cannot keep a list;
//! - [`exchange`] is between the copy and handlers that cannot speak to a cluster;
//! - [`schema`] names what a checked cluster shares, [`messages`] is what travels;
//! - [`replica`] is the copy.
//!
//! Invariant: a copy is always the store as it was at one revision, with the node's own later
//! writes applied to it.

pub mod change;
pub mod exchange;
pub mod messages;
pub mod operation;
pub mod replica;
pub mod schema;
pub mod writes;

pub use change::Change;
pub use exchange::Exchange;
pub use operation::Operation;
pub use replica::Replica;
pub use schema::Schema;

/// Nanoseconds, as an instant of the caller's clock or as a duration.
pub type Time = i64;
