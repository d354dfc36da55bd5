//! A cluster on one machine: how a node talks to its manager, over a Unix socket.
//!
//! - [`packets`] writes messages and schemas as bytes, and reads them back;
//! - [`connection`] is a node's end, for any engine;
//! - [`place`] says where a manager of a name listens.
//!
//! Invariants: nothing here waits; what comes over a socket is never believed to be well-formed.

pub mod connection;
pub mod packets;
pub mod place;
