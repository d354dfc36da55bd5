//! The random cases execute nearly all of the language.

use attune_conformance::budget::Budget;
use attune_conformance::coverage::run;

#[test]
fn random_cases_execute_nearly_every_operation() {
    let report = run(&Budget { schedulers: 250, runs: 3, steps: 60, seed: 1, size: 6 });
    assert!(report.share() >= 0.97, "{}", report.table());
}
