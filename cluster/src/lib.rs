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
//! - [`store`] holds the shared values with the order of their changes, [`master`] runs the
//!   master's policy over it;
//! - [`manager`] serves the nodes of one master on one machine, alone or with the managers of other
//!   machines, with which it shares a [`database`];
//! - [`node`] is a node's policy that reads and writes a copy of the store;
//! - [`simulation`] runs a whole cluster in virtual time.
//!
//! What every node needs, whatever its engine, stands below: the copy of the store and the messages
//! (`cluster/replica`), a socket for them (`cluster/local`).
//!
//! Invariants: a batch takes effect once and as a whole, however often it is sent; that a process
//! has ended is the kernel's word (SO_PEERPIDFD, a closed socket), never a time-out's.

pub mod database;
pub mod manager;
pub mod master;
pub mod node;
pub mod simulation;
pub mod store;

pub use master::Master;
pub use node::Node;
