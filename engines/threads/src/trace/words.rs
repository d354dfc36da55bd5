//! What slices of a trace are called. Equal things have equal names, which Perfetto counts and
//! colours; numbers stand in arguments.

use attune_timeline::Value;

use crate::thread::WaitsFor;

type Argument = Option<(&'static str, Value<'static>)>;

pub fn waits(waits_for: WaitsFor) -> (&'static str, Argument) {
    let number = |name, number| Some((name, Value::Int(number)));
    match waits_for {
        WaitsFor::Nothing => ("waiting", None),
        WaitsFor::Time => ("sleeping", None),
        WaitsFor::Join(thread) => {
            ("waiting for the end of a thread", number("thread", thread as i64))
        }
        WaitsFor::Mutex => ("waiting for a mutex", None),
        WaitsFor::Condition => ("waiting for a condition", None),
        WaitsFor::Semaphore => ("waiting for a semaphore", None),
        WaitsFor::Descriptors(fd, 1) => {
            ("waiting for a descriptor", number("descriptor", fd.into()))
        }
        WaitsFor::Descriptors(fd, _) => {
            ("waiting for several descriptors", number("first descriptor", fd.into()))
        }
        WaitsFor::Worker(index) => ("waiting for a worker", number("worker", index as i64 + 1)),
        WaitsFor::Answer(_) => ("waiting for an answer of the cluster's manager", None),
        WaitsFor::File(fd) => ("waiting for a file", number("descriptor", fd.into())),
        WaitsFor::Call => ("waiting for a call that blocks", None),
    }
}

/// What ended a wait, by its outcome.
pub fn woken_by(waits_for: WaitsFor, outcome: i32, another: bool) -> &'static str {
    match (waits_for, outcome) {
        _ if another => "a thread",
        (WaitsFor::Time, _) | (_, libc::ETIMEDOUT) => "its time",
        (WaitsFor::Descriptors(..), libc::EBADF) => "a closed descriptor",
        (WaitsFor::Descriptors(..), _) => "its descriptor",
        (WaitsFor::Answer(_), _) => "an answer",
        (WaitsFor::File(_), _) => "the end of its transfer",
        (WaitsFor::Call, _) => "the end of its call",
        _ => "a thread",
    }
}

/// The text of a name that ends at its first NUL.
pub fn name(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}
