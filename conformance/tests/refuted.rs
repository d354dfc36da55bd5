//! A refuted check fails whenever it is reached.

use attune_conformance::budget::Budget;
use attune_conformance::refuted::run;

#[test]
fn a_refuted_check_always_trips() {
    let report = run(&Budget { schedulers: 120, runs: 6, steps: 60, seed: 5, size: 6 });
    assert!(report.wrong.is_empty(), "{}", report.wrong[0]);
    assert!(
        report.schedulers >= 30 && report.reached >= 50,
        "too few are reached:\n{}",
        report.table()
    );
}

#[test]
fn a_schedule_that_preempts_in_a_loop_ends() {
    // Its `before schedule` asks CPU 0 to choose again for each ready thread, several times.
    let report =
        run(&Budget { schedulers: 1, runs: 10, steps: 100, seed: 0x876580e7736c8571, size: 9 });
    assert_eq!((report.schedulers, report.wrong.len()), (1, 0));
}
