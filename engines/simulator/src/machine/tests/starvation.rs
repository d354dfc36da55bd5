//! Tests that threads that never run and jobs that are never done count, and that the report says
//! so.

use super::run;
use crate::testing::Fifo;

/// A hog that the policy never takes off the CPU, and what waits behind it.
fn behind_a_hog(thread: &str) -> crate::Outcome {
    let text = format!(
        r#"
        duration = "1s"
        [[thread]]
        name = "hog"
        do = [{{ compute = "10s" }}]
        [[thread]]
        name = "starved"
        {thread}
        "#
    );
    run(&mut Fifo::default(), &text)
}

#[test]
fn a_periodic_thread_that_never_runs_misses_its_deadlines() {
    let outcome = behind_a_hog("period = '10ms'\ndeadline = '5ms'\ndo = [{ compute = '1ms' }]");
    let starved = &outcome.groups()[1];
    assert_eq!((starved.never_dispatched, starved.jobs), (1, 0));
    // Released at 0, 10, .. 1000 ms; the deadline of the last one lies beyond the end.
    assert_eq!((starved.unfinished, starved.missed), (101, 100));
    assert_eq!(starved.longest_wait, 1_000_000_000);
    assert_eq!(outcome.groups()[0].never_dispatched, 0);

    let warnings: Vec<String> = outcome.warnings().iter().map(ToString::to_string).collect();
    assert!(warnings[0].contains("`starved` never ran, though ready for 1.00 s"), "{warnings:?}");
    assert!(warnings[1].contains("101 jobs of `starved`"), "{warnings:?}");
    assert!(warnings[1].contains("100 missed their deadline"), "{warnings:?}");

    let table = outcome.table();
    let row = table.lines().find(|line| line.starts_with("starved")).unwrap();
    assert!(row.contains(" 101 ") && row.contains(" 100 ") && row.contains("1.00 s"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&outcome.json()).unwrap();
    let row = &json["groups"][1];
    assert_eq!(row["threads_never_dispatched"], 1);
    assert_eq!(row["jobs_unfinished"], 101);
    assert_eq!(row["deadlines_missed"], 100);
    assert_eq!(row["longest_wait_ns"], 1_000_000_000);
    assert!(row["dispatch_latency"].is_null());
    let page = outcome.html();
    assert!(page.contains("<b>100</b><span>deadlines missed</span>"));
    assert!(page.contains("<b>1</b><span>threads that never ran</span>"));
    assert!(page.contains("starved` never ran"));
}

#[test]
fn jobs_that_cannot_be_released_do_not_count() {
    let unfinished = |keys: &str| {
        let text = format!("period = '10ms'\n{keys}\ndo = [{{ compute = '1ms' }}]");
        let outcome = behind_a_hog(&text);
        (outcome.groups()[1].unfinished, outcome.groups()[1].missed)
    };
    assert_eq!(unfinished("repeat = 3"), (3, 3));
    assert_eq!(unfinished("late = 'skip'"), (1, 1));
    assert_eq!(unfinished("phase = '995ms'"), (1, 0));
    assert_eq!(unfinished("start = '2s'"), (0, 0));
}

#[test]
fn a_job_that_is_under_way_at_the_end_is_not_done() {
    let outcome = run(
        &mut Fifo::default(),
        r#"
        duration = "100ms"
        [[thread]]
        name = "long"
        do = [{ job = [{ compute = "1s" }], deadline = "50ms" }]
        [[client]]
        name = "asks"
        do = [{ job = [{ call = "requests" }] }]
        [[thread]]
        name = "server"
        do = [{ receive = "requests" }, { reply = 1 }]
        "#,
    );
    let [long, server, asks] = outcome.groups() else { panic!("three groups") };
    assert_eq!((long.unfinished, long.missed), (1, 1));
    assert_eq!((asks.unfinished, asks.missed), (1, 0));
    assert_eq!((server.unfinished, server.never_dispatched), (0, 1));
}

#[test]
fn a_thread_that_gets_its_turn_is_not_warned_of() {
    let outcome = run(
        &mut Fifo::with_slice(1_000_000),
        r#"
        duration = "1s"
        [[thread]]
        name = "hog"
        count = 3
        repeat = "forever"
        do = [{ compute = "10s" }]
        [[thread]]
        name = "p"
        period = "20ms"
        do = [{ compute = "1ms" }]
        "#,
    );
    assert!(outcome.warnings().is_empty(), "{:?}", outcome.warnings());
    assert_eq!(outcome.total().never_dispatched, 0);
    assert_eq!(outcome.total().missed, 0, "{}", outcome.table());
}
