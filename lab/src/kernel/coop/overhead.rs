//! Experiment `coop-overhead`: what cooperating costs with one to fourteen players.

use super::{COOP, FAIR, SETTING, claim, fair_and_coop};
use crate::experiment::Experiment;
use crate::kernel::{Description, FIVE_SEEDS, Figure, Part, Place, Results, Workload, story};
use crate::report::Claim;

pub const EXPERIMENT: Experiment = Experiment {
    name: DESCRIPTION.name,
    about: "work done by one to fourteen cooperating players, against the fair class",
    run: |options, progress| story::run(&DESCRIPTION, options, progress),
};

const USEFUL_14: &str = "14: useful CPU (%)";
/// What is claimed, in per cent of the fair class's.
const MAY_LOSE: f64 = 3.0;

const fn frames(name: &'static str, workload: &'static str) -> Figure {
    Figure::new(name, workload, "/frames_per_second", 1.0).with_ratio()
}

const DESCRIPTION: Description = Description {
    name: "coop-overhead",
    title: "What cooperating costs",
    text: &[SETTING, "No hogs here: the players have the CPU for themselves. A frame is a callback."],
    published: "at 14 players 6 % fewer frames than under the fair class.",
    parts: &[Part {
        title: "Frames a second of 1 to 14 players",
        place: Place::Deterministic,
        contestants: fair_and_coop,
        workloads: &[
            Workload::new("1", &["players", "--count", "1", "--seconds", "5"]),
            Workload::new("4", &["players", "--count", "4", "--seconds", "5"]),
            Workload::new("8", &["players", "--count", "8", "--seconds", "5"]),
            Workload::new("14", &["players", "--count", "14", "--seconds", "5"]),
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
    let of = |who| results.median(who, USEFUL_14);
    let lost = of(COOP).zip(of(FAIR)).map(|(coop, fair)| (1.0 - coop / fair) * 100.0);
    vec![claim(
        format!("14 players lose at most {MAY_LOSE} % of the work that they do under the fair class"),
        lost.map(|lost| (lost <= MAY_LOSE, format!("{lost:.2} % (published: 6 %)"))),
    )]
}
