//! User-level threads inside one process, scheduled by a compiled scheduler.
//!
//! A *thread* here has a stack of its own and shares one operating-system thread with all others; it gives up the
//! processor only inside a call of this library. Which thread runs next is decided by a *scheduler* written in the
//! scheduler language and compiled to a shared object; `ATTUNE_SCHED=path` chooses it when the program starts.
//!
//! ```no_run
//! let worker = attune_threads::spawn(|| 6 * 7)?;
//! assert_eq!(worker.join().unwrap(), 42);
//! # std::io::Result::Ok(())
//! ```
//!
//! C programs use `include/attune.h`:
//!
//! ```text
//! cc prog.c -I engines/threads/include -L target/release -lattune_threads -o prog
//! ATTUNE_SCHED=./my_scheduler.so LD_LIBRARY_PATH=target/release ./prog
//! ```
//!
//! From the outside in: `c_api` and `rust_api` are thin layers over `threads`, `sync`, `io` and `links`; these act on the
//! one `engine` through `process`, which also switches stacks; the engine drives the `scheduler` that `load` found, with
//! `table`, `timers`, `descriptors` and `stack` for its data.

mod c_api;
mod clock;
mod descriptors;
mod engine;
mod errno;
mod io;
mod links;
mod load;
mod overflow;
mod process;
mod report;
mod rust_api;
mod scheduler;
mod stack;
mod statistics;
mod sync;
mod table;
mod thread;
mod threads;
mod timers;

pub use rust_api::*;
pub use statistics::Statistics;
