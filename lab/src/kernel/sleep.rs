//! Experiment `machine-sleep`: a run goes on when the machine sleeps and wakes.

use super::{Contestant, Description, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

const OURS: [&str; 2] = ["fair", "coop"];
const ALL_RAN: &str = "all have run after (ms)";
const RESCUES: &str = "waited too long";

pub const EXPERIMENT: Description = Description {
    name: "machine-sleep",
    about: "whether a run goes on when the machine suspends or hibernates under 200 threads, as \
        far as the kernel's own tests of sleep go",
    title: "A machine that sleeps",
    text: &[
        "The machine goes to sleep at random moments: to idle, to memory and to disk, each as far \
            as the kernel's tests take it (devices stop; the platform prepares; all CPUs but one \
            go, except for idle), and wakes by itself. A hundred threads compute and a hundred \
            sleep for 10 ms at a time. After each sleep the workload waits until the scheduler is \
            attached and until every thread has run again; a thread that does not run for a minute \
            fails the run.",
        "All have run: the longest time from waking until each of the 200 threads had had the CPU. \
            Waited too long: how often the engine ran a thread because the policy had let it wait. \
            Around a sleep the kernel runs all threads by itself, and a thread that it ran has not \
            waited.",
    ],
    published: "users of sched_ext report schedulers that stall or end after a suspend.",
    parts: &[Part {
        title: "Two CPUs",
        place: Place::that_sleeps(2),
        contestants: || OURS.map(Contestant::ours).to_vec(),
        workloads: &[Workload::new("sleep", "sleep --sleeps {count}").counting(20, 8)],
        figures: &[
            Figure::new(ALL_RAN, "sleep", "/all_ran_ns/max", 1e6),
            Figure::new(RESCUES, "sleep", "/rescues", 1.0),
        ],
    }],
    seeds: &[1],
    drawn: ALL_RAN,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let claim = |policy: &str| {
        let most = results.worst(&format!("attune {policy}"), ALL_RAN);
        Claim::new(
            format!("every thread goes on under {policy}, and the run too"),
            // A run that lost a thread has no figure, and the claim is missed.
            most.map(|most| (true, format!("{most:.1} ms at worst"))),
        )
    };
    OURS.into_iter().map(claim).collect()
}
