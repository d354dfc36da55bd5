//! Experiment `fairness`: how evenly processes that only compute share a CPU, equal ones and
//! weighted ones.

use super::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const EQUAL: &str = "Jain, equal";
const WEIGHTED: &str = "worst share, weighted (%)";
const STEPS: &str = "worst share, steps (%)";
/// What is claimed.
const LEAST_JAIN: f64 = 0.999;
const MOST_DEVIATION: f64 = 2.0;

pub const EXPERIMENT: Description = Description {
    name: "fairness",
    about: "how evenly computing processes share a CPU, equal and weighted: ours, the kernel's, \
        other sched_ext schedulers",
    title: "How evenly computing processes share a CPU",
    text: &[
        "Equal: four processes compute for 5 s after half a second to find their balance; Jain's \
            index of their CPU times is 1 if all are equal and 1/4 if one has all. Weighted: two \
            at nice 0 and two at nice 5, so that the kernel's weights give them 37.7 % and 12.3 % \
            each; the figure is how far, at worst, a process is off its share, in per cent of it. \
            Steps: the same with nice -4, 0, 4 and 8.",
    ],
    published: "none of the peers' authors gives an index; Jain's index is from Jain, Chiu and \
        Hawe (DEC TR-301, 1984).",
    parts: &[Part {
        title: "How evenly computing processes share a CPU",
        place: Place::ONE_CPU,
        contestants: || {
            let kernel = [Contestant::fair_class(), Contestant::round_robin_class()];
            kernel
                .into_iter()
                .chain(Contestant::peers())
                .chain([Contestant::ours("fair")])
                .collect()
        },
        workloads: &[
            Workload::new("equal", "hogs --count 4 --seconds 5"),
            Workload::new("weighted", "hogs --count 4 --seconds 5 --nice 0,5"),
            Workload::new("steps", "hogs --count 4 --seconds 5 --nice -4,0,4,8"),
        ],
        figures: &[
            Figure::new(EQUAL, "equal", "/jain", 1.0),
            Figure::new("worst share, equal (%)", "equal", "/worst_deviation", 0.01),
            Figure::new("Jain, weighted", "weighted", "/jain", 1.0),
            Figure::new(WEIGHTED, "weighted", "/worst_deviation", 0.01),
            Figure::new(STEPS, "steps", "/worst_deviation", 0.01),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: WEIGHTED,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let of = |figure| results.median("attune fair", figure);
    let respected = |what: &str, figure| {
        let holds = |off| (off <= MOST_DEVIATION, format!("{off:.2} % at worst"));
        Claim::new(format!("{what} are respected within {MOST_DEVIATION} %"), of(figure).map(holds))
    };
    vec![
        Claim::new(
            format!(
                "four equal processes share the CPU under fair with a Jain index of at least \
                 {LEAST_JAIN} over 5 s"
            ),
            of(EQUAL).map(|jain| (jain >= LEAST_JAIN, format!("{jain:.6}"))),
        ),
        respected("the weights of nice 0 and 5", WEIGHTED),
        respected("the weights of nice -4, 0, 4 and 8", STEPS),
    ]
}
