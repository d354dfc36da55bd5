//! Programs of a user that attack those of another gain nothing under `coop`, in ways that were
//! chosen and as they draw. The same programs gain under a policy that trusts every user, or else
//! nothing would have been tried.
//! Per cent of a share, on the deterministic machine.

use std::path::Path;

use attune_lab::experiment::{Experiment, Options};
use attune_lab::kernel::{Contestant, Description, Figure, Part, Place, Results, Workload};
use attune_lab::report::Claim;

/// Part of the share that a victim loses: to a thief of its group, to sixty threads that sleep, to
/// such threads that are made anew, to programs that draw their attacks, and to extreme numbers.
const ATTACKS: [&str; 5] = ["theft", "sleepers", "sleepers anew", "any", "extremes"];
const EXTREMES: &str = ATTACKS[4];
/// How much at most. The thread that answers a user's programs may compute for them for 1.7 % of
/// the time and 40 ms more, which in 2.5 s are 3.3 %.
const MOST_LOST: [f64; 5] = [2.0, 2.0, 4.0, 2.0, 2.0];
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
                "trust --attackers 2 --attack theft --attack sleepers --attack sleepers-anew \
                    --attack any --attack extremes --seconds 2",
            )],
            figures: &[
                Figure::new(ATTACKS[0], "attacks", "/theft/lost_percent", 1.0),
                Figure::new(ATTACKS[1], "attacks", "/sleepers/lost_percent", 1.0),
                Figure::new(ATTACKS[2], "attacks", "/sleepers-anew/lost_percent", 1.0),
                Figure::new(ATTACKS[3], "attacks", "/any/lost_percent", 1.0),
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
        let firm = |kind: usize| {
            let lost = lost("attune coop", ATTACKS[kind]);
            lost.map(|lost| (lost <= MOST_LOST[kind], format!("{lost:.2} % lost")))
        };
        let robbed = lost("attune trusting", TRUSTED);
        let robbed = robbed.map(|lost| (lost > 50.0, format!("{lost:.2} % lost")));
        let claims = (0..ATTACKS.len())
            .map(|kind| Claim::new(format!("coop, {}", ATTACKS[kind]), firm(kind)));
        let trusting = Claim::new("a policy that trusts is robbed", robbed);
        claims.chain([trusting]).collect()
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
