//! The kernel engine: a policy becomes a BPF program, and Linux schedules real processes with it.
//!
//! - [`source`] puts policy and engine (`bpf/`) together in one C text; pure. [`compile`] makes an object of it.
//! - [`Image`] is such an object; [`start`] loads it, and [`Running`] is the scheduler at work: statistics, tunables, and in the
//!   end the reason ([`Exit`]) in the words of the scheduler's text.
//! - [`Values`] takes what other processes supply for thread imports, and answers whoever runs the scheduler: [`Look`] is how it
//!   stands at one moment.
//! - [`Replay`] runs a policy's handlers one at a time, in the kernel but without sched_ext, so that they can be compared.
//! - [`support`] says whether the machine can run any of this.

mod call;
mod compiler;
mod contents;
mod copying;
mod description;
mod failure;
mod image;
mod layout;
mod load;
pub mod look;
mod memory;
mod replay;
mod settings;
mod source;
mod statistics;
pub mod support;
mod threads;
mod timers;
mod values;

pub use compiler::{Compiler, Error as CompileError, Layout, compile};
pub use failure::{Contents, Exit, Found, Kind};
pub use image::{Error as ImageError, Image};
pub use load::{Error as LoadError, NOT_TRANSLATED, Running, Settings, start, try_load};
pub use look::{Look, LookError};
pub use replay::{Answer, Failed, Replay, THREADS as REPLAY_THREADS};
pub use settings::SetError;
pub use source::{replay_source, shared_source, source};
pub use statistics::{PolicyStatistics, Statistics};
pub use values::Values;
