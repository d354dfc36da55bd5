//! Why a command in a machine had no end of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::{Cache, Kernel};

/// What messages call the emulator's own faults, of which a machine of several CPUs dies once in a
/// while on a busy host. The same command succeeds in the next machine.
///
/// *A stale breakpoint.* The kernel rewrites its own code while it runs (the switches of schedulers
/// among it) by way of a breakpoint, which it takes away in the end and tells all CPUs. QEMU
/// forgets what it has translated before it writes; a CPU that comes by in between translates the
/// breakpoint once more and keeps it, and the kernel, which finds no breakpoint where one was met,
/// dies. On a processor that cannot be.
///
/// *QEMU itself fails.* Its threads disagree about the machine's memory, and it aborts (seen:
/// `iotlb_to_section: Assertion .. failed`) or uses what is gone.
pub const FAULT: &str = "an emulator's fault";

/// How a machine is called whose time was over before it had started the command.
pub const NOT_BEGUN: &str = "the command had not begun";

/// Each says what happened and what to do; a command that ran and failed is no error, but an exit
/// status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no virtual machine is set up in {}; run `attune vm setup{}`", .0.display(), words(.0))]
    NotSetUp(PathBuf),
    /// The guest could not start the command; the number is errno.
    #[error(
        "in the virtual machine: cannot {doing}: {}{}",
        std::io::Error::from_raw_os_error(*.errno),
        hint(*.errno, *.packed)
    )]
    NotRun { errno: i32, doing: String, packed: bool },
    #[error("the virtual machine was ended after {} s, as asked (--timeout); the command was still \
        running", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error(
        "the virtual machine was ended after {} s, as asked (--timeout); {NOT_BEGUN}: allow more \
            time, or run it again; the kernel's last words:\n{console}", .after.as_secs_f64()
    )]
    NotBegun { after: Duration, console: String },
    #[error("the command was ended from outside")]
    Interrupted,
    #[error(
        "the kernel in the virtual machine died; its last words:\n{console}\nif the command does \
            this each time, it is the command or this kernel: try `--memory` with more, or another \
            kernel (`attune vm setup`)"
    )]
    GuestDied { console: String },
    #[error(
        "the kernel in the virtual machine died of {FAULT} (stale int3): QEMU's, with several CPUs \
            on a busy host; run the command again, or with `--cpus 1`, where it cannot be; the \
            kernel's last words:\n{console}"
    )]
    EmulatorRaced { console: String },
    #[error(
        "{FAULT} ended the virtual machine ({status}): QEMU's, with several CPUs on a busy host; \
            run the command again, or with `--cpus 1`; its last words:\n{words}"
    )]
    EmulatorFailed { status: String, words: String },
    #[error(
        "the emulator ended ({status}); its last words:\n{words}\nif it cannot run at all, `attune \
            vm setup --force` fetches it again"
    )]
    EmulatorDied { status: String, words: String },
    #[error("the server of the host's files ended ({status}); its last words:\n{words}")]
    FilesDied { status: String, words: String },
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

impl Error {
    /// Whether the emulator itself failed, and the next machine may do better.
    pub fn is_emulators_fault(&self) -> bool {
        matches!(self, Error::EmulatorRaced { .. } | Error::EmulatorFailed { .. })
    }

    /// The exit status of a program that runs a command for somebody, as shells and `timeout` have
    /// them.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::NotRun { errno: libc::ENOENT | libc::ENOTDIR, .. } => 127,
            Error::NotRun { .. } => 126,
            Error::TimedOut(_) | Error::NotBegun { .. } => 124,
            Error::Interrupted => 130,
            _ => 125,
        }
    }
}

/// What makes `attune vm setup` fill that folder with its kernel.
fn words(folder: &Path) -> &'static str {
    if folder == Cache::folder_for(Kernel::Full) { " --full" } else { "" }
}

fn hint(errno: i32, packed: bool) -> &'static str {
    match (errno, packed) {
        (libc::ENOENT, true) => {
            "; only the command's program and its libraries are there: add what is missing with \
                --pack"
        }
        (libc::ENOENT, false) => {
            "; the host's files are seen, except /run and what is newer than the machine"
        }
        _ => "",
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::Other(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_up_that_is_missing_is_made_by_the_words_that_the_message_gives() {
        let words = |kernel| Error::NotSetUp(Cache::folder_for(kernel)).to_string();
        assert!(words(Kernel::Cloud).ends_with("run `attune vm setup`"));
        assert!(words(Kernel::Full).ends_with("-full; run `attune vm setup --full`"));
    }
}
