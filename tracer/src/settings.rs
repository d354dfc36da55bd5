//! The settings of a tracer, and its errors.

/// Which events of the selected processes the tracer reports.
#[derive(Clone, Debug)]
pub struct Settings {
    /// When system calls end, too.
    pub exits: bool,
    /// When threads are woken and block, and the CPU time of their jobs.
    pub transitions: bool,
    /// Only these threads of the selected processes.
    pub threads: Option<Vec<u32>>,
    /// Only the system calls with these numbers.
    pub calls: Option<Vec<u32>>,
    /// Size of the ring; an event takes 40 bytes. Rounded up to a power of two from 64 KiB to 1
    /// GiB.
    pub ring_bytes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { exits: true, transitions: true, threads: None, calls: None, ring_bytes: 4 << 20 }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("tracing needs the capabilities CAP_BPF and CAP_PERFMON: run it as root")]
    NoPrivilege,
    #[error(
        "this kernel does not describe its types (/sys/kernel/btf/vmlinux is missing), which the \
         tracer needs: use a kernel with CONFIG_DEBUG_INFO_BTF, as distributions ship"
    )]
    NoBtf,
    #[error("the kernel does not take the tracing program; it needs Linux 5.18 or newer: {what}")]
    Refused { what: String },
    #[error("too many processes, threads or calls are selected (at most {limit})")]
    Full { limit: u32 },
}

impl From<attune_bpf::Error> for Error {
    fn from(error: attune_bpf::Error) -> Error {
        match error {
            attune_bpf::Error::NoPrivilege => Error::NoPrivilege,
            attune_bpf::Error::NoBtf => Error::NoBtf,
            attune_bpf::Error::Refused(what) => Error::Refused { what },
        }
    }
}
