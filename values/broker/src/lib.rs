//! The engine's side of values from other processes: which process may supply which values, and in
//! which page they lie.
//!
//! A [`Broker`] listens on a socket. A process that says hello gets a page of its own; it names the
//! imports that it supplies and the threads that they are for. A user may also give values for a
//! process of theirs that knows nothing of Attune (a *hint*). The engine keeps the pages in a
//! [`Store`] and reads them whenever it likes.
//!
//! ```text
//!     process ──hello, declare, bind──▶ registry ──open, declare, bind──▶ store (the engine's)
//!        │                                                                  │
//!        └───────────────────── page: values ───────────────────────────────┘
//! ```
//!
//! Invariants: a page belongs to one living process, which the kernel vouches for (SO_PEERPIDFD),
//! and is given to no other; a bound row belongs to a thread of that process; one user has at most
//! a quarter of the pages. So a hostile process harms only itself: it may say anything about its
//! own threads. Nothing that a peer does makes the broker wait.
//!
//! What the next engine needs to go on, hints above all, may be kept in a file
//! ([`Broker::keeping`]).
//!
//! The user who runs the engine, and root, may also take a snapshot of the scheduler, set its
//! tunables ([`Control`]), and supply a table by process (`attune_values::table`), which ends with
//! its connection.

mod account;
mod broker;
mod control;
mod doors;
mod kept;
mod limits;
mod memory;
mod meter;
mod peer;
mod ready;
mod refused;
mod registry;
mod rows;
mod service;
mod slots;
mod store;
mod tables;

pub use broker::Broker;
pub use control::Control;
pub use memory::Memory;
pub use store::Store;
