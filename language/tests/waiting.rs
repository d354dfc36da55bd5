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

/// A policy in which rounds protect threads from the order of RQ.
const ROUNDS: &str = "scheduler s {
    threadimports { int rank default 0; }
    thread { int blocked = 0; int dead = 0; int entered = 0; }
    data {
        threadref current;
        queue ready, WQ, late;
        pqueue RQ sortable on rank;
        tunable time patience = 500ms;
        int round = 1;
        time round_ends = 0;
    }
    event newthread(t) { t => ready; }
    event set_waiting(fixed t) { t.blocked = 1; }
    event set_dead(fixed t) { t.dead = 1; }
    event switch_out {
        if (now >= round_ends) {
            foreach t in RQ
                if (t.entered < round)
                    t => late;
            round++;
            round_ends = now + patience;
        }
        if (|current| > 0) {
            if (current.dead) destroy current;
            else if (current.blocked) current => WQ;
            else current => ready;
        }
    }
    event schedule {
        foreach t in ready {
            t.entered = round;
            t => RQ;
        }
        if (|late| > 0)
            late => current;
        else if (|RQ| > 0)
            RQ => current;
        else
            return;
        dispatch current for 5ms;
    }
    event event_raised(t) { t.blocked = 0; t => ready; }
}";

fn of_rounds(part: &str, instead: &str) -> Waiting {
    assert!(ROUNDS.contains(part), "{part}");
    let source =
        SourceText { name: "s.sched".to_string(), text: ROUNDS.replacen(part, instead, 1) };
    let checked = check(&source, &mut [].as_slice(), &Options::default());
    assert!(!checked.has_errors(), "{:?}", checked.diagnostics);
    checked.engine(Engine::Threads).waiting.clone()
}

#[test]
fn rounds_bound_the_wait_whatever_the_order() {
    let found = of_rounds("", "");
    let said = "for two rounds of `patience`, each of which ends up to a slice late, and then for \
                one slice of each thread before it in `late`, first in, first out";
    assert!(matches!(&found, Waiting::Bounded(why) if why == said), "{found:?}");
}

#[test]
fn rounds_may_be_of_a_fixed_length_and_name_their_slices_apart() {
    let found = of_rounds("now + patience", "now + 1s");
    assert!(matches!(&found, Waiting::Bounded(why) if why.contains("two rounds, ")), "{found:?}");
    let apart = "{ late => current; dispatch current for 1ms; }";
    let found = of_rounds("late => current;", apart);
    assert!(matches!(found, Waiting::Bounded(_)), "{found:?}");
    let by_kind = "if (t.rank > 3) { t.rank = 3; t => RQ; } else t => RQ;";
    let found = of_rounds("t => RQ;", by_kind);
    assert!(matches!(found, Waiting::Bounded(_)), "{found:?}");
}

#[test]
fn a_step_from_the_pattern_of_rounds_takes_the_proof_away() {
    let steps = [
        // Late threads are not served first, or only some of them.
        ("if (|late| > 0)", "if (|RQ| == 0 && |late| > 0)"),
        ("if (|late| > 0)", "if (|late| > 1)"),
        (
            "foreach t in ready {",
            "if (|RQ| > 9) { RQ => current; dispatch current for 1ms; } foreach t in ready {",
        ),
        ("late => current;", "{ if (|RQ| > 3) return; late => current; }"),
        (
            "late => current;",
            "{ late => current; if (|RQ| > 3) { current => late; RQ => current; } }",
        ),
        // Some threads are not marked with the round, or are marked again, or not yet ordered.
        ("t.entered = round;", "if (t.rank > 0) t.entered = round;"),
        ("t.entered = round;", "t.entered = round + t.rank;"),
        ("event newthread(t) {", "event newthread(t) { foreach o in RQ o.entered = round;"),
        ("t.entered = round;", "if (t.rank > 7) break; t.entered = round;"),
        (
            "foreach t in ready {",
            "foreach o in RQ if (o.rank < 0) o => ready; foreach t in ready {",
        ),
        ("event newthread(t) {", "event newthread(t) { if (|RQ| > 7) RQ => ready;"),
        // A round does not end, or moves not all.
        ("round++;", "round += 0;"),
        ("if (now >= round_ends)", "if (now > round_ends && |RQ| < 9)"),
        ("if (now >= round_ends)", "if (|RQ| > 9) return; if (now >= round_ends)"),
        ("event newthread(t) {", "event newthread(t) { round_ends = now + 1s;"),
        ("event newthread(t) {", "event newthread(t) { if (round > 9) round = 0;"),
        ("round_ends = 0;", "round_ends = 9000000000s;"),
        ("if (t.entered < round)", "if (t.entered < round && t.rank > 0)"),
        ("if (t.entered < round)", "if (t.entered > round)"),
        // Threads leave the queue of late ones, or are not first in, first out there.
        (
            "event newthread(t) {",
            "event newthread(t) { foreach o in late if (o.rank < 0) o => ready;",
        ),
        ("event newthread(t) {", "event newthread(t) { if (|late| > 7) late => ready;"),
        ("queue ready, WQ, late;", "queue ready, WQ; stack late;"),
        // Each CPU has its own, and ends the others' rounds.
        ("pqueue RQ sortable", "percpu pqueue RQ sortable"),
        ("queue ready, WQ, late;", "percpu queue ready; queue WQ, late;"),
        // A slice without an end.
        ("dispatch current for 5ms;", "dispatch current; if (cpus > 9) preempt cpu;"),
    ];
    for (part, instead) in steps {
        let found = of_rounds(part, instead);
        assert!(!matches!(found, Waiting::Bounded(_)), "{instead}: {found:?}");
    }
}
