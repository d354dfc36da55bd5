//! Experiment `focus-cost`: what the others pay for the person's programs, and what it costs to
//! watch.

use super::adaptive::GREEDY;
use super::{HUMAN, MONITOR, MOST_CPU, PUBLISHED, editing, kernel_and_ours, typing, x_server};
use crate::kernel::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const OTHERS: &str = "left to ten hogs (%)";
const SWITCH: &str = "a switch (instructions)";
const WATCHED: &str = "fair class, attune focus";
const MONITORS: &str = "monitor (% CPU)";
/// The part of an epoch that `human` promises to what is not rated (`other_part`), in per cent, and
/// how much less of it they may get.
const PROMISED: f64 = 15.0;
const MOST_LESS: f64 = 2.0;
/// How much dearer a switch may be with the graph and its corrections, in per cent.
const DEARER: f64 = 8.0;

pub const EXPERIMENT: Description = Description {
    name: "focus-cost",
    about: "what is left to the background, and what the monitor and its graph cost",
    title: "What focus costs",
    text: &[
        "First, ten processes that compute, beside a visible player that takes all it can get: \
            their part of the CPU. `human` promises them 15 % of each epoch.",
        "Then two processes that pass a byte to and fro through pipes while `attune focus` runs \
            on a display where nothing happens: the graph counts each of their wake-ups. The \
            monitor's own CPU time is taken while a person types into vim.",
    ],
    published: PUBLISHED,
    parts: &[
        Part {
            title: "What is left to ten processes that compute",
            place: Place::ONE_CPU,
            contestants: kernel_and_ours,
            workloads: &[GREEDY],
            figures: &[Figure::new(OTHERS, "greedy", "/phases/1/hogs_percent", 1.0)],
        },
        Part {
            title: "What watching costs",
            place: Place::ONE_CPU,
            contestants: || {
                let fair = Contestant::fair_class;
                vec![fair(), fair().with(WATCHED, "--favour ratings", MONITOR)]
            },
            workloads: &[
                Workload::new("pipe", "ping-pong --turns 20000").needing(|_| x_server(&[])),
                Workload::new(
                    "typing",
                    concat!(
                        "desktop --server 'Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac' --hogs \
                         0 --seconds {seconds}",
                        typing!()
                    ),
                )
                .needing(editing)
                .with_memory(1536)
                .lasting(12, 4),
            ],
            figures: &[
                Figure::new(SWITCH, "pipe", "/ns_per_switch", 1.0).with_ratio(),
                Figure::new(MONITORS, "typing", "/phases/0/programs/monitor/cpu_percent", 1.0),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: OTHERS,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let least = PROMISED * (1.0 - MOST_LESS / 100.0);
    let dearer = results.worst_ratio((WATCHED, SWITCH), (super::FAIR, SWITCH));
    vec![
        Claim::new(
            format!("{HUMAN}: ten hogs get at least {PROMISED} % of the CPU, within {MOST_LESS} %"),
            results.least(HUMAN, OTHERS).map(|left| (left >= least, format!("{left:.2} %"))),
        ),
        Claim::new(
            format!("the graph with its corrections takes at most {DEARER} % of a pipe switch"),
            dearer.map(|times| {
                let more = 100.0 * (times - 1.0);
                (more <= DEARER, format!("{more:.1} %"))
            }),
        ),
        super::at_most(results, WATCHED, "the monitor takes", MONITORS, MOST_CPU, "% of a CPU"),
    ]
}
