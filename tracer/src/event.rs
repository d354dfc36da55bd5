//! The events that the program in the kernel reports.

use attune_linux::time::Time;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The thread entered the system call with this number.
    Enter(u32),
    /// The thread left the system call with this number; none when a signal's handler returned,
    /// which is no return from a call.
    Exit(Option<u32>),
    /// Another thread, or the kernel, made the thread runnable.
    Wake,
    /// The thread stopped being runnable by its own doing. `cpu_ns` is the CPU time since it last
    /// did, if that was seen.
    Block { cpu_ns: Option<u64> },
    /// The thread (or process, if `thread == process`) began.
    Start,
    /// The thread ended.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub time: Time,
    /// As `gettid` returns it, in the namespace of the machine.
    pub thread: u32,
    pub process: u32,
    pub kind: Kind,
}

/// Bytes of `struct record` in bpf/tracer.bpf.c: u64 time, u64 cpu_ns, u32 thread, process, call,
/// kind.
const RECORD: usize = 32;

impl Event {
    /// None for bytes that are no record.
    pub(crate) fn from_record(bytes: &[u8]) -> Option<Event> {
        let bytes: &[u8; RECORD] = bytes.get(..RECORD)?.try_into().ok()?;
        let long = |at: usize| bytes[at..at + 8].try_into().map(u64::from_ne_bytes).ok();
        let word = |at: usize| bytes[at..at + 4].try_into().map(u32::from_ne_bytes).ok();
        let (cpu_ns, call) = (long(8)?, word(24)?);
        let kind = match word(28)? {
            0 => Kind::Enter(call),
            1 => Kind::Exit((call != u32::MAX).then_some(call)),
            2 => Kind::Wake,
            3 => Kind::Block { cpu_ns: (cpu_ns > 0).then_some(cpu_ns) },
            4 => Kind::Start,
            5 => Kind::End,
            _ => return None,
        };
        Some(Event { time: long(0)?, thread: word(16)?, process: word(20)?, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_garbage_is_not() {
        let mut bytes = Vec::new();
        bytes.extend(7u64.to_ne_bytes());
        bytes.extend(812u64.to_ne_bytes());
        [11u32, 10, 0, 3].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        let event =
            Event { time: 7, thread: 11, process: 10, kind: Kind::Block { cpu_ns: Some(812) } };
        assert_eq!(Event::from_record(&bytes), Some(event));
        assert_eq!(Event::from_record(&bytes[..31]), None);
        bytes[28..].copy_from_slice(&99u32.to_ne_bytes());
        assert_eq!(Event::from_record(&bytes), None);
    }
}
