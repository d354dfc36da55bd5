//! Experiment `machine-join`: runs of other policies join the one that has the machine, and leave.

use super::{Contestant, Description, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

const OFF: &str = "worst part off (%)";
const JOINS: &str = "joined and left";
/// What is claimed, in per cent.
const MOST_OFF: f64 = 2.0;

pub const EXPERIMENT: Description = Description {
    name: "machine-join",
    about: "whether three policies that share the machine have their parts, and whether runs that \
        join and leave at random end with their commands' statuses",
    title: "Policies that join and leave",
    text: &[
        "fair has the machine. Two runs with commands join it, with weights 3:1 and 2:1 beside all \
            others, so that the parts should be 3 to 2 to 1; each of the three has two processes \
            that compute. Then runs join and leave at random, up to four at the same time: they \
            have other policies, random weights, and commands of up to 4 s. Each must end with its \
            command's own status, and in the end fair must have the machine again; else the run \
            fails.",
        "Worst part off: how far the part is off that is most so, in per cent of what it should \
            be. The machine runs in real time, and CPU time is what the kernel counts.",
    ],
    published: "no scheduler of the scx repository can be joined by another one.",
    parts: &[Part {
        title: "Two CPUs in real time",
        place: Place::TwoCpus,
        contestants: || vec![Contestant::fair_class().with("attune fair", "", &["attune"])],
        // In real time there are twelve rounds, which join more than a hundred times together.
        workloads: &[Workload::new("joins", "joins --joins {count} --seed {seed}").counting(9, 3)],
        figures: &[
            Figure::new(OFF, "joins", "/worst_deviation", 0.01),
            Figure::new(JOINS, "joins", "/joins", 1.0),
        ],
    }],
    seeds: &[1],
    drawn: OFF,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let off = results.worst("attune fair", OFF);
    let joins = results.median("attune fair", JOINS);
    vec![
        Claim::new(
            format!("three policies have their parts within {MOST_OFF} %"),
            off.map(|off| (off <= MOST_OFF, format!("{off:.2} % off at worst"))),
        ),
        Claim::new(
            "each run ends with its command's status".to_owned(),
            // A round that fails has no figure.
            joins.map(|joins| (true, format!("{joins} in each round"))),
        ),
    ]
}
