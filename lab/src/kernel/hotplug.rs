//! Experiment `machine-hotplug`: a run goes on when CPUs go and come, and for how long no policy
//! decides.

use attune_kernel::Per;

use super::{Contestant, Description, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

const OURS: [&str; 2] = ["fair", "coop"];
const UNDECIDED: [&str; 2] = ["no decision for (ms)", "no decision for (ms), real time"];
const ALL_RAN: [&str; 2] = ["all have run after (ms)", "all have run after (ms), real time"];
/// What is claimed, in ms.
const MOST: f64 = 100.0;

pub const EXPERIMENT: Description = Description {
    name: "machine-hotplug",
    about: "whether a run goes on when a CPU goes or comes under 200 threads, and for how long no \
        policy decides",
    title: "CPUs that go and come",
    text: &[
        "One CPU of two goes, comes, goes .. at random moments. A hundred threads compute and a \
            hundred sleep for 10 ms at a time. After each change the workload waits until the \
            scheduler is there and until every thread has run again; a thread that does not run \
            for a minute fails the run.",
        "No decision: the longest time from the policy's last decision before a change to its \
            first after it, as `attune run` says it. With `--per cpu` the CPU that goes leaves an \
            instance without any. All have run: the longest time from the change until each of the \
            200 threads had had the CPU.",
    ],
    published: "the scx repository's schedulers end when a CPU goes or comes, and are started \
        anew.",
    parts: &[
        Part {
            title: "Two CPUs",
            place: Place::deterministic(2),
            contestants: ours,
            workloads: &[Workload::new("hotplug", "hotplug --changes {count}").counting(40, 6)],
            figures: &[
                Figure::new(UNDECIDED[0], "hotplug", "/undecided_ms/longest", 1.0),
                Figure::new(ALL_RAN[0], "hotplug", "/all_ran_ns/max", 1e6),
            ],
        },
        Part {
            title: "Two CPUs in real time",
            place: Place::TwoCpus,
            contestants: || OURS.map(Contestant::ours).to_vec(),
            // In real time there are twelve rounds, which make two hundred changes together.
            workloads: &[
                Workload::new("hotplug", "hotplug --changes {count} --seed {seed}").counting(9, 4)
            ],
            figures: &[
                Figure::new(UNDECIDED[1], "hotplug", "/undecided_ms/longest", 1.0),
                Figure::new(ALL_RAN[1], "hotplug", "/all_ran_ns/max", 1e6),
            ],
        },
    ],
    seeds: &[1],
    drawn: ALL_RAN[0],
    claims,
};

fn ours() -> Vec<Contestant> {
    let each = OURS.map(|policy| Contestant::ours(policy).per(Per::Cpu));
    [OURS.map(Contestant::ours), each].concat()
}

fn claims(results: &Results) -> Vec<Claim> {
    let decides = |contestant: Contestant| {
        let most = results.worst(&contestant.name, UNDECIDED[0]);
        Claim::new(
            format!("{} decides again within {MOST} ms, and every thread runs on", contestant.name),
            most.map(|most| (most <= MOST, format!("{most:.1} ms at worst"))),
        )
    };
    let runs_on = |policy: &'static str| {
        let most = results.worst(&Contestant::ours(policy).name, ALL_RAN[1]);
        Claim::new(
            format!("every thread runs on under {policy} in real time"),
            // A run that lost a thread has no figure, and the claim is missed.
            most.map(|most| (true, format!("{most:.1} ms at worst"))),
        )
    };
    ours().into_iter().map(decides).chain(OURS.map(runs_on)).collect()
}
