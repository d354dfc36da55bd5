//! A recording: events from the kernel's ring into a file, until the caller ends it.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use attune_linux::time::Time;

use crate::text;
use crate::tracer::Tracer;

/// How often the ring is emptied.
const ROUND: Duration = Duration::from_millis(20);

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Lines about events.
    pub events: u64,
    pub processes: usize,
    pub threads: usize,
    /// Events that are missing in the file, because the ring was full.
    pub lost: u64,
}

/// Writes the events of an attached tracer as text, until `go_on`, which is called every 20 ms, is
/// false; then detaches the tracer and writes the remaining events. `origin` is the recording's
/// time zero.
pub fn record(
    tracer: &mut Tracer,
    out: &mut impl Write,
    origin: Time,
    mut go_on: impl FnMut(&Tracer) -> bool,
) -> io::Result<Recording> {
    let mut events = Vec::new();
    let (mut processes, mut threads) = (BTreeSet::new(), BTreeSet::new());
    let mut recording = Recording::default();
    loop {
        let last = !go_on(tracer);
        if last {
            tracer.detach();
        }
        tracer.drain(&mut events);
        for event in events.drain(..) {
            processes.insert(event.process);
            threads.insert(event.thread);
            recording.events += 1;
            text::write_event(out, &event, origin)?;
        }
        if last {
            recording.lost = tracer.lost();
            (recording.processes, recording.threads) = (processes.len(), threads.len());
            text::write_tail(out, recording.lost)?;
            out.flush()?;
            return Ok(recording);
        }
        sleep(ROUND);
    }
}
