//! Experiment `coop-periodic`: cooperating against switching often.

use super::{COOP, SETTING, players};
use crate::kernel::{Contestant, Description, FIVE_SEEDS, Figure, Part, Place, Results};
use crate::report::Claim;

const P99: &str = "p99 (ms)";
const SWITCHES: &str = "players' switches/s";
const SHORTEST: &str = "attune fair_periodic, 1 ms";
/// What is claimed against the shortest period.
const TIMES_SOONER: f64 = 10.0;
const TIMES_FEWER: f64 = 5.0;

pub const EXPERIMENT: Description = Description {
    name: "coop-periodic",
    about: "tardiness and switches of eight players: cooperating, and under fair shares in periods \
        of 20 to 1 ms",
    title: "Cooperating against switching often",
    text: &[
        SETTING,
        "`fair_periodic` gives everybody an equal share in each period, in slices of at least 50 \
            us.",
    ],
    published: "against the fair scheduler with its shortest period: tardiness 5 times less, \
        switches 4 times fewer.",
    parts: &[Part {
        title: "Eight players and four hogs",
        place: Place::ONE_CPU,
        contestants: || {
            let periodic =
                |name: &str, words| Contestant::ours_changed(name, "fair_periodic", words);
            vec![
                periodic("fair_periodic, 20 ms", "--set short_period=20ms").briefly(),
                periodic("fair_periodic, 5 ms", "--set short_period=5ms").briefly(),
                periodic("fair_periodic, 2 ms", "--set short_period=2ms").briefly(),
                periodic("fair_periodic, 1 ms", "--set short_period=1ms"),
                Contestant::ours("coop"),
            ]
        },
        workloads: &[players("players", "")],
        figures: &[
            Figure::new("p50 (ms)", "players", "/late_ns/p50", 1e6),
            Figure::new(P99, "players", "/late_ns/p99", 1e6),
            Figure::new("worst (ms)", "players", "/late_ns/max", 1e6),
            Figure::new(SWITCHES, "players", "/switches_per_second", 1.0),
            Figure::new("useful CPU (%)", "players", "/useful_percent", 1.0),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: P99,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let ratio = |figure| Some(1.0 / results.worst_ratio((COOP, figure), (SHORTEST, figure))?);
    vec![
        Claim::new(
            format!(
                "99 of 100 timers are served {TIMES_SOONER} times sooner than with a period of 1 ms"
            ),
            ratio(P99)
                .map(|ratio| (ratio >= TIMES_SOONER, format!("{ratio:.1} times (published: 5)"))),
        ),
        Claim::new(
            format!("players are switched {TIMES_FEWER} times less often"),
            ratio(SWITCHES)
                .map(|ratio| (ratio >= TIMES_FEWER, format!("{ratio:.1} times (published: 4)"))),
        ),
    ]
}
