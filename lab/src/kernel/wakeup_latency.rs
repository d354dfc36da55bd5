//! Experiment `wakeup-latency`: how late a process runs that wakes up by the clock while others compute.

use super::{Contestant, Description, Figure, Results, Workload, story};
use crate::experiment::Experiment;
use crate::report::Claim;

pub const EXPERIMENT: Experiment = Experiment {
    name: DESCRIPTION.name,
    about: "how late a periodic process runs beside computing ones: ours, the kernel's, other sched_ext schedulers",
    run: |options, progress| story::run(&DESCRIPTION, options, progress),
};

const P99: &str = "p99 (us)";

const DESCRIPTION: Description = Description {
    name: "wakeup-latency",
    title: "How late a periodic process runs beside four that compute",
    text: &[
        "A process sleeps until the next multiple of 10 ms, notes how late it is, and computes for 0.1 ms; it needs one per cent of the CPU, \
         far less than its share. Four processes compute all the time. 5 s, after half a second.",
    ],
    published: "none of the peers' authors gives this figure; the kernel's own classes in the same machine are the measure.",
    workloads: &[Workload {
        name: "wakeups",
        words: &["wakeups", "--hogs", "4", "--period", "10000", "--work", "100", "--seconds", "5"],
    }],
    figures: &[
        Figure { name: "p50 (us)", workload: "wakeups", pointer: "/late_ns/p50", unit: 1000.0 },
        Figure { name: P99, workload: "wakeups", pointer: "/late_ns/p99", unit: 1000.0 },
        Figure { name: "longest (us)", workload: "wakeups", pointer: "/late_ns/max", unit: 1000.0 },
    ],
    drawn: P99,
    contestants: || {
        let kernel = [
            Contestant::fair_class(),
            Contestant::fair_class_short_slices(),
            Contestant::round_robin_class(),
        ];
        kernel.into_iter().chain(Contestant::peers()).chain([Contestant::ours("fair")]).collect()
    },
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let of = |name| results.row(name).and_then(|row| results.median(row, P99));
    let both = of("attune fair").zip(of("fair class"));
    vec![Claim {
        claim: "99 of 100 wake-ups under fair are no later than under the fair class".to_owned(),
        holds: both.is_some_and(|(ours, kernels)| ours <= kernels),
        measured: both.map_or_else(
            || "not measured".to_owned(),
            |(ours, kernels)| format!("{ours:.1} us against {kernels:.1} us"),
        ),
    }]
}
