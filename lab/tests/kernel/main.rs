//! An experiment in the kernel, small: it measures whom it can, says of others why not, and draws and tells what it found.

use std::path::{Path, PathBuf};

use attune_lab::experiment::Options;
use attune_lab::kernel::{self, Contestant, Description, Figure, Results, Workload};
use attune_lab::report::Claim;

const SMALL: Description = Description {
    name: "small",
    title: "A small experiment",
    text: &["How it is read."],
    published: "nothing.",
    workloads: &[Workload { name: "pipe", words: &["ping-pong", "--turns", "500"] }],
    figures: &[
        Figure { name: "instructions", workload: "pipe", pointer: "/ns_per_switch", unit: 1.0 },
        Figure { name: "switches", workload: "pipe", pointer: "/switches", unit: 1.0 },
    ],
    drawn: "instructions",
    contestants: || vec![Contestant::fair_class(), Contestant::ours("no such scheduler")],
    claims: |results: &Results| {
        let of = |name| results.row(name).and_then(|row| results.median(row, "instructions"));
        let claim = |name| Claim {
            claim: format!("{name} is measured"),
            holds: of(name).is_some(),
            measured: String::new(),
        };
        vec![claim("fair class"), claim("attune no such scheduler")]
    },
};

/// The project's built programs: two folders above this test.
fn programs() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    test.ancestors().nth(2).expect("cargo's folders").to_owned()
}

#[test]
fn who_can_run_is_measured_and_who_cannot_says_why() {
    if let Err(error) = attune_vm::Cache::open(&attune_vm::Cache::default_folder()) {
        assert!(std::env::var("CI").map_or(true, |ci| ci != "true"), "{error}");
        eprintln!("not tested: {error}");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel");
    let options = Options { quick: true, programs: programs(), folder };
    let report = kernel::run(&SMALL, &options, &|text| eprintln!("{text}")).expect("it runs");
    let text = report.to_text();
    assert_eq!(report.claims.iter().map(|claim| claim.holds).collect::<Vec<_>>(), [true, false], "{text}");
    let fair_class = text.lines().find(|line| line.starts_with("fair class")).expect("a row");
    // 500 turns are 1000 switches; a tenth more runs before it counts.
    assert!(fair_class.split_whitespace().any(|word| word == "1000"), "{text}");
    assert!(text.contains("attune no such scheduler, pipe: cannot be compiled for the kernel"), "{text}");
    assert!(report.pictures[0].svg.contains("fair class"));
    assert_eq!(report.commands.len(), 1);
    assert!(
        report.commands[0].starts_with("attune vm --memory 1024 --deterministic --seed 1 -- /"),
        "{:?}",
        report.commands
    );
}
