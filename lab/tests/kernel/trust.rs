//! Programs of a user that attack those of another as they draw gain nothing under `coop`. The same
//! programs gain under a policy that trusts every user, or else nothing would have been tried.
//! Per cent of a share, on the deterministic machine.

use std::path::Path;

use attune_lab::experiment::{Experiment, Options};
use attune_lab::kernel::{Contestant, Description, Figure, Part, Place, Results, Workload};
use attune_lab::report::Claim;

/// Part of the share that a victim loses.
const DRAWN: &str = "drawn";
const EXTREMES: &str = "extremes";

const ATTACKED: Description = Description {
    name: "attacked",
    about: "",
    title: "Attacks on two policies",
    text: &[],
    published: "nothing.",
    parts: &[Part {
        title: "One CPU",
        place: Place::ONE_CPU,
        contestants: policies,
        workloads: &[Workload::new(
            "attacks",
            "trust --attackers 2 --attack any --attack extremes --seconds 2",
        )],
        figures: &[
            Figure::new(DRAWN, "attacks", "/any/lost_percent", 1.0),
            Figure::new(EXTREMES, "attacks", "/extremes/lost_percent", 1.0),
        ],
    }],
    seeds: &[1],
    drawn: DRAWN,
    claims: |results: &Results| {
        let lost = |policy, figure| results.worst(policy, figure);
        let told = |holds: fn(f64) -> bool, lost: Option<f64>| {
            lost.map(|lost| (holds(lost), format!("{lost:.2} % lost")))
        };
        let firm = |lost| lost <= 2.0;
        vec![
            Claim::new("coop, as they draw", told(firm, lost("attune coop", DRAWN))),
            Claim::new("coop, extremes", told(firm, lost("attune coop", EXTREMES))),
            Claim::new(
                "a policy that trusts is robbed",
                told(|lost| lost > 50.0, lost("attune trusting", EXTREMES)),
            ),
        ]
    },
};

fn policies() -> Vec<Contestant> {
    let trusting = "--trust-programs --timeout 30000";
    vec![
        Contestant::ours_changed("coop", "coop", "--timeout 30000"),
        Contestant::ours_changed("trusting", "priority", trusting),
    ]
}

#[test]
fn attackers_gain_nothing_and_end_nothing() {
    if !super::set_up() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trust");
    let options = Options { quick: true, fresh: true, programs: super::programs(), folder };
    let report = ATTACKED.run(&options, &|text| eprintln!("{text}")).expect("it runs");
    assert!(report.claims.iter().all(Claim::holds), "{}", report.to_text());
}
