//! Experiment `coop-outside`: tardiness as the players say it, and as the kernel's tracer sees it.

use super::{COOP, FAIR, SETTING, fair_and_coop};
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

/// Said and seen.
const P50: [&str; 2] = ["p50 (ms)", "seen: p50 (ms)"];
const P99: [&str; 2] = ["p99 (ms)", "seen: p99 (ms)"];
const WORST: [&str; 2] = ["worst (ms)", "seen: worst (ms)"];
/// By how much what is said and what is seen may differ, ms: the probe itself takes some
/// microseconds, which the players see and the tracer does not, and the tracer says microseconds.
const MOST_APART: f64 = 0.02;

pub const EXPERIMENT: Description = Description {
    name: "coop-outside",
    about: "tardiness of eight players as they say it themselves, and as the kernel's tracer sees \
        it",
    title: "Tardiness seen from outside",
    text: &[
        SETTING,
        "Here the kernel's tracer looks on: a uprobe where the event loop is about to call a \
            timer's handler, with the release from the loop's queue as its argument and the \
            kernel's time. Its work is in all figures: do not compare them with other \
            experiments'. The second table is of processes that sleep until their time: from the \
            earliest expiry of the kernel's timer to the switch to the process.",
    ],
    published: "no such comparison that we know of.",
    parts: &[
        Part {
            title: "Eight players and four hogs",
            place: Place::ONE_CPU,
            contestants: fair_and_coop,
            workloads: &[Workload::new("players", "--traced players --hogs 4 --seconds {seconds}")
                .lasting(10, 10)],
            figures: &[
                Figure::new("timers", "players", "/late_ns/count", 1.0),
                Figure::new("seen: timers", "players", "/seen/timers_ns/count", 1.0),
                Figure::new(P50[0], "players", "/late_ns/p50", 1e6),
                Figure::new(P50[1], "players", "/seen/timers_ns/p50", 1e6),
                Figure::new(P99[0], "players", "/late_ns/p99", 1e6),
                Figure::new(P99[1], "players", "/seen/timers_ns/p99", 1e6),
                Figure::new(WORST[0], "players", "/late_ns/max", 1e6),
                Figure::new(WORST[1], "players", "/seen/timers_ns/max", 1e6),
            ],
        },
        Part {
            title: "A process that sleeps until its time, every 10 ms, and four hogs",
            place: Place::ONE_CPU,
            contestants: fair_and_coop,
            workloads: &[
                Workload::new("wakeups", "--traced wakeups --seconds {seconds}").lasting(10, 10)
            ],
            figures: &[
                Figure::new("wakeup: p50 (ms)", "wakeups", "/late_ns/p50", 1e6),
                Figure::new("seen: wakeup: p50 (ms)", "wakeups", "/seen/own_sleeps_ns/p50", 1e6),
                Figure::new("wakeup: worst (ms)", "wakeups", "/late_ns/max", 1e6),
                Figure::new("seen: wakeup: worst (ms)", "wakeups", "/seen/own_sleeps_ns/max", 1e6),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: P99[1],
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let apart = |who: &str| {
        [P50, P99, WORST]
            .map(|[said, seen]| {
                Some((results.median(who, said)? - results.median(who, seen)?).abs())
            })
            .into_iter()
            .collect::<Option<Vec<f64>>>()
    };
    let agree = |who: &str| {
        Claim::new(
            format!(
                "{who}: what players say and what is seen differ by at most {MOST_APART} ms: p50, \
                    p99, worst"
            ),
            apart(who).map(|apart| {
                let list =
                    apart.iter().map(|apart| format!("{apart:.4}")).collect::<Vec<_>>().join(" / ");
                (apart.iter().all(|apart| *apart <= MOST_APART), format!("{list} ms"))
            }),
        )
    };
    vec![agree(COOP), agree(FAIR)]
}
