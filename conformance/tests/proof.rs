//! No proved check ever trips.

use attune_conformance::budget::Budget;
use attune_conformance::proof::run;

#[test]
fn no_proved_check_ever_trips() {
    let report = run(&Budget { schedulers: 60, runs: 6, steps: 80, seed: 5, size: 6 });
    assert!(report.wrong.is_empty(), "{}", report.wrong[0]);
    assert!(
        report.schedulers >= 40,
        "the front end refuses too many generated schedulers:\n{}",
        report.table()
    );
    assert!(
        report.endings.iter().all(|&count| count > 0),
        "runs all end alike:\n{}",
        report.table()
    );
}
