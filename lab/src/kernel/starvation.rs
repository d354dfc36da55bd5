//! Experiment `machine-starvation`: how long a ready thread waits in random crowds, beside the
//! bound that its policy's page states.

use super::{Contestant, Description, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

/// Policy and CPUs of each part, and its figures.
struct Case {
    policy: &'static str,
    cpus: usize,
    longest: &'static str,
    part: &'static str,
    lost: &'static str,
}

macro_rules! case {
    ($policy:literal, $cpus:literal, $place:literal) => {
        Case {
            policy: $policy,
            cpus: $cpus,
            longest: concat!("longest wait (ms), ", $place),
            part: concat!("part of the bound (%), ", $place),
            lost: concat!("lost turns (%), ", $place),
        }
    };
}

const CASES: [Case; 4] = [
    case!("fair", 1, "fair, 1 CPU"),
    case!("fair", 2, "fair, 2 CPUs"),
    case!("coop", 1, "coop, 1 CPU"),
    case!("coop", 2, "coop, 2 CPUs"),
];

pub const EXPERIMENT: Description = Description {
    name: "machine-starvation",
    about: "how long a ready thread waits under fair and coop in random crowds of 1 to 5000 \
        threads, beside the bound that is promised",
    title: "No ready thread starves",
    text: &[
        "Each mix is a process of 1 to 5000 computing threads, as many small ones as large ones. \
            Half of the threads may run anywhere and have nice 0; the others have a random set of \
            CPUs, a nice value from -20 to 19, and one in eight the class SCHED_IDLE. A mix lasts \
            one and a half times the bound, and each machine runs ten. The figures are the longest \
            wait of any thread of any mix, and the largest part of its bound that any thread of a \
            mix waited for.",
        "A wait is a time for which a thread is ready and has no CPU, as the kernel counts it. \
            Each thread looks at the clock all the time. The CPUs of this machine stand still in \
            turn while the other computes, for up to some 0.1 ms, as long as the shortest slice. \
            So a thread may have a whole turn in which it does not come to look. Its waits before \
            and after such a lost turn are not counted, but the lost turns are.",
        "The bounds are those of docs/kernel.md for the threads of the mix and ten others, and a \
            switch of 20 us for each of them.",
    ],
    published: "nobody states such a bound of a sched_ext scheduler.",
    parts: &[
        part("Waits under fair on one CPU", 0, FAIR_1, Place::ONE_CPU, fair),
        part("Waits under fair on two CPUs", 1, FAIR_2, Place::deterministic(2), fair),
        part("Waits under coop on one CPU", 2, COOP_1, Place::ONE_CPU, coop),
        part("Waits under coop on two CPUs", 3, COOP_2, Place::deterministic(2), coop),
    ],
    seeds: TWENTY_FIVE_SEEDS,
    drawn: CASES[0].part,
    claims,
};

/// 250 mixes for each policy and number of CPUs.
const TWENTY_FIVE_SEEDS: &[u64] =
    &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25];

/// 2 `patience` + 4 `min_slice` + (cpus + 4) `period`, and `min_slice` and a switch for each other
/// thread; of coop, `min_slice` and `coop_slack`.
const FAIR_1: &[Workload] = &[mixes("crowd --fixed-us 1100400 --per-thread-us 120")];
const FAIR_2: &[Workload] = &[mixes("crowd --fixed-us 1120400 --per-thread-us 120")];
const COOP_1: &[Workload] = &[mixes("crowd --fixed-us 1104400 --per-thread-us 1120")];
const COOP_2: &[Workload] = &[mixes("crowd --fixed-us 1124400 --per-thread-us 1120")];

/// Ten mixes in each machine.
const fn mixes(words: &'static str) -> Workload {
    Workload::new("crowd", words).with("--mixes 10 --seed {seed}").with_memory(2048)
}

const fn part(
    title: &'static str,
    number: usize,
    workloads: &'static [Workload],
    place: Place,
    contestants: fn() -> Vec<Contestant>,
) -> Part {
    Part { title, place, contestants, workloads, figures: FIGURES[number] }
}

const FIGURES: [&[Figure]; 4] = [&figures(0), &figures(1), &figures(2), &figures(3)];

const fn figures(number: usize) -> [Figure; 3] {
    let Case { longest, part, lost, .. } = CASES[number];
    [
        Figure::new(longest, "crowd", "/longest_wait_ns", 1e6).at_worst(),
        Figure::new(part, "crowd", "/worst_part_of_bound", 0.01).at_worst(),
        Figure::new(lost, "crowd", "/lost_part_of_turns", 0.01).at_worst(),
    ]
}

/// The bound of coop with 5000 threads is longer than the kernel's watchdog waits by itself.
fn fair() -> Vec<Contestant> {
    vec![Contestant::ours_changed("fair", "fair", "--timeout 30000")]
}

fn coop() -> Vec<Contestant> {
    vec![Contestant::ours_changed("coop", "coop", "--timeout 30000")]
}

fn claims(results: &Results) -> Vec<Claim> {
    CASES.iter().flat_map(|case| [waits(case, results), turns(case, results)]).collect()
}

fn waits(case: &Case, results: &Results) -> Claim {
    let Case { policy, cpus, part, .. } = case;
    let most = results.worst(&format!("attune {policy}"), part);
    Claim::new(
        format!(
            "no ready thread waits longer than the bound under {policy} on {cpus} CPUs, and no run \
                is ended"
        ),
        most.map(|most| (most <= 100.0, format!("{most:.1} % of the bound at most"))),
    )
}

/// A thread could starve by losing its turns.
fn turns(case: &Case, results: &Results) -> Claim {
    let Case { policy, cpus, lost, .. } = case;
    let most = results.worst(&format!("attune {policy}"), lost);
    Claim::new(
        format!("of 1000 turns under {policy} on {cpus} CPUs at most one is lost"),
        most.map(|most| (most <= 0.1, format!("{most:.4} % in the worst of the machines"))),
    )
}
