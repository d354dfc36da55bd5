//! Whether a ready thread can starve, and why: the verdicts on small policies.

use attune_language::engine::Engine;
use attune_language::resolve::SourceText;
use attune_language::{Options, Waiting, check};

/// The verdict on one CPU, where all that is proved at all is proved.
fn waiting(data: &str, ready: &str, schedule: &str) -> Waiting {
    let text = format!(
        "scheduler s {{
            threadimports {{ int rank default 0; }}
            thread {{ int blocked = 0; int dead = 0; }}
            data {{ threadref current; queue WQ; {data} }}
            event newthread(t) {{ t => {ready}; }}
            event set_waiting(fixed t) {{ t.blocked = 1; }}
            event set_dead(fixed t) {{ t.dead = 1; }}
            event schedule {{ {schedule} }}
            event switch_out {{
                if (|current| > 0) {{
                    if (current.dead) destroy current;
                    else if (current.blocked) current => WQ;
                    else current => {ready};
                }}
            }}
            event event_raised(t) {{ t.blocked = 0; t => {ready}; }}
        }}"
    );
    let source = SourceText { name: "s.sched".to_string(), text };
    let checked = check(&source, &mut [].as_slice(), &Options::default());
    assert!(!checked.has_errors(), "{:?}", checked.diagnostics);
    checked.engine(Engine::Threads).waiting.clone()
}

fn starves(waiting: &Waiting, why: &str) -> bool {
    matches!(waiting, Waiting::Starves(reason) if reason.contains(why))
}

const IN_TURN: &str = "if (|RQ| > 0) { RQ => current; dispatch current for 5ms; }";

#[test]
fn first_in_first_out_is_bounded() {
    let found = waiting("queue RQ;", "RQ", IN_TURN);
    assert!(
        matches!(&found, Waiting::Bounded(why) if why.contains("before it in `RQ`")),
        "{found:?}"
    );
}

#[test]
fn a_condition_of_its_own_takes_the_proof_away() {
    let schedule = "if (|RQ| > 3) { RQ => current; dispatch current for 5ms; }";
    let found = waiting("queue RQ;", "RQ", schedule);
    assert!(matches!(found, Waiting::NotProved(_)), "{found:?}");
}

#[test]
fn a_second_way_out_takes_the_proof_away() {
    let schedule = "foreach t in RQ if (t.rank > 0) t => last;
        if (|RQ| > 0) { RQ => current; dispatch current for 5ms; }
        else if (|last| > 0) { last => current; dispatch current for 5ms; }";
    let found = waiting("queue RQ, last;", "RQ", schedule);
    assert!(matches!(found, Waiting::NotProved(_)), "{found:?}");
}

#[test]
fn an_order_that_programs_supply_can_starve() {
    let found = waiting("pqueue RQ sortable on rank;", "RQ", IN_TURN);
    assert!(starves(&found, "`RQ` is sorted on `rank`, which programs supply"), "{found:?}");
}

#[test]
fn a_stack_can_starve() {
    let found = waiting("stack RQ;", "RQ", IN_TURN);
    assert!(starves(&found, "`RQ` is a stack"), "{found:?}");
}

#[test]
fn a_container_that_no_statement_empties_starves() {
    let schedule = "foreach t in RQ if (t.rank > 0) t => lost;
        if (|RQ| > 0) { RQ => current; dispatch current for 5ms; }";
    let found = waiting("queue RQ, lost;", "RQ", schedule);
    assert!(starves(&found, "out of `lost`"), "{found:?}");
}

#[test]
fn a_thread_without_a_slice_can_keep_the_others_out() {
    let found = waiting("queue RQ;", "RQ", "if (|RQ| > 0) { RQ => current; dispatch current; }");
    assert!(starves(&found, "names no time"), "{found:?}");
}
