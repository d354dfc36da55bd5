//! BPF programs that are part of a library. Its build script compiles them ([`compile`]), so a
//! machine that only runs the library needs no compiler; the library loads them (`load`). C that
//! several programs share lies in `c`.

mod compile;
#[cfg(feature = "load")]
pub mod load;

pub use compile::compile;

/// C for a BPF program that is put together when it runs; [`compile`] finds it as `interrupt.h`.
pub const INTERRUPT: &str = include_str!("../c/interrupt.h");

/// Why the kernel has not taken a program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the capabilities CAP_BPF and CAP_PERFMON are missing")]
    NoPrivilege,
    #[error("this kernel does not describe its types")]
    NoBtf,
    #[error("{0}")]
    Refused(String),
}
