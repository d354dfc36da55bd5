//! Experiment `coop-groups`: does it matter which players share a group? Each player is in a group
//! of its own, or all are in one, or none is in any.

use super::{COOP, SETTING, SHORT, at_most, fair_and_coop, hogs_are_within, is_even, players};
use crate::kernel::{Description, FIVE_SEEDS, Figure, Part, Place, Results};
use crate::report::Claim;

const APART: [&str; 3] = ["apart: p99 (ms)", "apart: p99.9 (ms)", "apart: worst (ms)"];
const ALONE_P99: &str = "no group: p99 (ms)";
const APART_JAIN: &str = "apart: CPU: Jain";
const TOGETHER_FRAMES: &str = "one group: frames: Jain";
const HOGS: [&str; 3] = ["apart: hogs (%)", "one group: hogs (%)", "no group: hogs (%)"];
/// What is claimed: p99 in a group of one against none.
const MOST_FOR_A_GROUP: f64 = 1.1;
const MOST_DEVIATION: f64 = 2.0;

pub const EXPERIMENT: Description = Description {
    name: "coop-groups",
    about: "tardiness and shares of eight unlike players: each in a group of its own, all in one \
        group, each without a group",
    title: "Every player in a group of its own",
    text: &[
        SETTING,
        "The frames of the players cost one, two, three or four callbacks. Players in groups of \
            their own should be as punctual as players in none or in one, and have what those \
            without a group have: equal CPU time. In one group they have equal frame rates. The \
            hogs' fair share is a third each time.",
    ],
    published: "several groups: Jain's index of CPU time 0.98, of frame rates 0.86; one group: of \
        frame rates 0.97; worst tardiness about 1 ms in both.",
    parts: &[Part {
        title: "Eight unlike players and four hogs",
        place: Place::ONE_CPU,
        contestants: fair_and_coop,
        workloads: &[
            players("apart", "--uneven --group 1 --apart"),
            players("together", "--uneven --group 1"),
            players("alone", "--uneven"),
        ],
        figures: &[
            Figure::new(APART[0], "apart", "/late_ns/p99", 1e6),
            Figure::new(APART[1], "apart", "/late_ns/p999", 1e6),
            Figure::new(APART[2], "apart", "/late_ns/max", 1e6),
            Figure::new(APART_JAIN, "apart", "/jain", 1.0),
            Figure::new("apart: frames: Jain", "apart", "/frames_jain", 1.0),
            Figure::new(HOGS[0], "apart", "/hogs_percent", 1.0),
            Figure::new("one group: p99 (ms)", "together", "/late_ns/p99", 1e6),
            Figure::new("one group: CPU: Jain", "together", "/jain", 1.0),
            Figure::new(TOGETHER_FRAMES, "together", "/frames_jain", 1.0),
            Figure::new(HOGS[1], "together", "/hogs_percent", 1.0),
            Figure::new(ALONE_P99, "alone", "/late_ns/p99", 1e6),
            Figure::new(HOGS[2], "alone", "/hogs_percent", 1.0),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: APART[0],
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let limits: Vec<_> = APART.into_iter().zip(SHORT).collect();
    let times = results.worst_ratio((COOP, APART[0]), (COOP, ALONE_P99));
    vec![
        at_most(results, "tardiness apart, p99 / p99.9 / worst", "ms", &limits),
        Claim::new(
            format!(
                "a group of its own makes p99 at most {MOST_FOR_A_GROUP} times that without a group"
            ),
            times.map(|times| (times <= MOST_FOR_A_GROUP, format!("{times:.2} times"))),
        ),
        is_even(results, COOP, "CPU time, apart,", APART_JAIN),
        is_even(results, COOP, "frame rates in one group", TOGETHER_FRAMES),
        hogs_are_within(results, MOST_DEVIATION, COOP, "in all three", &HOGS),
    ]
}
