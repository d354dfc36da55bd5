//! Experiment `coop-cpus`: two and four CPUs, with eight players and four hogs for each.

use super::{COOP, FAIR, SETTING, fair_and_coop, hogs_are_within};
use crate::kernel::{Contestant, Description, FIVE_SEEDS, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

const P99: [&str; 2] = ["2 CPUs: p99 (ms)", "4 CPUs: p99 (ms)"];
const USEFUL: [&str; 2] = ["2 CPUs: useful CPU (%)", "4 CPUs: useful CPU (%)"];
const HOGS: [&str; 2] = ["2 CPUs: hogs (%)", "4 CPUs: hogs (%)"];
/// The contestant on four CPUs.
const LENIENT: &str = "attune coop, slack 4 ms";
/// What is claimed: p99 in parts of the fair class's.
const MOST: f64 = 0.1;
/// And useful CPU in parts of the fair class's.
const LEAST_USEFUL: f64 = 0.9;
const MOST_DEVIATION: f64 = 2.0;

/// The longest callback is as much shorter as there are CPUs: they take turns, so that it lasts 0.2
/// ms of the machine's time on each.
const fn players(name: &'static str, words: &'static str) -> Workload {
    Workload::new(name, "players --seconds {seconds}").with(words).lasting(3, 2).with_memory(2048)
}

pub const EXPERIMENT: Description = Description {
    name: "coop-cpus",
    about: "tardiness and shares on two and on four CPUs, with eight players and four hogs for \
        each",
    title: "Two and four CPUs",
    text: &[
        SETTING,
        "The machine's CPUs take turns, and its clock goes on in each one's turn: each is slower \
            by their number. Callbacks are shorter by as much, and what does not become shorter \
            (switches, the scheduler, the event loop) takes so much more of the useful CPU; for so \
            many times as many timers come for the same work. A CPU that waits for the scheduler's \
            lock waits for the turn of the CPU that has it.",
        "On four CPUs the slack is four times as long too: the default of 1 ms is a quarter of one \
            there, less than a callback and the turns of the others sometimes take.",
    ],
    published: "nothing: one CPU.",
    parts: &[
        Part {
            title: "Sixteen players and eight hogs on two CPUs",
            place: Place::deterministic(2),
            contestants: fair_and_coop,
            workloads: &[players("two", "--count 16 --hogs 8 --unit 100")],
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
            place: Place::deterministic(4),
            contestants: || {
                let lenient =
                    Contestant::ours_changed("coop, slack 4 ms", "coop", "--set coop_slack=4ms");
                vec![Contestant::fair_class().briefly(), lenient]
            },
            workloads: &[players("four", "--count 32 --hogs 16 --unit 50")],
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
    let of_machine = |(at, who, place): (usize, &str, &str)| {
        let p99 = results.worst(who, P99[at]).zip(results.least(FAIR, P99[at]));
        let useful = results.least(who, USEFUL[at]).zip(results.worst(FAIR, USEFUL[at]));
        let [late, left] = [p99, useful].map(|both| both.map(|(coop, fair)| coop / fair));
        [
            Claim::new(
                format!("{}: at most {MOST} times the fair class's in every run", P99[at]),
                late.map(|times| (times <= MOST, format!("{times:.3} times"))),
            ),
            Claim::new(
                format!(
                    "{}: at least {LEAST_USEFUL} times the fair class's in every run",
                    USEFUL[at]
                ),
                left.map(|times| (times >= LEAST_USEFUL, format!("{times:.3} times"))),
            ),
            hogs_are_within(results, MOST_DEVIATION, who, place, &HOGS[at..=at]),
        ]
    };
    [(0, COOP, "on two CPUs"), (1, LENIENT, "on four CPUs")]
        .into_iter()
        .flat_map(of_machine)
        .collect()
}
