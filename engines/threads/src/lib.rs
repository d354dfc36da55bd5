//! User-level threads inside one process, scheduled by a compiled scheduler.
//!
//! A *thread* here has a stack of its own and shares an operating-system thread with others;
//! it gives up the processor only inside a call of this library. Which thread runs next is decided
//! by a *scheduler* written in the scheduler language and compiled to a shared object;
//! `ATTUNE_SCHED=path` chooses it when the program starts.
//!
//! ```no_run
//! let worker = attune_threads::spawn(|| 6 * 7)?;
//! assert_eq!(worker.join().unwrap(), 42);
//! # std::io::Result::Ok(())
//! ```
//!
//! C programs use `include/attune.h`; docs/threads.md is the manual for both.
//!
//! From the outside in: `c_api` and `rust_api` are thin layers over `operations`, `sync`, `io`,
//! `shared_variables`, `import_operations` and `trace_operations`; these act on the `engine` of
//! their worker through `process`, which hands over (`handover`, `stack_switch`) from one stack to
//! another (`fiber`), and on those of others through `remote`. `preemption` has the points at which
//! a thread gives way though it could go on. An `engine::worker` is an OS thread with its engine,
//! and a program has one unless it asks for more. The engine drives the `scheduler` that `load`
//! found, with `thread_table`, `timers`, `io::Descriptors` and `stack` for its data. `thread` and
//! its children are at the bottom. `instruments` tells sanitizers and Valgrind of stacks,
//! `unwinding` keeps C++ exceptions apart, `debugger` shows threads to GDB, `control` to the
//! program's user, and `trace` writes down what they do.

mod c_api;
mod clock;
mod cluster;
mod control;
mod debugger;
mod diagnosis;
mod engine;
mod errno;
mod fiber;
mod handover;
mod import_bindings;
mod import_operations;
mod instruments;
mod io;
mod load;
mod operations;
mod overflow;
mod preemption;
mod prefetch;
mod process;
mod remote;
mod report;
mod rust_api;
mod scheduler;
mod shared_variables;
mod stack;
mod stack_switch;
mod statistics;
mod sync;
mod thread;
mod thread_table;
mod timers;
mod trace;
mod trace_operations;
mod unwinding;

pub use rust_api::*;
pub use statistics::Statistics;
