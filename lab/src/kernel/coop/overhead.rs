//! Experiment `coop-overhead`: what cooperating costs with one to fourteen players.

use super::{COOP, FAIR, SETTING};
use crate::kernel::{Contestant, Description, FIVE_SEEDS, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

const USEFUL_14: &str = "14: useful CPU (%)";
/// What is claimed, in per cent of the fair class's.
const MAY_LOSE: f64 = 3.0;

const fn frames(name: &'static str, workload: &'static str) -> Figure {
    Figure::new(name, workload, "/frames_per_second", 1.0).with_ratio()
}

/// Players that have the CPU for themselves.
const fn alone(name: &'static str, words: &'static str) -> Workload {
    Workload::new(name, "players --seconds {seconds}").with(words).lasting(5, 5)
}

pub const EXPERIMENT: Description = Description {
    name: "coop-overhead",
    about: "work done by one to fourteen cooperating players, against the fair class",
    title: "What cooperating costs",
    text: &[
        SETTING,
        "No hogs here: the players have the CPU for themselves. A frame is a callback.",
    ],
    published: "at 14 players 6 % fewer frames than under the fair class.",
    parts: &[Part {
        title: "Frames a second of 1 to 14 players",
        place: Place::ONE_CPU,
        // The ratio is claimed: both in full.
        contestants: || vec![Contestant::fair_class(), Contestant::ours("coop")],
        workloads: &[
            alone("1", "--count 1"),
            alone("4", "--count 4"),
            alone("8", "--count 8"),
            alone("14", "--count 14").lasting(30, 5),
        ],
        figures: &[
            frames("1: frames/s", "1"),
            frames("4: frames/s", "4"),
            frames("8: frames/s", "8"),
            frames("14: frames/s", "14"),
            Figure::new(USEFUL_14, "14", "/useful_percent", 1.0),
            Figure::new("14: p99 (ms)", "14", "/late_ns/p99", 1e6),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: USEFUL_14,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let times = results.worst_ratio((FAIR, USEFUL_14), (COOP, USEFUL_14));
    let lost = times.map(|times| (1.0 - 1.0 / times) * 100.0);
    vec![Claim::new(
        format!(
            "14 players lose at most {MAY_LOSE} % of the work that they do under the fair class"
        ),
        lost.map(|lost| (lost <= MAY_LOSE, format!("{lost:.2} % (published: 6 %)"))),
    )]
}
