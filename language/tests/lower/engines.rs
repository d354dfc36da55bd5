//! What the engines say of a scheduler before they see it.

use attune_language::engine::Engine;

use super::{check_files, check_text};

const COMPLETE: &str = "
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
    event resume_thread(t) { t => RQ; }
";

fn refusals(body: &str) -> Vec<Option<String>> {
    let checked = check_text(&format!("scheduler s {{ {body} }}"));
    checked.engines.into_iter().map(|report| report.reason).collect()
}

#[test]
fn the_engines_that_are_built_take_a_complete_scheduler() {
    let checked = check_text(&format!("scheduler s {{ {COMPLETE} }}"));
    let accepted: Vec<bool> = checked.engines.iter().map(|report| report.accepted).collect();
    assert_eq!(accepted, [true, true, true, true]);
}

#[test]
fn missing_handlers_are_listed_with_their_alternatives() {
    let checked = check_text("scheduler s { data { queue RQ; } event newthread(t) { t => RQ; } }");
    let simulator = checked.engine(Engine::Simulator);
    assert_eq!(simulator.missing, ["schedule", "switch_out", "event_raised or resume_thread"]);
    assert!(!simulator.accepted);
    assert!(checked.program.is_some(), "a missing handler is an engine's matter, no error");
}

#[test]
fn a_partial_scheduler_runs_nowhere() {
    let checked = check_text(&format!("partial scheduler s {{ {COMPLETE} }}"));
    assert!(checked.engines.iter().all(|report| !report.accepted));
    assert!(checked.engines[0].reason.as_deref().is_some_and(|reason| reason.contains("partial")));
}

#[test]
fn verbatim_text_keeps_the_simulator_out_and_says_where() {
    let refusals = refusals(&format!("{COMPLETE} event init {{\n {{* puts(\"hello\"); *}} }}"));
    let simulator = refusals[0].as_deref().unwrap_or_default();
    assert!(simulator.contains("example.sched:8:2"), "{simulator}");
    assert_eq!(refusals[1], None);
}

#[test]
fn a_scheduler_with_errors_is_no_program() {
    let checked = check_text("scheduler s { event init { n = 1; } }");
    assert!(checked.program.is_none());
    assert_eq!(checked.scheduler_name.as_deref(), Some("s"));
    assert!(checked.engines.iter().all(|report| !report.accepted && report.reason.is_some()));
}

#[test]
fn a_file_without_a_scheduler_has_no_name() {
    for text in ["", "hello", "/* nothing */", "{}"] {
        let checked = check_text(text);
        assert_eq!(checked.scheduler_name, None, "{text:?}");
        assert!(checked.has_errors(), "{text:?}");
        assert_eq!(checked.engines.len(), Engine::ALL.len());
    }
}

/// Transfers: both ends of `RQ => current`, the dispatch, and the sources of the other three.
#[test]
fn transfers_are_counted_once_each() {
    let checked = check_text(&format!("scheduler s {{ {COMPLETE} }}"));
    let counts = checked.engines[0].transfers;
    assert_eq!(counts.total, 6);
    assert_eq!(counts.total, counts.proved + counts.checked + counts.refuted + counts.trivial);
}

#[test]
fn diagnostics_stand_in_the_order_of_the_text() {
    let checked = check_files(&[(
        "example.sched",
        "scheduler s { event init { a = 1; } data { int x; int x; } event schedule { b = 1; } }",
    )]);
    let starts: Vec<u32> = checked.diagnostics.iter().map(|it| it.primary.span.start).collect();
    assert_eq!(starts.len(), 3);
    assert!(starts.is_sorted());
}
