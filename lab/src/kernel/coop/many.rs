//! Experiment `coop-many`: eight players and four hogs on one CPU.

use super::{COOP, SETTING, SHORT, at_most, everybody, players};
use crate::kernel::{Contestant, Description, FIVE_SEEDS, Figure, Part, Place, Results};
use crate::report::Claim;

const P99: &str = "p99 (ms)";
const P999: &str = "p99.9 (ms)";
const WORST: &str = "worst (ms)";
const LONG_P99: &str = "0.92 ms: p99";
const LONG_P999: &str = "0.92 ms: p99.9";
const LONG_WORST: &str = "0.92 ms: worst";
const USEFUL: &str = "useful CPU (%)";
const GROUP: [&str; 3] = ["group: p99", "group: p99.9", "group: worst"];
const LONG_GROUP: [&str; 3] =
    ["0.92 ms, group: p99", "0.92 ms, group: p99.9", "0.92 ms, group: worst"];

/// What is claimed with callbacks up to 0.92 ms, in ms: p99, p99.9, worst.
const LONG: [f64; 3] = [0.9, 1.0, 1.2];
const LEAST_USEFUL: f64 = 98.8;
const TIMES_SOONER: f64 = 40.0;

pub const EXPERIMENT: Description = Description {
    name: "coop-many",
    about: "tardiness of eight players beside four hogs on one CPU: cooperating, and under \
        schedulers to which they say nothing",
    title: "Eight players and four hogs on one CPU",
    text: &[SETTING],
    published: "worst tardiness about 1 ms with callbacks of a millisecond; the fair class over 20 \
        ms on almost every event, SCHED_RR over 10 ms, both over 100 ms at worst.",
    parts: &[
        Part {
            title: "Eight players, each alone, and four hogs",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: &[players("short", ""), players("long", "--unit 920")],
            figures: &[
                Figure::new("p50 (ms)", "short", "/late_ns/p50", 1e6),
                Figure::new(P99, "short", "/late_ns/p99", 1e6),
                Figure::new(P999, "short", "/late_ns/p999", 1e6),
                Figure::new(WORST, "short", "/late_ns/max", 1e6),
                Figure::new(USEFUL, "short", "/useful_percent", 1.0),
                Figure::new(LONG_P99, "long", "/late_ns/p99", 1e6),
                Figure::new(LONG_P999, "long", "/late_ns/p999", 1e6),
                Figure::new(LONG_WORST, "long", "/late_ns/max", 1e6),
                Figure::new("0.92 ms: useful CPU (%)", "long", "/useful_percent", 1.0),
            ],
        },
        Part {
            title: "All players in one group",
            place: Place::ONE_CPU,
            contestants: || vec![Contestant::ours("coop")],
            workloads: &[
                players("group", "--group 1"),
                players("long group", "--group 1 --unit 920"),
            ],
            figures: &[
                Figure::new(GROUP[0], "group", "/late_ns/p99", 1e6),
                Figure::new(GROUP[1], "group", "/late_ns/p999", 1e6),
                Figure::new(GROUP[2], "group", "/late_ns/max", 1e6),
                Figure::new("group: useful CPU (%)", "group", "/useful_percent", 1.0),
                Figure::new(LONG_GROUP[0], "long group", "/late_ns/p99", 1e6),
                Figure::new(LONG_GROUP[1], "long group", "/late_ns/p999", 1e6),
                Figure::new(LONG_GROUP[2], "long group", "/late_ns/max", 1e6),
            ],
        },
    ],
    seeds: FIVE_SEEDS,
    drawn: P99,
    claims,
};

fn limits(figures: [&'static str; 3], limits: [f64; 3]) -> Vec<(&'static str, f64)> {
    figures.into_iter().zip(limits).collect()
}

fn claims(results: &Results) -> Vec<Claim> {
    let tardiness =
        |what: &str, figures, bounds| at_most(results, what, "ms", &limits(figures, bounds));
    let ours = results.worst(COOP, P99);
    let others = results.rows(P99).iter().filter(|row| !row.name.starts_with("attune"));
    let best = others.filter_map(|row| Some((results.median(&row.name, P99)?, row.name.as_str())));
    let best = best.min_by(|one, other| one.0.total_cmp(&other.0));
    let useful = results.least(COOP, USEFUL);
    vec![
        tardiness("callbacks up to 0.2 ms, p99 / p99.9 / worst", [P99, P999, WORST], SHORT),
        tardiness("the same in one group", GROUP, SHORT),
        tardiness("callbacks up to 0.92 ms", [LONG_P99, LONG_P999, LONG_WORST], LONG),
        tardiness("the same in one group", LONG_GROUP, LONG),
        Claim::new(
            format!("p99 under the best of the others is at least {TIMES_SOONER} times as late"),
            ours.zip(best).map(|(ours, (best, name))| {
                (
                    best >= TIMES_SOONER * ours,
                    format!("{:.0} times ({name}, {best:.2} ms)", best / ours),
                )
            }),
        ),
        Claim::new(
            format!("at least {LEAST_USEFUL} % of the CPU are left to useful work in every run"),
            useful.map(|useful| (useful >= LEAST_USEFUL, format!("{useful:.2} %"))),
        ),
    ]
}
