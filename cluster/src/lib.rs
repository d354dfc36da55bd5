//! Runs distributed schedulers: what nodes share, the master that keeps it, and a node's copy.
//!
//! The core is data and state machines without input, output or clocks; a transport carries its
//! messages. Times are nanoseconds of the caller's clock.
//!
//! ```text
//!   Node ── Report ──▶ Master      merged writes and the node's own values, in numbered batches
//!   Node ◀── News ─── Master       what changed in the store, and writes to the node's variables
//!   Node ── Ask ────▶ Master       the request model: one operation at the owner,
//!   Node ◀── Answer ── Master      with its result
//! ```
//!
//! - [`schema`] names what a checked cluster shares; [`messages`] is what travels; [`writes`]
//!   merges updates;
//! - [`store`] holds the shared values with the order of their changes, [`master`] runs the
//!   master's policy over it;
//! - [`replica`] is a node's copy of the store, [`node`] a node's policy that reads and writes it;
//! - [`simulation`] runs a whole cluster in virtual time.
//!
//! Invariants: a batch takes effect once and as a whole, however often it is sent; a copy is always
//! the store as it was at one revision, with the node's own later writes applied to it.

pub mod master;
pub mod messages;
pub mod node;
pub mod replica;
pub mod schema;
pub mod simulation;
pub mod store;
pub mod writes;

pub use master::Master;
pub use node::Node;
pub use replica::Replica;
pub use schema::Schema;
