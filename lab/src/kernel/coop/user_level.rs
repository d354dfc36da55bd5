//! Experiment `coop-user-level`: players that pass the CPU to each other through shared memory, on
//! a kernel that knows nothing of it.

use super::FAIR;
use crate::kernel::{Contestant, Description, FIVE_SEEDS, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

const COOPERATING: &str = "fair class, cooperating";
const WORK: &str = "steps/s";
const SWITCHES: &str = "switches/yield";
const P99: &str = "p99 (ms)";
const WORST: &str = "worst (ms)";
const JAIN: &str = "Jain";

/// What is claimed: at most so much of the work is lost, so many switches for a yield.
const MAY_LOSE: f64 = 0.08;
const SWITCHES_PER_YIELD: f64 = 1.2;

const fn players(name: &'static str, words: &'static str) -> Workload {
    Workload::new(name, "players --seconds {seconds}").with(words).lasting(10, 5)
}

pub const EXPERIMENT: Description = Description {
    name: "coop-user-level",
    about: "players that cooperate through shared memory, on the kernel's fair class: tardiness, \
        and what it costs",
    title: "Cooperative polling between processes, on a stock kernel",
    text: &[
        "Eight players on one CPU decode all the time, in callbacks of at most 0.2 ms (0.92 ms in \
            the second workload), and serve timers every 10 ms and every 1/24 s. Tardiness is from \
            a timer's release to its handler's first instruction. Work is counted in steps over \
            memory; in this machine an instruction is a nanosecond, and a cache miss costs \
            nothing.",
        "With four hogs beside them that do not cooperate the kernel sees five runnable threads in \
            place of twelve, and the players get what one thread gets: a fifth, not two thirds. \
            That is the price of a kernel that knows nothing of cooperation.",
    ],
    published: "Sinha's thesis (University of British Columbia, 2008), section 3.8.1: the \
        prototype at user level loses 20 % of the throughput, with 2.3 to 2.5 switches a yield.",
    parts: &[Part {
        title: "Cooperative polling between processes, on a stock kernel",
        place: Place::ONE_CPU,
        // Ratios are claimed: both in full.
        contestants: || vec![Contestant::fair_class(), Contestant::cooperating()],
        workloads: &[
            players("players", "").lasting(30, 5),
            players("long", "--unit 920"),
            players("hogs", "--hogs 4"),
        ],
        figures: &[
            Figure::new(WORK, "players", "/steps_per_second", 1.0),
            Figure::new(SWITCHES, "players", "/switches_per_yield", 1.0),
            Figure::new(P99, "players", "/late_ns/p99", 1e6),
            Figure::new(WORST, "players", "/late_ns/max", 1e6),
            Figure::new(JAIN, "players", "/jain", 1.0),
            Figure::new("0.92 ms: p99", "long", "/late_ns/p99", 1e6),
            Figure::new("worst", "long", "/late_ns/max", 1e6),
            Figure::new("4 hogs: p99", "hogs", "/late_ns/p99", 1e6),
            Figure::new("worst, hogs", "hogs", "/late_ns/max", 1e6),
            Figure::new("steps/s, hogs", "hogs", "/steps_per_second", 1.0),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: P99,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let lost =
        results.worst_ratio((FAIR, WORK), (COOPERATING, WORK)).map(|times| 1.0 - 1.0 / times);
    let switches = results.worst(COOPERATING, SWITCHES);
    let late = results.worst_ratio((COOPERATING, P99), (FAIR, P99)).map(|times| 1.0 / times);
    vec![
        Claim::new(
            format!(
                "cooperating through shared memory costs at most {:.0} % of the work",
                MAY_LOSE * 100.0
            ),
            lost.map(|lost| (lost <= MAY_LOSE, format!("{:.1} % (published: 20 %)", lost * 100.0))),
        ),
        Claim::new(
            format!("a yield takes at most {SWITCHES_PER_YIELD} switches of the kernel"),
            switches.map(|each| {
                (each <= SWITCHES_PER_YIELD, format!("{each:.2} (published: 2.3 to 2.5)"))
            }),
        ),
        Claim::new(
            "99 of 100 timers are served at least ten times sooner",
            late.map(|ratio| (ratio >= 10.0, format!("{ratio:.0} times"))),
        ),
    ]
}
