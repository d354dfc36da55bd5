//! Experiment `coop-cpus`: two and four CPUs, with eight players and four hogs for each.

use super::{COOP, FAIR, SETTING, claim, fair_and_coop, hogs_are_within};
use crate::experiment::Experiment;
use crate::kernel::{Description, FIVE_SEEDS, Figure, Part, Place, Results, Workload, story};
use crate::report::Claim;

pub const EXPERIMENT: Experiment = Experiment {
    name: DESCRIPTION.name,
    about: "tardiness and shares on two and on four CPUs, with eight players and four hogs for each",
    run: |options, progress| story::run(&DESCRIPTION, options, progress),
};

const P99: [&str; 2] = ["2 CPUs: p99 (ms)", "4 CPUs: p99 (ms)"];
const USEFUL: [&str; 2] = ["2 CPUs: useful CPU (%)", "4 CPUs: useful CPU (%)"];
const HOGS: [&str; 2] = ["2 CPUs: hogs (%)", "4 CPUs: hogs (%)"];
/// What is claimed: p99 in parts of the fair class's, by the number of CPUs.
const MOST: [f64; 2] = [0.1, 1.0];
/// And useful CPU in parts of the fair class's.
const LEAST_USEFUL: f64 = 0.9;
const MOST_DEVIATION: f64 = 2.0;

/// The longest callback is as much shorter as there are CPUs: they take turns, so that it lasts 0.2 ms of the machine's time on each.
const fn players(name: &'static str, words: &'static [&'static str]) -> Workload {
    Workload::new(name, &["players", "--seconds", "{seconds}"]).with(words).lasting(3, 2).with_memory(2048)
}

const DESCRIPTION: Description = Description {
    name: "coop-cpus",
    title: "Two and four CPUs",
    text: &[
        SETTING,
        "The machine's CPUs take turns, and its clock goes on in each one's turn: each is slower by their number. Callbacks are shorter by as much, and \
         what does not become shorter (switches, the scheduler, the event loop) takes so much more of the useful CPU; for so many times as many \
         timers come for the same work. Who waits for the scheduler's lock waits for the turn of the CPU that has it.",
    ],
    published: "nothing: one CPU.",
    parts: &[
        Part {
            title: "Sixteen players and eight hogs on two CPUs",
            place: Place::Deterministic { cpus: 2 },
            contestants: fair_and_coop,
            workloads: &[players("two", &["--count", "16", "--hogs", "8", "--unit", "100"])],
            figures: &[
                Figure::new("2 CPUs: p50 (ms)", "two", "/late_ns/p50", 1e6),
                Figure::new(P99[0], "two", "/late_ns/p99", 1e6),
                Figure::new("2 CPUs: p99.9 (ms)", "two", "/late_ns/p999", 1e6),
                Figure::new("2 CPUs: worst (ms)", "two", "/late_ns/max", 1e6),
                Figure::new(USEFUL[0], "two", "/useful_percent", 1.0),
                Figure::new(HOGS[0], "two", "/hogs_percent", 1.0),
            ],
        },
        Part {
            title: "Thirty-two players and sixteen hogs on four CPUs",
            place: Place::Deterministic { cpus: 4 },
            contestants: fair_and_coop,
            workloads: &[players("four", &["--count", "32", "--hogs", "16", "--unit", "50"])],
            figures: &[
                Figure::new("4 CPUs: p50 (ms)", "four", "/late_ns/p50", 1e6),
                Figure::new(P99[1], "four", "/late_ns/p99", 1e6),
                Figure::new("4 CPUs: p99.9 (ms)", "four", "/late_ns/p999", 1e6),
                Figure::new("4 CPUs: worst (ms)", "four", "/late_ns/max", 1e6),
                Figure::new(USEFUL[1], "four", "/useful_percent", 1.0),
                Figure::new(HOGS[1], "four", "/hogs_percent", 1.0),
            ],
        },
    ],
    seeds: FIVE_SEEDS,
    drawn: P99[0],
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let times = |(figure, most): (&str, f64)| {
        let measured =
            results.worst(COOP, figure).zip(results.least(FAIR, figure)).map(|(coop, fair)| coop / fair);
        claim(
            format!("{figure}: at most {most} times the fair class's in every run"),
            measured.map(|times| (times <= most, format!("{times:.3} times"))),
        )
    };
    let useful = |figure: &str| {
        let measured =
            results.least(COOP, figure).zip(results.worst(FAIR, figure)).map(|(coop, fair)| coop / fair);
        claim(
            format!("{figure}: at least {LEAST_USEFUL} times the fair class's in every run"),
            measured.map(|times| (times >= LEAST_USEFUL, format!("{times:.3} times"))),
        )
    };
    let mut claims: Vec<Claim> =
        P99.into_iter().zip(MOST).map(times).chain(USEFUL.into_iter().map(useful)).collect();
    claims.push(hogs_are_within(results, MOST_DEVIATION, COOP, "on two and on four", &HOGS));
    claims
}
