//! Experiment `coop-misbehave`: one of eight players sometimes forgets to yield.

use super::{COOP, SETTING, fair_and_coop, players};
use crate::kernel::{Description, FIVE_SEEDS, Figure, Part, Place, Results};
use crate::report::Claim;

const ALL_P99: &str = "all behave: p99 (ms)";
const OTHERS_P99: &str = "others: p99 (ms)";
const OTHERS_WORST: &str = "others: worst (ms)";
const OWN_WORST: &str = "its own: worst (ms)";
/// What is claimed: the others' p99 against the run in which all behave.
const MOST_HARM: f64 = 1.1;

pub const EXPERIMENT: Description = Description {
    name: "coop-misbehave",
    about: "one of eight cooperating players forgets to yield now and then: it harms itself, and \
        others hardly",
    title: "One of eight players forgets to yield",
    text: &[
        SETTING,
        "After one callback in a hundred the last player goes on for up to 10 ms, uniformly. The \
            scheduler lets it for `coop_slack`, 1 ms, or half of that if it used up all of it less \
            than four seconds before, and then treats it like a hog until it polls again.",
    ],
    published: "delays of 0 to 10 ms with probability 0.01: its own tardiness up to 40 ms, others \
        unharmed.",
    parts: &[Part {
        title: "Eight players and four hogs; one player misbehaves",
        place: Place::ONE_CPU,
        contestants: fair_and_coop,
        workloads: &[players("good", ""), players("bad", "--misbehave")],
        figures: &[
            Figure::new(ALL_P99, "good", "/late_ns/p99", 1e6),
            Figure::new("all behave: worst (ms)", "good", "/late_ns/max", 1e6),
            Figure::new(OTHERS_P99, "bad", "/late_ns/p99", 1e6),
            Figure::new("others: p99.9 (ms)", "bad", "/late_ns/p999", 1e6),
            Figure::new(OTHERS_WORST, "bad", "/late_ns/max", 1e6),
            Figure::new("its own: p99 (ms)", "bad", "/misbehaving_late_ns/p99", 1e6),
            Figure::new(OWN_WORST, "bad", "/misbehaving_late_ns/max", 1e6),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: OTHERS_P99,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let harm = results.worst_ratio((COOP, OTHERS_P99), (COOP, ALL_P99));
    let worst = results.worst(COOP, OTHERS_WORST).zip(results.worst(COOP, OWN_WORST));
    vec![
        Claim::new(
            format!(
                "the others' p99 is at most {MOST_HARM} times that of the run with the same seed \
                    in which all behave"
            ),
            harm.map(|harm| (harm <= MOST_HARM, format!("{harm:.2} times"))),
        ),
        Claim::new(
            "the player that misbehaves is later at worst than all others",
            worst
                .map(|(others, own)| (own > others, format!("{own:.2} ms, others {others:.2} ms"))),
        ),
    ]
}
