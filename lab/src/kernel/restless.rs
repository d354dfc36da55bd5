//! Experiment `machine-restless`: no thread is lost between instances while threads wake, end and
//! change affinity, class and cpuset at random.

use attune_kernel::Per;

use super::{Contestant, Description, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

/// When the last thread had run: of each part, and how often one looked where it is.
const ALL_RAN: [&str; 3] = ["all ran (ms), 4 CPUs", "all ran (ms), 5000 threads", "all ran (ms)"];
const FOUR: Place = Place::divided(4, 2);

pub const EXPERIMENT: Description = Description {
    name: "machine-restless",
    about: "whether threads that wake, end and change affinity, class and cpuset at random all go \
        on, where they may run, under fair with an instance for each CPU",
    title: "Threads that do not hold still",
    text: &[
        "Threads of one process compute, sleep, wait, wake each other, end and start their \
            successors. Another process changes affinities, nice values, classes (one of them a \
            real-time class) and the cpuset at random. After every thousand changes each thread \
            must run once more. In the end the cpuset leaves out one CPU after the other, so that \
            its instance has no such thread, and then has that CPU alone.",
        "A thread that does not run for a minute, or finds itself on a CPU where it may not run, \
            fails the run; and so does the kernel if it ends the scheduler. All ran: the longest \
            time until each thread had run once more.",
    ],
    published: "nothing.",
    parts: &[
        part("Four CPUs", FOUR, &[RESTLESS], &[all_ran(0, "restless")]),
        part("5000 threads on four CPUs", FOUR, &[CROWD], &[all_ran(1, "crowd")]),
        part("Two CPUs in real time", Place::TwoCpus, &[LIVE], &[all_ran(2, "restless-live")]),
    ],
    seeds: &[1],
    drawn: ALL_RAN[0],
    claims,
};

const RESTLESS: Workload =
    Workload::new("restless", "restless --changes {count}").counting(100_000, 3_000);
/// In real time there are twelve rounds, which make as many changes together.
const LIVE: Workload =
    Workload::new("restless-live", "restless --changes {count}").counting(8_400, 500);
const CROWD: Workload = Workload::new("crowd", "restless --threads 5000 --changes {count}")
    .counting(5_000, 1_000)
    .with_memory(2048);

const fn part(
    title: &'static str,
    place: Place,
    workloads: &'static [Workload],
    figures: &'static [Figure],
) -> Part {
    Part { title, place, contestants: ours, workloads, figures }
}

const fn all_ran(part: usize, workload: &'static str) -> Figure {
    Figure::new(ALL_RAN[part], workload, "/all_ran_ns/max", 1e6)
}

fn ours() -> Vec<Contestant> {
    vec![Contestant::ours_changed("fair", "fair", "--timeout 30000").per(Per::Cpu)]
}

fn claims(results: &Results) -> Vec<Claim> {
    let claim = |figure: &str| {
        let most = results.worst("attune fair --per cpu", figure);
        Claim::new(
            format!("every thread goes on, and the run too ({figure})"),
            // A run that lost a thread has no figure, and the claim is missed.
            most.map(|most| (true, format!("{most:.1} ms at worst"))),
        )
    };
    ALL_RAN.into_iter().map(claim).collect()
}
