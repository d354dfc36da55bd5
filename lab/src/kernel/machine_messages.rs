//! Experiment `machine-messages`: what a message costs on four and eight CPUs, with an instance of
//! the policy for the machine, for each cache and for each CPU, and whether CPUs idle beside work.

use attune_kernel::Per;

use super::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const FAIR: &str = "attune fair";
const PERS: [(Per, &str); 3] =
    [(Per::Machine, "machine"), (Per::Cache, "cache"), (Per::Cpu, "cpu")];
const COST: [&str; 2] = ["4 CPUs: message", "8 CPUs: message"];
const IDLE: [&str; 2] = ["4 CPUs: idle beside work (%)", "8 CPUs: idle beside work (%)"];
/// What is claimed: so many times the fair class's instructions; so many per cent of the times that
/// CPUs go idle.
const MOST: f64 = 1.05;
const MOST_IDLE: f64 = 1.0;

const MESSAGES: &str = "messages --groups 4 --size 8 --messages 40";
const COMPILING: &str = "compile --count 4 --at-once 3";

pub const EXPERIMENT: Description = Description {
    name: "machine-messages",
    about: "a message on four and eight CPUs under fair, with one instance, one for each cache and \
        one for each CPU: instructions against the fair class, and CPUs that idle beside a thread \
        that they could run",
    title: "Messages on several CPUs",
    text: &[
        "Four groups of 8 senders and 8 receivers on sockets, as in hackbench. The machines have \
            two sockets with a last-level cache each. An instruction of any CPU takes a \
            nanosecond, and an idle CPU takes none, so a CPU that idles beside work is not seen in \
            the time. Hence it is counted, in runs of their own: each time that a CPU goes idle \
            the engine looks for a ready thread that may run there.",
        "On two CPUs time is real: medians over pairs of runs, and where the true ones lie; \
            nothing is claimed of them.",
    ],
    published: "nothing.",
    parts: &[
        Part {
            title: "Four CPUs, in instructions",
            place: Place::divided(4, 2),
            contestants: costs,
            workloads: &[Workload::new("four", MESSAGES)],
            figures: &[Figure::new(COST[0], "four", "/ns_per_message", 1.0).with_ratio()],
        },
        Part {
            title: "Eight CPUs, in instructions",
            place: Place::divided(8, 2),
            contestants: costs,
            workloads: &[Workload::new("eight", MESSAGES)],
            figures: &[Figure::new(COST[1], "eight", "/ns_per_message", 1.0).with_ratio()],
        },
        Part {
            title: "Four CPUs: how often one goes idle",
            place: Place::divided(4, 2),
            contestants: counts,
            workloads: &[Workload::new("four", MESSAGES)],
            figures: &[
                Figure::new("4 CPUs: idle", "four", "/idle/times", 1.0),
                Figure::new(IDLE[0], "four", "/idle/beside_ready_percent", 1.0),
            ],
        },
        Part {
            title: "Eight CPUs: how often one goes idle",
            place: Place::divided(8, 2),
            contestants: counts,
            workloads: &[Workload::new("eight", MESSAGES)],
            figures: &[
                Figure::new("8 CPUs: idle", "eight", "/idle/times", 1.0),
                Figure::new(IDLE[1], "eight", "/idle/beside_ready_percent", 1.0),
            ],
        },
        Part {
            title: "Two CPUs, in real time",
            place: Place::TwoCpus,
            contestants: || {
                let ours = [Per::Machine, Per::Cpu].map(|per| Contestant::ours("fair").per(per));
                [Contestant::fair_class()].into_iter().chain(ours).collect()
            },
            workloads: &[Workload::new("messages", MESSAGES), Workload::new("compile", COMPILING)],
            figures: &[
                Figure::new("messages (ms)", "messages", "/time_ns", 1e6).with_ratio(),
                Figure::new("compilation (ms)", "compile", "/time_ns", 1e6).with_ratio(),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: COST[1],
    claims,
};

fn costs() -> Vec<Contestant> {
    let ours = PERS.map(|(per, _)| Contestant::ours("fair").per(per));
    [Contestant::fair_class()].into_iter().chain(ours).collect()
}

fn counts() -> Vec<Contestant> {
    PERS.map(|(per, _)| Contestant::ours("fair").per(per).counting_idle()).to_vec()
}

fn claims(results: &Results) -> Vec<Claim> {
    let of = |(_, per): (Per, &str)| {
        let name = format!("{FAIR} --per {per}");
        let counted = format!("{name}, counted");
        [0, 1].map(|at| {
            let machine = ["four CPUs", "eight CPUs"][at];
            let cost = results.ratio(&name, COST[at]).map(|ratio| ratio.value);
            [
                Claim::new(
                    format!(
                        "--per {per}: a message on {machine} takes at most {MOST} times the fair \
                            class's instructions"
                    ),
                    cost.map(|times| (times <= MOST, format!("{times:.3} times"))),
                ),
                Claim::new(
                    format!(
                        "--per {per}: at most {MOST_IDLE} % of the times that one of {machine} \
                            goes idle leave a ready thread that may run there"
                    ),
                    results
                        .worst(&counted, IDLE[at])
                        .map(|part| (part <= MOST_IDLE, format!("{part:.2} %"))),
                ),
            ]
        })
    };
    PERS.into_iter().flat_map(of).flatten().collect()
}
