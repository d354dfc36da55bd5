//! Finds job starts: where a program, having waited, begins to work.
//!
//! A periodic program works in bursts: it wakes, makes some calls, waits again. The calls inside a
//! burst say little about the beat and much about the work; its beginning says when the program
//! began a job. Two kinds of recording tell it:
//!
//! - With wake-ups and blocks it is exact: a job starts when a thread is woken while all others
//!   sleep. A thread that is runnable and waits for a CPU is not asleep, so that other programs'
//!   load delays no start and makes none ([`wakes`]).
//! - With entries of system calls alone it is the first entry after a pause ([`gaps`]), as late as
//!   the scheduler made it.
//!
//! How long a pause must be depends on the program (a decoder computes for milliseconds between two
//! calls of one job), so starts are taken on several scales ([`SCALES`]) and the evidence decides
//! between them.
//!
//! Times and pauses in seconds.

use std::collections::BTreeMap;

use crate::recording::{Event, Kind};

/// The pauses that are tried, in seconds.
pub const SCALES: [f64; 5] = [0.000_3, 0.001, 0.003, 0.006, 0.012];

/// The beginning of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    pub time: f64,
    /// The pause before it.
    pub pause: f64,
    /// The system call in which its thread had waited before, where that is known.
    pub call: Option<u64>,
    /// How much was done until the next start: CPU time in ns, or entries where that is not told.
    pub size: f64,
}

/// The starts after a pause longer than the least scale among sorted `times`. The first event is
/// none: what came before it is unknown.
pub fn gaps(times: &[f64]) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::new();
    for pair in times.windows(2) {
        let pause = pair[1] - pair[0];
        if pause > SCALES[0] {
            starts.push(Start { time: pair[1], pause, call: None, size: 1.0 });
        } else if let Some(last) = starts.last_mut() {
            last.size += 1.0;
        }
    }
    starts
}

/// The starts after a pause longer than `pause`; what was done after the others belongs to the
/// start before.
pub fn after(starts: &[Start], pause: f64) -> Vec<Start> {
    let mut found: Vec<Start> = Vec::new();
    for start in starts {
        match found.last_mut() {
            _ if start.pause > pause => found.push(*start),
            Some(last) => last.size += start.size,
            None => {}
        }
    }
    found
}

/// When the threads of one program (or one of them), all asleep, were woken; from events in order
/// of time, counted from `from`. The first is left out if the pause before it is not seen to begin.
pub fn wakes<'a>(events: impl Iterator<Item = &'a Event> + Clone, from: f64) -> Vec<Start> {
    struct Thread {
        awake: bool,
        call: Option<u64>,
    }
    let mut threads: BTreeMap<Option<u32>, Thread> = BTreeMap::new();
    for event in events.clone() {
        // A thread that is not first seen being woken was awake.
        let first = || Thread { awake: event.kind != Kind::Wake, call: None };
        threads.entry(event.thread).or_insert_with(first);
    }
    let mut count = threads.values().filter(|thread| thread.awake).count();
    let mut asleep_since: Option<f64> = None;
    let mut found: Vec<Start> = Vec::new();
    for event in events {
        let Some(thread) = threads.get_mut(&event.thread) else { continue };
        let time = event.time - from;
        match event.kind {
            Kind::Enter => thread.call = event.number,
            Kind::Wake if !thread.awake => {
                thread.awake = true;
                if count == 0 {
                    let pause =
                        asleep_since.map(|since| time - since).filter(|pause| *pause > SCALES[0]);
                    let call = thread.call;
                    found.extend(pause.map(|pause| Start { time, pause, call, size: 0.0 }));
                }
                count += 1;
            }
            Kind::Block if thread.awake => {
                thread.awake = false;
                count -= 1;
                asleep_since = Some(time);
                if let (Some(start), Some(cpu_ns)) = (found.last_mut(), event.number) {
                    start.size += cpu_ns as f64;
                }
            }
            _ => {}
        }
    }
    found
}

/// Kinds of waits that are told apart, at most: those after which most was done.
const KINDS: usize = 5;
/// A kind with fewer waits says nothing.
const LEAST_WAITS: usize = 5;

/// A thread's waits in one system call, with the job after each. A sleep by the clock and a wait
/// for another program's answer are different calls; a thread that sleeps until its next frame and
/// waits for the display in between has both.
pub fn waits(events: &[Event], from: f64) -> Vec<Vec<Start>> {
    #[derive(Default)]
    struct Thread {
        call: Option<u64>,
        asleep_since: Option<f64>,
        last: Option<Option<u64>>,
    }
    let mut threads: BTreeMap<Option<u32>, Thread> = BTreeMap::new();
    let mut kinds: BTreeMap<(Option<u32>, Option<u64>), Vec<Start>> = BTreeMap::new();
    for event in events {
        let thread = threads.entry(event.thread).or_default();
        let time = event.time - from;
        match event.kind {
            Kind::Enter => thread.call = event.number,
            Kind::Exit => {}
            Kind::Block => {
                if let (Some(call), Some(cpu_ns)) = (thread.last, event.number)
                    && let Some(start) =
                        kinds.get_mut(&(event.thread, call)).and_then(|starts| starts.last_mut())
                {
                    start.size += cpu_ns as f64;
                }
                thread.asleep_since = Some(time);
            }
            Kind::Wake => {
                if let Some(since) = thread.asleep_since.take()
                    && time - since > SCALES[0]
                {
                    let call = thread.call;
                    let starts = kinds.entry((event.thread, call)).or_default();
                    starts.push(Start { time, pause: time - since, call, size: 0.0 });
                    thread.last = Some(thread.call);
                }
            }
        }
    }
    let work = |starts: &Vec<Start>| starts.iter().map(|start| start.size).sum::<f64>();
    let mut found: Vec<Vec<Start>> =
        kinds.into_values().filter(|starts| starts.len() >= LEAST_WAITS).collect();
    found.sort_by(|a, b| work(b).total_cmp(&work(a)));
    found.truncate(KINDS);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: f64, thread: u32, kind: Kind) -> Event {
        Event { time, thread: Some(thread), kind, number: None }
    }

    #[test]
    fn a_job_starts_when_the_first_thread_is_woken_however_late_it_runs() {
        let events = [
            event(0.000, 1, Kind::Block),
            event(0.040, 1, Kind::Wake),
            // It waits for a CPU, which is no pause.
            event(0.049, 1, Kind::Enter),
            event(0.050, 2, Kind::Wake),
            event(0.051, 1, Kind::Block),
            event(0.060, 1, Kind::Wake),
            event(0.061, 1, Kind::Block),
            event(0.062, 2, Kind::Block),
            event(0.080, 2, Kind::Wake),
        ];
        let of = |thread: Option<u32>| {
            let chosen =
                events.iter().filter(move |event| thread.is_none() || event.thread == thread);
            wakes(chosen, 0.0).iter().map(|start| (1e3 * start.time).round()).collect::<Vec<_>>()
        };
        assert_eq!(of(None), [40.0, 80.0]);
        assert_eq!(of(Some(1)), [40.0, 60.0]);
        assert_eq!(of(Some(2)), [80.0]);
    }

    #[test]
    fn without_wake_ups_a_pause_makes_a_start() {
        let starts = gaps(&[0.0, 0.0001, 0.040, 0.0401, 0.080]);
        assert_eq!(starts.len(), 2);
        assert!((starts[1].pause - 0.0399).abs() < 1e-9);
    }
}
