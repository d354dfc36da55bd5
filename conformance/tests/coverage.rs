//! The random cases execute nearly all of the language.

use attune_conformance::coverage::run;
use attune_conformance::effort::Effort;

#[test]
fn random_cases_execute_nearly_every_operation() {
    let report = run(&Effort { schedulers: 250, runs: 3, steps: 60, seed: 1, size: 6 });
    assert!(report.share() >= 0.97, "{}", report.table());
}
