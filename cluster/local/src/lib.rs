//! A cluster on one machine: a manager and its nodes, which talk over a Unix socket.
//!
//! - [`packets`] writes messages and schemas as bytes, and reads them back;
//! - [`manager`] serves the nodes of one master;
//! - [`connection`] is a node's end, for any engine;
//! - [`place`] says where a manager of a name listens.
//!
//! Invariants: nothing here waits, except the manager's loop for its next event; what comes over a
//! socket is never believed to be well-formed; that a process has ended is the kernel's word
//! (SO_PEERPIDFD, a closed socket), never a time-out's.

pub mod connection;
pub mod manager;
pub mod packets;
pub mod place;
