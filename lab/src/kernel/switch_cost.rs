//! Experiment `switch-cost`: what a scheduler adds to each switch from one process to another, in instructions.

use super::{Contestant, Description, Figure, Results, Workload, story};
use crate::experiment::Experiment;
use crate::report::Claim;

pub const EXPERIMENT: Experiment = Experiment {
    name: DESCRIPTION.name,
    about: "instructions that a switch between processes takes: ours, the fair class, other sched_ext schedulers",
    run: |options, progress| story::run(&DESCRIPTION, options, progress),
};

const PIPE: &str = "pipe switch";
const OURS: [&str; 2] = ["fifo", "fair"];

const DESCRIPTION: Description = Description {
    name: "switch-cost",
    title: "Instructions for a switch",
    text: &[
        "Pipe: two processes send a byte to and fro; a switch is a blocking read, a wake-up and the choice of the other. Yield: two \
         processes yield to each other. Message: 2 groups of 8 senders and 8 receivers on sockets, as in hackbench. What the kernel does in any \
         case is in all figures.",
        "The calls of `schedule` beside the switches show that each of them was the policy's choice.",
    ],
    published: "none of the peers' authors gives a cost of a switch; the fair class in the same machine is the measure.",
    workloads: &[
        Workload { name: "pipe", words: &["ping-pong", "--turns", "20000"] },
        Workload { name: "yield", words: &["yields", "--turns", "20000"] },
        Workload {
            name: "messages",
            words: &["messages", "--groups", "2", "--size", "8", "--messages", "50"],
        },
    ],
    figures: &[
        Figure { name: PIPE, workload: "pipe", pointer: "/ns_per_switch", unit: 1.0 },
        Figure { name: "yield switch", workload: "yield", pointer: "/ns_per_switch", unit: 1.0 },
        Figure { name: "message", workload: "messages", pointer: "/ns_per_message", unit: 1.0 },
        Figure { name: "pipe switches", workload: "pipe", pointer: "/switches", unit: 1.0 },
    ],
    drawn: PIPE,
    contestants: || {
        let ours = OURS.map(Contestant::ours);
        [Contestant::fair_class()].into_iter().chain(Contestant::peers()).chain(ours).collect()
    },
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let peers = results.rows.iter().filter(|row| row.is_peer);
    let best = peers
        .filter_map(|row| Some((results.median(row, PIPE)?, row.name.as_str())))
        .min_by(|one, other| one.0.total_cmp(&other.0));
    let fair_class = results.row("fair class").and_then(|row| results.median(row, PIPE));
    let of = |scheduler: &str| {
        let row = results.row(&format!("attune {scheduler}"));
        let cost = row.and_then(|row| results.median(row, PIPE));
        let calls = row.and_then(|row| Some(row.runs["pipe"].as_ref().ok()?.first()?.choices? as f64));
        let switches = row.and_then(|row| results.median(row, "pipe switches"));
        let words = |cost: f64, best: (f64, &str), fair_class: f64| {
            format!(
                "{cost:.0} instructions, {} {:.0}, the fair class {fair_class:.0} (ratio {:.2})",
                best.1,
                best.0,
                cost / fair_class
            )
        };
        [
            Claim {
                claim: format!("a switch under {scheduler} takes fewer instructions than under every peer"),
                holds: cost.zip(best).is_some_and(|(cost, best)| cost < best.0),
                measured: cost.zip(best).zip(fair_class).map_or_else(
                    || "not measured".to_owned(),
                    |((cost, best), fair)| words(cost, best, fair),
                ),
            },
            Claim {
                claim: format!("under {scheduler} every switch is the policy's choice"),
                holds: calls.zip(switches).is_some_and(|(calls, switches)| calls >= switches),
                measured: calls.zip(switches).map_or_else(
                    || "not measured".to_owned(),
                    |(calls, switches)| format!("{calls:.0} calls of schedule, {switches:.0} switches"),
                ),
            },
        ]
    };
    OURS.into_iter().flat_map(of).collect()
}
