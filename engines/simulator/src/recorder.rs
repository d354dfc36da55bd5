//! Records what happens to threads, one record per change, for timelines and traces.
//!
//! Invariant: records ascend by time. Recording ends quietly at its horizon, and with `truncated`
//! set at [`MAX_RECORDS`].

use crate::scheduler::Time;

/// About 100 MB.
pub const MAX_RECORDS: usize = 4_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Created,
    Ready,
    /// It has this CPU; it makes progress once the switch is paid.
    Running(u32),
    Waiting,
    InOut,
    Suspended,
    Ended,
    /// It went from one instance to another.
    Moved {
        from: u32,
        to: u32,
    },
    /// A job ended; whether it was late.
    Job {
        late: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub at: Time,
    /// Serial number of the thread.
    pub thread: u32,
    pub what: What,
}

/// A thread of the recording.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    pub template: u16,
    pub group: u16,
    pub index: u32,
    pub outside: bool,
}

#[derive(Clone, Debug)]
pub struct Recorder {
    /// Nothing after this time is recorded.
    pub horizon: Time,
    pub records: Vec<Record>,
    /// By serial number.
    pub threads: Vec<Recorded>,
    pub truncated: bool,
}

impl Recorder {
    pub fn new(horizon: Time) -> Recorder {
        Recorder { horizon, records: Vec::new(), threads: Vec::new(), truncated: false }
    }

    #[inline]
    pub fn record(&mut self, at: Time, thread: u32, what: What) {
        if at > self.horizon {
            return;
        }
        if self.records.len() >= MAX_RECORDS {
            self.truncated = true;
            self.horizon = Time::MIN;
            return;
        }
        self.records.push(Record { at, thread, what });
    }

    /// A thread exists, in the order of serial numbers.
    pub fn enlist(&mut self, now: Time, recorded: Recorded) {
        if now <= self.horizon {
            self.threads.push(recorded);
        }
    }
}
