//! Turns records into intervals: a thread in one state from one time to another.

use crate::outcome::Outcome;
use crate::recorder::{Record, What};
use crate::scheduler::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    Running(u32),
    Waiting,
    InOut,
    Suspended,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Running(_) => "running",
            State::Waiting => "waiting",
            State::InOut => "input/output",
            State::Suspended => "suspended",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Serial number.
    pub thread: u32,
    pub state: State,
    pub from: Time,
    pub to: Time,
}

/// The time up to which everything is recorded.
pub fn end_of_recording(outcome: &Outcome) -> Time {
    let recorder = &outcome.figures.recorder;
    if recorder.truncated {
        recorder.records.last().map_or(0, |record| record.at)
    } else {
        outcome.elapsed().min(recorder.horizon)
    }
}

/// All intervals up to `end`, in the order in which they end.
pub fn intervals(outcome: &Outcome, end: Time) -> Vec<Interval> {
    let recorder = &outcome.figures.recorder;
    let mut open: Vec<Option<(State, Time)>> = vec![None; recorder.threads.len()];
    let mut intervals = Vec::new();
    let mut close = |open: &mut Option<(State, Time)>, thread: u32, to: Time| {
        if let Some((state, from)) = open.take()
            && from < to
        {
            intervals.push(Interval { thread, state, from, to });
        }
    };
    for &Record { at, thread, what } in
        recorder.records.iter().take_while(|record| record.at <= end)
    {
        let state = match what {
            What::Ready => Some(State::Ready),
            What::Running(cpu) => Some(State::Running(cpu)),
            What::Waiting => Some(State::Waiting),
            What::InOut => Some(State::InOut),
            What::Suspended => Some(State::Suspended),
            What::Ended => None,
            What::Created | What::Job { .. } | What::Moved { .. } => continue,
        };
        let current = &mut open[thread as usize];
        close(current, thread, at);
        *current = state.map(|state| (state, at));
    }
    for (thread, current) in open.iter_mut().enumerate() {
        close(current, thread as u32, end);
    }
    intervals
}
