//! Experiment `reserve`: reservations by a scheduler of the library beside the kernel's own.

use super::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const OURS: &str = "attune reserve";
const KERNEL: &str = "SCHED_DEADLINE";

const P99: &str = "p99 (us)";
const LONGEST: &str = "longest (us)";

/// How much later than under SCHED_DEADLINE, in microseconds: a dispatch of sched_ext and the
/// policy's choice, and no slice of another.
const LATER: f64 = 10.0;

/// The part, as a factor, that processes without a reservation get of what SCHED_DEADLINE leaves
/// them.
const LEFT: f64 = 0.98;

/// How much longer, as a factor, jobs beside one that overruns may take than under SCHED_DEADLINE.
const LONGER: f64 = 1.05;

const NEIGHBOURS: [&str; 2] = ["10 ms: p99 (ms)", "25 ms: p99 (ms)"];
const DISTURBED: [&str; 2] =
    ["10 ms: p99, beside one that overruns (ms)", "25 ms: p99, beside one that overruns (ms)"];
const MISSED: [&str; 4] = [
    "10 ms: missed",
    "25 ms: missed",
    "10 ms: missed, beside one that overruns",
    "25 ms: missed, beside one that overruns",
];

const HOGS: &str = "left to hogs, beside one that overruns (%)";

pub const EXPERIMENT: Description = Description {
    name: "reserve",
    about: "reservations by reserve.sched beside SCHED_DEADLINE: how late, and what one that \
        overruns does to the others",
    title: "Reservations by a scheduler in the language",
    text: &[
        "First, a process that computes for 2 ms of every 10, with 2.5 ms reserved, beside four \
            that compute all the time, for 3 s. Lateness: from its release to its first \
            instruction.",
        "Then three with reservations, beside two that compute: 2 ms of every 10 (2.5 reserved), 5 \
            of every 25 (6 reserved), and one with 6 ms reserved in every 40 that needs 5 of them, \
            or overruns: it wants 36. Response: from release to the job's end. Missed: jobs that \
            ended after their period, or had not begun when all was over. Left to hogs: their part \
            of the CPU.",
        "A process that has used up its budget waits for its next period under both; under \
            reserve.sched only as long as another process wants the CPU.",
    ],
    published: "constant bandwidth servers isolate (Abeni and Buttazzo, 1998): a task that \
        overruns delays itself alone. SCHED_DEADLINE in the same machine is the measure.",
    parts: &[
        Part {
            title: "How late a process with a reservation runs beside four that compute",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: &[Workload::new(
                "one reservation",
                "periodic --task 10000,2000,2500 --hogs 4 --seconds 3",
            )],
            figures: &[
                Figure::new("p50 (us)", "one reservation", "/tasks/0/late_ns/p50", 1000.0),
                Figure::new(P99, "one reservation", "/tasks/0/late_ns/p99", 1000.0),
                Figure::new(LONGEST, "one reservation", "/tasks/0/late_ns/max", 1000.0),
                Figure::new("missed", "one reservation", "/missed", 1.0),
            ],
        },
        Part {
            title: "Three reservations, and two processes that compute",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: &[
                Workload::new(
                    "all behave",
                    "periodic --task 10000,2000,2500 --task 25000,5000,6000 --task 40000,5000,6000 \
                     --hogs 2 --seconds 3",
                ),
                Workload::new(
                    "one overruns",
                    "periodic --task 10000,2000,2500 --task 25000,5000,6000 --task \
                     40000,36000,6000 --hogs 2 --seconds 3",
                ),
            ],
            figures: &[
                Figure::new(NEIGHBOURS[0], "all behave", "/tasks/0/response_ns/p99", 1e6),
                Figure::new(NEIGHBOURS[1], "all behave", "/tasks/1/response_ns/p99", 1e6),
                Figure::new(MISSED[0], "all behave", "/tasks/0/missed", 1.0),
                Figure::new(MISSED[1], "all behave", "/tasks/1/missed", 1.0),
                Figure::new(DISTURBED[0], "one overruns", "/tasks/0/response_ns/p99", 1e6),
                Figure::new(DISTURBED[1], "one overruns", "/tasks/1/response_ns/p99", 1e6),
                Figure::new(MISSED[2], "one overruns", "/tasks/0/missed", 1.0),
                Figure::new(MISSED[3], "one overruns", "/tasks/1/missed", 1.0),
                Figure::new("left to hogs (%)", "all behave", "/hogs_percent", 1.0),
                Figure::new(HOGS, "one overruns", "/hogs_percent", 1.0),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: P99,
    claims,
};

fn everybody() -> Vec<Contestant> {
    vec![Contestant::fair_class(), Contestant::reserving_class(), Contestant::ours("reserve")]
}

fn claims(results: &Results) -> Vec<Claim> {
    let missed: Option<f64> = MISSED.into_iter().map(|figure| results.worst(OURS, figure)).sum();
    let ratio = |figure| Some(results.worst(OURS, figure)? / results.worst(KERNEL, figure)?);
    let median = |contestant| results.median(contestant, HOGS);
    let left = median(OURS).zip(median(KERNEL));
    let longer = ratio(DISTURBED[0]).zip(ratio(DISTURBED[1])).map(|(one, other)| one.max(other));
    vec![
        later(results, "99 of 100 wake-ups", P99),
        later(results, "all wake-ups", LONGEST),
        Claim::new(
            "a process that keeps to its reservation misses no deadline under reserve, even beside \
             one that overruns",
            missed.map(|missed| (missed == 0.0, format!("{missed} missed"))),
        ),
        Claim::new(
            format!(
                "beside one that overruns, 99 of 100 jobs of the others take at most {LONGER} \
                    times as long as under SCHED_DEADLINE"
            ),
            longer.map(|longer| (longer <= LONGER, format!("{longer:.3} times"))),
        ),
        Claim::new(
            format!(
                "beside one that overruns, processes without a reservation get at least {LEFT} \
                 times what SCHED_DEADLINE leaves"
            ),
            left.map(|(ours, kernels)| {
                (ours >= LEFT * kernels, format!("{ours:.1} % against {kernels:.1} %"))
            }),
        ),
    ]
}

/// The worst of all runs, so that one late wake-up in one of them is seen.
fn later(results: &Results, what: &str, figure: &str) -> Claim {
    let both = results.worst(OURS, figure).zip(results.worst(KERNEL, figure));
    let holds = |(ours, kernels)| {
        (ours <= kernels + LATER, format!("{ours:.1} us against {kernels:.1} us"))
    };
    Claim::new(
        format!("{what} under reserve are at most {LATER} us later than under SCHED_DEADLINE"),
        both.map(holds),
    )
}
