//! In a crowd of 3322 threads on one CPU, none waits longer than `fair` promises: a turn of one
//! slice is shorter there than what the engine does beside it. Part of the bound, on the
//! deterministic machine.

use std::path::Path;

use attune_lab::experiment::{Experiment, Options};
use attune_lab::kernel::{Contestant, Description, Figure, Part, Place, Results, Workload};
use attune_lab::report::Claim;

const LONGEST: &str = "longest wait, part of the bound";

const CROWD: Description = Description {
    name: "crowd",
    about: "",
    title: "A crowd",
    text: &[],
    published: "nothing.",
    parts: &[Part {
        title: "One CPU",
        place: Place::ONE_CPU,
        contestants: || vec![Contestant::ours_changed("fair", "fair", "--timeout 30000")],
        // The bound is that of `machine-starvation`, for the number of threads that is drawn.
        workloads: &[Workload::new("crowd", "crowd --fixed-us 1100400 --per-thread-us 120")
            .with_memory(3072)],
        figures: &[Figure::new(LONGEST, "crowd", "/worst_part_of_bound", 1.0)],
    }],
    seeds: &[38],
    drawn: LONGEST,
    claims: |results: &Results| {
        let longest = results.worst("attune fair", LONGEST);
        let told = longest.map(|part| (part <= 1.0, format!("{part:.2} of the bound")));
        vec![Claim::new("no thread waits longer than promised", told)]
    },
};

#[test]
fn no_thread_of_a_crowd_waits_longer_than_promised() {
    if !super::set_up() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crowd");
    let options = Options { quick: true, fresh: true, programs: super::programs(), folder };
    let report = CROWD.run(&options, &|text| eprintln!("{text}")).expect("it runs");
    assert!(report.claims.iter().all(Claim::holds), "{}", report.to_text());
}
