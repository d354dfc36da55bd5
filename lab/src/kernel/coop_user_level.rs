//! Experiment `coop-user-level`: players that pass the CPU to each other through shared memory, on a kernel that knows nothing of it.

use super::{Contestant, Description, FIVE_SEEDS, Figure, Part, Place, Results, Workload, story};
use crate::experiment::Experiment;
use crate::report::Claim;

pub const EXPERIMENT: Experiment = Experiment {
    name: DESCRIPTION.name,
    about: "players that cooperate through shared memory, on the kernel's fair class: tardiness, and what it costs",
    run: |options, progress| story::run(&DESCRIPTION, options, progress),
};

const WORK: &str = "steps/s";
const SWITCHES: &str = "switches/yield";
const P99: &str = "p99 (ms)";
const WORST: &str = "worst (ms)";
const JAIN: &str = "Jain";

/// What is claimed: at most so much of the work is lost, so many switches for a yield.
const MAY_LOSE: f64 = 0.08;
const SWITCHES_PER_YIELD: f64 = 1.2;

const DESCRIPTION: Description = Description {
    name: "coop-user-level",
    title: "Cooperative polling between processes, on a stock kernel",
    text: &[
        "Eight players on one CPU decode all the time, in callbacks of at most 0.2 ms (0.92 ms in the second workload), and serve timers every \
         10 ms and every 1/24 s. Tardiness is from a timer's release to its handler's first instruction. Work is counted in steps over \
         memory; in this machine an instruction is a nanosecond, and a cache miss costs nothing.",
        "With four hogs beside them that do not cooperate the kernel sees five runnable threads in place of twelve, and the players get what one \
         thread gets: a fifth, not two thirds. That is the price of a kernel that knows nothing of cooperation.",
    ],
    published: "Krasic and others (EuroSys 2009): between processes at user level, 20 % of the throughput lost and 2.3 to 2.5 switches \
                for a yield.",
    parts: &[Part {
        title: "Cooperative polling between processes, on a stock kernel",
        place: Place::Deterministic,
        contestants: || vec![Contestant::fair_class(), Contestant::cooperating()],
        workloads: &[
            Workload::new("players", &["players", "--seconds", "5"]),
            Workload::new("long", &["players", "--unit", "920", "--seconds", "5"]),
            Workload::new("hogs", &["players", "--hogs", "4", "--seconds", "5"]),
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
    let of = |contestant, figure| results.median(contestant, figure);
    let both = |figure| of("fair class", figure).zip(of("fair class, cooperating", figure));
    let claim = |claim: String, measured: Option<(bool, String)>| {
        let (holds, measured) = measured.unwrap_or((false, "not measured".to_owned()));
        Claim { claim, holds, measured }
    };
    let lost = both(WORK).map(|(alone, together)| 1.0 - together / alone);
    let switches = of("fair class, cooperating", SWITCHES);
    let late = both(P99).map(|(alone, together)| alone / together);
    vec![
        claim(
            format!("cooperating through shared memory costs at most {:.0} % of the work", MAY_LOSE * 100.0),
            lost.map(|lost| (lost <= MAY_LOSE, format!("{:.1} % (published: 20 %)", lost * 100.0))),
        ),
        claim(
            format!("a yield takes at most {SWITCHES_PER_YIELD} switches of the kernel"),
            switches.map(|each| (each <= SWITCHES_PER_YIELD, format!("{each:.2} (published: 2.3 to 2.5)"))),
        ),
        claim(
            "99 of 100 timers are served at least ten times sooner".to_owned(),
            late.map(|ratio| (ratio >= 10.0, format!("{ratio:.0} times"))),
        ),
    ]
}
