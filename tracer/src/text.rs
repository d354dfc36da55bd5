//! A recording as text, as `attune trace` writes it and `attune period` reads it: one event a line,
//!
//! ```text
//! TIME THREAD KIND [NUMBER]
//! ```
//!
//! TIME in seconds since the recording began, THREAD the thread's number, KIND one of
//!
//! | kind | meaning | NUMBER |
//! |---|---|---|
//! | `enter` | the thread entered a system call | the call's number |
//! | `exit` | it left a system call or a signal's handler | the call's number, or none |
//! | `wake` | it became runnable | |
//! | `block` | it blocked by its own doing | CPU time since it last did, in ns, if seen |
//!
//! Lines that begin with `#` are about the recording. `# attune trace 1` is the first: the format
//! and its version. `# thread NUMBER of PROCESS started` and `.. ended` stand where that happened.
//! `# lost COUNT` is the last: so many events are missing because the reader was too slow. Lines
//! are nearly in order of time: two lines of different CPUs may be exchanged.

use std::io::{self, Write};

use attune_linux::time::Time;

use crate::event::{Event, Kind};

/// The first line.
pub fn write_head(out: &mut impl Write, what: &str) -> io::Result<()> {
    let what: String =
        what.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    writeln!(out, "# attune trace 1\n# {what}")
}

/// One event. `origin`: when the recording began.
pub fn write_event(out: &mut impl Write, event: &Event, origin: Time) -> io::Result<()> {
    let micros = event.time.saturating_sub(origin) / 1000;
    let (seconds, micros, thread) = (micros / 1_000_000, micros % 1_000_000, event.thread);
    let time = format_args!("{seconds}.{micros:06}");
    match event.kind {
        Kind::Enter(call) => writeln!(out, "{time} {thread} enter {call}"),
        Kind::Exit(Some(call)) => writeln!(out, "{time} {thread} exit {call}"),
        Kind::Exit(None) => writeln!(out, "{time} {thread} exit"),
        Kind::Wake => writeln!(out, "{time} {thread} wake"),
        Kind::Block { cpu_ns: None } => writeln!(out, "{time} {thread} block"),
        Kind::Block { cpu_ns: Some(cpu_ns) } => writeln!(out, "{time} {thread} block {cpu_ns}"),
        Kind::Start => writeln!(out, "# thread {thread} of {} started", event.process),
        Kind::End => writeln!(out, "# thread {thread} of {} ended", event.process),
    }
}

/// The last line.
pub fn write_tail(out: &mut impl Write, lost: u64) -> io::Result<()> {
    writeln!(out, "# lost {lost}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(kind: Kind) -> String {
        let mut text = Vec::new();
        let event = Event { time: 3_000_000_000 + 12_345_678, thread: 42, process: 40, kind };
        write_event(&mut text, &event, 2_000_000_000).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn each_kind_has_its_line() {
        assert_eq!(line(Kind::Enter(7)), "1.012345 42 enter 7\n");
        assert_eq!(line(Kind::Exit(Some(7))), "1.012345 42 exit 7\n");
        assert_eq!(line(Kind::Wake), "1.012345 42 wake\n");
        assert_eq!(line(Kind::Block { cpu_ns: None }), "1.012345 42 block\n");
        assert_eq!(line(Kind::Block { cpu_ns: Some(900) }), "1.012345 42 block 900\n");
        assert_eq!(line(Kind::Start), "# thread 42 of 40 started\n");
    }

    proptest! {
        /// The head is two comments for every name of a program.
        #[test]
        fn a_head_is_comments(what in ".*") {
            let mut text = Vec::new();
            write_head(&mut text, &what).unwrap();
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(text.split_terminator('\n').count(), 2);
            prop_assert!(text.split_terminator('\n').all(|line| line.starts_with('#')));
        }

        /// A time is never before the beginning, and precise to the microsecond.
        #[test]
        fn times_are_read_back(time in 0u64..1 << 50, origin in 0u64..1 << 50) {
            let mut text = Vec::new();
            let event = Event { time, thread: 1, process: 1, kind: Kind::Wake };
            write_event(&mut text, &event, origin).unwrap();
            let text = String::from_utf8(text).unwrap();
            let seconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
            let expected = time.saturating_sub(origin) as f64 / 1e9;
            prop_assert!((seconds - expected).abs() <= 1e-6);
        }
    }
}
