//! Plans what the experiment runs: loads, pairs, lengths, settings to search.

use std::time::Duration;

use super::server::Settings;

/// Share of requests for a file of 1 MB: one in fifty.
pub const LARGE_SHARE: f64 = 0.02;

/// Clients of the closed loop that leave the server no rest.
pub const BUSY_CLIENTS: usize = 256;

/// The loads among which the capacity is found, in shares of what a closed loop is answered.
pub const RISING: &[f64] = &[1.0, 1.1, 1.2, 1.3, 1.4, 1.5];

/// The load that the claims are about, in shares of the capacity.
pub const OVERLOAD: f64 = 1.1;

/// How much a pair measures.
#[derive(Clone, Debug)]
pub struct Pairing {
    pub pairs: usize,
    /// Nanoseconds in which requests of the open loop come.
    pub length: u64,
    /// Requests that find the capacity.
    pub capacity_requests: usize,
    /// Both servers choose from these.
    pub handlers: &'static [usize],
    pub chunks: &'static [usize],
    /// Runs of each setting in the search.
    pub tries: usize,
}

impl Pairing {
    /// On this machine, in real time: six pairs are the fewest with a 95 % interval. On a shared
    /// machine a pair in four meets a moment with less CPU, on either side; 48 see past these.
    pub fn here(quick: bool) -> Pairing {
        Pairing {
            pairs: if quick { 6 } else { 48 },
            length: 1_000_000_000,
            capacity_requests: 10_000,
            handlers: &[512, 8192],
            chunks: if quick {
                &[64 << 10, 256 << 10]
            } else {
                &[16 << 10, 64 << 10, 256 << 10, 4 << 20]
            },
            tries: 2,
        }
    }

    /// Plans for the deterministic machine, whose CPUs are slow.
    pub fn in_machine(quick: bool) -> Pairing {
        Pairing {
            pairs: if quick { 2 } else { 6 },
            length: 200_000_000,
            capacity_requests: 600,
            handlers: &[64, 512],
            chunks: &[64 << 10, 256 << 10],
            tries: 1,
        }
    }

    pub fn settings(&self) -> impl Iterator<Item = Settings> {
        let with = |handlers: usize| {
            self.chunks.iter().map(move |chunk| Settings { handlers, chunk: *chunk })
        };
        self.handlers.iter().copied().flat_map(with)
    }
}

/// The runs beside the pairs, of which nothing is claimed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Loads of the open loop, in shares of the capacity.
    pub loads: &'static [f64],
    /// Clients of the closed loop.
    pub clients: &'static [usize],
    pub repetitions: usize,
    /// Requests of a closed loop's run, in seconds of the capacity.
    pub closed_seconds: f64,
    pub wrk_length: Duration,
}

impl Plan {
    pub fn new(quick: bool) -> Plan {
        Plan {
            loads: if quick { &[0.5, 1.2] } else { &[0.5, 0.8, 1.0, 1.2] },
            clients: if quick { &[16, 256] } else { &[16, 64, 256, 1024] },
            repetitions: if quick { 1 } else { 5 },
            closed_seconds: if quick { 0.5 } else { 1.0 },
            wrk_length: Duration::from_secs(if quick { 1 } else { 2 }),
        }
    }
}
