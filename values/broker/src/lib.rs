//! The engine's side of values from other processes: who may supply what, and where it lies.
//!
//! A [`Broker`] listens on a socket. A process that says hello gets a page of its own; it names the imports that it supplies and
//! the threads that they are for. Somebody may also give values for a process that knows nothing of us (a *hint*), if it is
//! theirs. The engine keeps the pages in a [`Store`] and reads them whenever it likes.
//!
//! ```text
//!     process ──hello, declare, bind──▶ desk ──open, declare, bind──▶ store (the engine's)
//!        │                                                              │
//!        └───────────────────── page: values ───────────────────────────┘
//! ```
//!
//! Invariants: a page belongs to one living process, which the kernel vouches for (SO_PEERPIDFD), and is given to nobody else; a
//! bound row belongs to a thread of that process; one user has at most a quarter of the pages. So a hostile process harms
//! nobody but itself: it may say anything about its own threads. Nothing that a peer does makes the broker wait.
//!
//! Whoever runs the engine, and root, may also look at the scheduler and set its tunables ([`Control`]).

mod control;
mod desk;
mod memory;
mod process;
mod service;
mod store;

pub use control::Control;
pub use memory::Memory;
pub use service::Broker;
pub use store::Store;
