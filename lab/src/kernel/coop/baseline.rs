//! Experiment `coop-baseline`: one player and four hogs on one CPU.

use super::{SETTING, at_most, everybody, players};
use crate::kernel::{Description, FIVE_SEEDS, Figure, Part, Place, Results};
use crate::report::Claim;

const WORST: &str = "worst (ms)";
const LONG_WORST: &str = "0.92 ms: worst";
/// What is claimed, ms.
const LIMIT: f64 = 1.0;

pub const EXPERIMENT: Description = Description {
    name: "coop-baseline",
    about: "tardiness of one player beside four hogs on one CPU",
    title: "One player and four hogs on one CPU",
    text: &[SETTING],
    published: "worst tardiness about 1 ms; the fair class over 20 ms on almost every event, \
        SCHED_RR over 10 ms, both over 100 ms at worst.",
    parts: &[Part {
        title: "One player and four hogs",
        place: Place::ONE_CPU,
        contestants: everybody,
        workloads: &[players("short", "--count 1"), players("long", "--count 1 --unit 920")],
        figures: &[
            Figure::new("p50 (ms)", "short", "/late_ns/p50", 1e6),
            Figure::new("p99 (ms)", "short", "/late_ns/p99", 1e6),
            Figure::new(WORST, "short", "/late_ns/max", 1e6),
            Figure::new("hogs' CPU (%)", "short", "/hogs_percent", 1.0),
            Figure::new("0.92 ms: p99", "long", "/late_ns/p99", 1e6),
            Figure::new(LONG_WORST, "long", "/late_ns/max", 1e6),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: WORST,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    vec![
        at_most(results, "worst tardiness, callbacks up to 0.2 ms", "ms", &[(WORST, LIMIT)]),
        at_most(results, "worst tardiness, callbacks up to 0.92 ms", "ms", &[(LONG_WORST, LIMIT)]),
    ]
}
