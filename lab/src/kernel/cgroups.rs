//! Experiment `machine-cgroups`: whether weights and quotas of cgroups count, and what they cost.

use super::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const FLAT: [&str; 2] = ["1:10 off by (%)", "1:10 off by, 2 CPUs (%)"];
const NESTED: [&str; 2] = ["3:1 x 1:2 off by (%)", "3:1 x 1:2 off by, 2 CPUs (%)"];
const QUOTA: [&str; 2] = ["quotas off by (%)", "quotas off by, 2 CPUs (%)"];
const ROOT: &str = "switch, no cgroups";
const DEEP: &str = "switch, three levels";
const OURS: [&str; 2] = ["fair", "coop"];
const WEIGHTLESS: &str = "fifo";
/// What is claimed, in per cent.
const MOST_OFF: f64 = 2.0;
const MOST_OFF_QUOTA: f64 = 1.0;
const MOST_DEARER: f64 = 2.0;

const WORKLOADS: &[Workload] = &[
    Workload::new("flat", "cgroups a=100:3 b=1000:3 --seconds 5"),
    Workload::new("nested", "cgroups a=300:0 a/x=100:3 a/y=200:3 b=100:3 --seconds 5"),
    Workload::new("quotas", "cgroups a=100:3:20 b=100:0 b/x=100:3:10 c=100:4 --seconds 5"),
];

pub const EXPERIMENT: Description = Description {
    name: "machine-cgroups",
    about: "whether cpu.weight and cpu.max of cgroups count under a policy, and what a hierarchy \
        costs a switch: ours, the kernel's",
    title: "Weights and quotas of cgroups",
    text: &[
        "Processes compute for 5 s after a second to find their balance. 1:10: two cgroups with \
            cpu.weight 100 and 1000 and three processes each. 3:1 x 1:2: one of two has three \
            times the other's weight, and in it one has twice the other's. The figure is how far, \
            at worst, a cgroup is off its part, in per cent of it.",
        "Quotas: one cgroup may use 20 % of a CPU, and one two levels deep 10 %, in periods of \
            20 ms. Each has three processes that want more, and a cgroup without a quota has the \
            rest. The figure is how far, at worst, one is off its quota, in per cent of it.",
        "Switch: two processes send a byte to and fro, in the root, and each in a cgroup of its \
            own three levels below it. They block for less than 1 ms, so our engine keeps the \
            loads of their cgroups; threads that sleep longer pay more. The kernel counts time \
            and pressure of each cgroup, which costs every scheduler the same; \
            fifo, which asks for no weights, shows how much.",
    ],
    published: "nobody gives such figures of a sched_ext scheduler; the fair class in the same \
        machine is the measure.",
    parts: &[
        Part {
            title: "Parts of cgroups on one CPU",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: WORKLOADS,
            figures: &[
                Figure::new(FLAT[0], "flat", "/worst_deviation", 0.01),
                Figure::new(NESTED[0], "nested", "/worst_deviation", 0.01),
                Figure::new(QUOTA[0], "quotas", "/quota_deviation", 0.01),
            ],
        },
        Part {
            title: "Parts of cgroups on two CPUs",
            place: Place::deterministic(2),
            contestants: everybody,
            workloads: WORKLOADS,
            figures: &[
                Figure::new(FLAT[1], "flat", "/worst_deviation", 0.01),
                Figure::new(NESTED[1], "nested", "/worst_deviation", 0.01),
                Figure::new(QUOTA[1], "quotas", "/quota_deviation", 0.01),
            ],
        },
        Part {
            title: "Instructions for a switch",
            place: Place::ONE_CPU,
            contestants: || [Contestant::ours(WEIGHTLESS)].into_iter().chain(everybody()).collect(),
            workloads: &[
                Workload::new("pipe", "ping-pong --turns 20000"),
                Workload::new("pipe-deep", "ping-pong --turns 20000 --depth 3"),
            ],
            figures: &[
                Figure::new(ROOT, "pipe", "/ns_per_switch", 1.0),
                Figure::new(DEEP, "pipe-deep", "/ns_per_switch", 1.0),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: FLAT[0],
    claims,
};

fn everybody() -> Vec<Contestant> {
    [Contestant::fair_class()].into_iter().chain(OURS.map(Contestant::ours)).collect()
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut claims = vec![];
    let weightless = |figure| results.median(&format!("attune {WEIGHTLESS}"), figure);
    let kernels_own = weightless(DEEP).zip(weightless(ROOT)).map(|(deep, root)| deep - root);
    for scheduler in OURS {
        let of = |figure| results.median(&format!("attune {scheduler}"), figure);
        let mut within = |most: f64, what: &str, cpus: usize, figure| {
            let holds = |off| (off <= most, format!("{off:.2} % at worst"));
            claims.push(Claim::new(
                format!("{what} are kept within {most} % under {scheduler} on {cpus} CPUs"),
                of(figure).map(holds),
            ));
        };
        for cpus in [1, 2] {
            within(MOST_OFF, "parts of 1:10", cpus, FLAT[cpus - 1]);
            within(MOST_OFF, "nested parts of 3:1 and 1:2", cpus, NESTED[cpus - 1]);
            within(MOST_OFF_QUOTA, "quotas of 20 and 10 % of a CPU", cpus, QUOTA[cpus - 1]);
        }
        claims.push(Claim::new(
            format!(
                "weights of three levels of cgroups make a switch under {scheduler} dearer by at \
                    most {MOST_DEARER} % of its instructions"
            ),
            of(DEEP).zip(of(ROOT)).zip(kernels_own).map(|((deep, root), kernels_own)| {
                let more = (deep - root - kernels_own) / root * 100.0;
                (
                    more <= MOST_DEARER,
                    format!(
                        "{root:.0} and {deep:.0}, {kernels_own:.0} of them the kernel's own: \
                            {more:+.2} %"
                    ),
                )
            }),
        ));
    }
    claims
}
