//! What is run: loads, repetitions, lengths.

use std::time::Duration;

/// Share of requests for a file of 1 MB: one in fifty.
pub const LARGE_SHARE: f64 = 0.02;

/// Clients of the closed loop that leave the server no rest.
pub const BUSY_CLIENTS: usize = 256;

/// The settings of `shortest_reply`'s server: a thread for each connection that may be waiting, so that the scheduler knows
/// of all of them, and chunks as large as do not matter to others: 50 us of the core, two small requests' worth.
pub const HANDLERS: usize = 8192;
pub const CHUNK: usize = 256 << 10;

/// The load at which the claims are made, in shares of the capacity.
pub const OVERLOAD: f64 = 1.1;

/// How often and how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Of the open loop, in shares of the capacity.
    pub loads: Vec<f64>,
    /// Of the closed loop.
    pub clients: Vec<usize>,
    pub repetitions: usize,
    /// Nanoseconds in which requests of the open loop come.
    pub length: u64,
    /// Requests of a closed loop's run, in seconds of the capacity.
    pub closed_seconds: f64,
    pub wrk_length: Duration,
    /// fifo's settings to choose from: handlers, and bytes of a chunk.
    pub fifo_handlers: Vec<usize>,
    pub fifo_chunks: Vec<usize>,
}

impl Plan {
    pub fn new(quick: bool) -> Plan {
        let full = Plan {
            loads: vec![0.5, 0.8, 1.0, OVERLOAD, 1.2],
            clients: vec![16, 64, 256, 1024],
            repetitions: 5,
            length: 1_000_000_000,
            closed_seconds: 1.0,
            wrk_length: Duration::from_secs(2),
            fifo_handlers: vec![512, 8192],
            fifo_chunks: vec![16 << 10, 64 << 10, 256 << 10, 4 << 20],
        };
        if quick {
            return Plan {
                loads: vec![0.5, OVERLOAD, 1.2],
                clients: vec![16, 256],
                repetitions: 3,
                closed_seconds: 0.5,
                wrk_length: Duration::from_secs(1),
                fifo_chunks: vec![64 << 10, 256 << 10],
                ..full
            };
        }
        full
    }
}
