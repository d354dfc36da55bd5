//! Programs of a user that attack those of another gain nothing under `coop`, in ways that were
//! chosen and as they draw. The same programs gain under a policy that trusts every user, or else
//! nothing would have been tried.
//! Per cent of a share, on the deterministic machine.

use std::path::Path;

use attune_lab::experiment::{Experiment, Options};
use attune_lab::kernel::{Contestant, Description, Figure, Part, Place, Results, Workload};
use attune_lab::report::Claim;

/// Part of the share that a victim loses: to a thief of its group, to sixty threads that sleep, to
/// programs that draw their attacks, and to extreme numbers.
const ATTACKS: [&str; 4] = ["theft", "sleepers", "any", "extremes"];
const EXTREMES: &str = ATTACKS[3];
const TRUSTED: &str = "extremes, trusted";

const ATTACKED: Description = Description {
    name: "attacked",
    about: "",
    title: "Attacks on two policies",
    text: &[],
    published: "nothing.",
    parts: &[
        Part {
            title: "A policy that trusts nobody",
            place: Place::ONE_CPU,
            contestants: || vec![Contestant::ours_changed("coop", "coop", "--timeout 30000")],
            workloads: &[Workload::new(
                "attacks",
                "trust --attackers 2 --attack theft --attack sleepers --attack any --attack \
                    extremes --seconds 2",
            )],
            figures: &[
                Figure::new(ATTACKS[0], "attacks", "/theft/lost_percent", 1.0),
                Figure::new(ATTACKS[1], "attacks", "/sleepers/lost_percent", 1.0),
                Figure::new(ATTACKS[2], "attacks", "/any/lost_percent", 1.0),
                Figure::new(EXTREMES, "attacks", "/extremes/lost_percent", 1.0),
            ],
        },
        Part {
            title: "A policy that trusts every user",
            place: Place::ONE_CPU,
            contestants: || {
                let trusting = "--trust-programs --timeout 30000";
                vec![Contestant::ours_changed("trusting", "priority", trusting)]
            },
            workloads: &[Workload::new(
                "extremes",
                "trust --attackers 2 --attack extremes --seconds 2",
            )],
            figures: &[Figure::new(TRUSTED, "extremes", "/extremes/lost_percent", 1.0)],
        },
    ],
    seeds: &[1],
    drawn: EXTREMES,
    claims: |results: &Results| {
        let lost = |policy, figure| results.worst(policy, figure);
        let told = |holds: fn(f64) -> bool, lost: Option<f64>| {
            lost.map(|lost| (holds(lost), format!("{lost:.2} % lost")))
        };
        let firm = |attack| told(|lost| lost <= 2.0, lost("attune coop", attack));
        let robbed = told(|lost| lost > 50.0, lost("attune trusting", TRUSTED));
        let claims = ATTACKS.map(|attack| Claim::new(format!("coop, {attack}"), firm(attack)));
        let trusting = Claim::new("a policy that trusts is robbed", robbed);
        claims.into_iter().chain([trusting]).collect()
    },
};

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
