//! Experiment `wakeup-latency`: how late a process runs that wakes up by the clock while others
//! compute.

use super::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const P99: &str = "p99 (us)";
const MISSED: &str = "deadlines missed (%)";
const REQUESTS: &str = "request wake-up p99 (us)";

pub const EXPERIMENT: Description = Description {
    name: "wakeup-latency",
    about: "how late a periodic process runs beside computing ones: ours, the kernel's, other \
        sched_ext schedulers",
    title: "How late a periodic process runs beside four that compute",
    text: &[
        "A process sleeps until the next multiple of 10 ms, notes how late it is, and computes for \
            0.1 ms; it needs one per cent of the CPU, far less than its share. Four processes \
            compute all the time. 5 s, after half a second.",
        "Periodic: three processes need 0.3 ms every 5 ms, 1.5 ms every 1/60 s and 4 ms every 40 \
            ms (a quarter of the CPU together), beside two that compute; a job that ends after its \
            period has missed its deadline. Requests, after the description of schbench: a \
            messenger wakes four workers as they become free; each computes for 0.2 ms for its \
            request; the time is from the waking to the worker's first instruction.",
    ],
    published: "none of the peers' authors gives this figure; the kernel's own classes in the same \
        machine are the measure.",
    parts: &[
        Part {
            title: "How late a process with a period of 10 ms runs beside four that compute",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: &[Workload::new(
                "wakeups",
                "wakeups --hogs 4 --period 10000 --work 100 --seconds 5",
            )],
            figures: &[
                Figure::new("p50 (us)", "wakeups", "/late_ns/p50", 1000.0),
                Figure::new(P99, "wakeups", "/late_ns/p99", 1000.0),
                Figure::new("longest (us)", "wakeups", "/late_ns/max", 1000.0),
            ],
        },
        Part {
            title: "Several periodic processes, and requests to workers",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: &[
                Workload::new(
                    "periodic",
                    "periodic --task 5000,300 --task 16667,1500 --task 40000,4000 --hogs 2 \
                     --seconds 4",
                ),
                Workload::new("requests", "requests --workers 4 --hogs 2 --seconds 4"),
            ],
            figures: &[
                Figure::new(MISSED, "periodic", "/missed_percent", 1.0),
                Figure::new("response p99 (% of period)", "periodic", "/response_percent/p99", 1.0),
                Figure::new(REQUESTS, "requests", "/wakeup_ns/p99", 1000.0),
                Figure::new("requests/s", "requests", "/requests_per_second", 1.0),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: P99,
    claims,
};

fn everybody() -> Vec<Contestant> {
    let kernel = [
        Contestant::fair_class(),
        Contestant::fair_class_short_slices(),
        Contestant::round_robin_class(),
    ];
    kernel.into_iter().chain(Contestant::peers()).chain([Contestant::ours("fair")]).collect()
}

fn claims(results: &Results) -> Vec<Claim> {
    let both = results.median("attune fair", P99).zip(results.median("fair class", P99));
    vec![Claim::new(
        "99 of 100 wake-ups under fair are no later than under the fair class",
        both.map(|(ours, kernels)| {
            (ours <= kernels, format!("{ours:.1} us against {kernels:.1} us"))
        }),
    )]
}
