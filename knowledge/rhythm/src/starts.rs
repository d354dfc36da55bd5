//! Job starts: an event after a pause.
//!
//! A periodic program works in bursts: it wakes, makes some calls, waits again. The calls inside a burst say little about the
//! beat and much about the work; the first one after a pause says when the program began a job. How long a pause must be
//! depends on the program (a decoder computes for milliseconds between two calls of one job), so starts are taken on
//! several scales ([`SCALES`]) and the evidence decides between them.
//!
//! Times and pauses in seconds.

/// The pauses that are tried, in seconds.
pub const SCALES: [f64; 5] = [0.000_3, 0.001, 0.003, 0.006, 0.012];

/// The first event of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    pub time: f64,
    /// The pause before it.
    pub pause: f64,
    /// Number of events until the next start.
    pub events: u32,
}

/// The starts after a pause longer than `pause` among sorted `times`. The first event is none: what came before it is unknown.
pub fn starts(times: &[f64], pause: f64) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::new();
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        if gap > pause {
            starts.push(Start { time: pair[1], pause: gap, events: 1 });
        } else if let Some(last) = starts.last_mut() {
            last.events += 1;
        }
    }
    starts
}
