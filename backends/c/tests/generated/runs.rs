//! What compiled schedulers do where C could have gone astray. That they do what they mean in
//! general is shown by running random ones beside the interpreter.

use attune_backend_c::Options;

use crate::support::{Compiled, run};

/// A scheduler with that `alarm`, and variables to try things on.
fn with_alarm(body: &str) -> String {
    format!(
        "scheduler trying {{
    imports {{ int narrow default 1; float level default 0.25; }}
    thread {{ int rank = 0; float share = 0.0; }}
    data {{
        threadref current;
        queue RQ, other;
        pqueue sorted sortable on rank;
        int a = 0, b = 0;
        float x = 0.0;
        percpu int mine = 0;
        tunable time quantum = 4ms;
    }}
    event newthread(t) {{ t.rank = a; t => RQ; }}
    event event_raised(t) {{ t => sorted; }}
    event schedule {{ if (|RQ| > 0) {{ RQ => current; dispatch current for quantum * (1 - b); }} }}
    event switch_out {{ if (|current| > 0) current => RQ; }}
    event resume_thread(t) {{ t => other; if (|sorted| > 0) sorted => RQ; if (|other| > 0) other \
        => RQ; }}
    event alarm(t) {{ {body} }}
    query first_waiting {{ return *sorted; }}
    query threads_ready {{ return |RQ|; }}
}}"
    )
}

const FOUR: [&str; 8] = [
    "thread 1",
    "call newthread 1 0 0",
    "thread 2",
    "call newthread 2 0 0",
    "thread 3",
    "call newthread 3 0 0",
    "thread 4",
    "call newthread 4 0 0",
];

fn end(name: &str, body: &str, more: &[&str]) -> String {
    let commands: Vec<&str> =
        FOUR.iter().chain(&["call alarm 1 5 0"]).chain(more).copied().collect();
    run(name, &with_alarm(body), &commands).end().to_string()
}

#[test]
fn leaving_nested_loops_early_leaves_nothing_behind() {
    let body = "foreach u in RQ { foreach v in RQ { a++; if (v == u) break; if (a > 6) return; } \
                while (b < 3) { b++; if (b == 2) continue; foreach w in RQ { w => other; break; } \
                } }";
    let said = end("leaving", body, &["call alarm 1 5 0", "call alarm 1 5 0"]);
    assert!(said.contains("| RQ: 3 4 | other: 1 2 |"), "{said}");
}

#[test]
fn continue_reaches_the_step_and_the_test() {
    let body = "for (a = 0; a < 10; a++, b += 10) { if (a % 2) continue; b++; } \
                do { x += 1.0; if (x < 3.0) continue; } while (x++ < 5.0);";
    let body = body.replace("a++, b += 10", "a++");
    let said = end("continuing", &body, &[]);
    assert!(said.contains(" a 10 b 5 ") && said.contains(" x 6 "), "{said}");
}

#[test]
fn assigning_a_key_sorts_again() {
    let body = "foreach u in RQ { u.rank = b; b++; u => sorted; } (*sorted).rank = 0;";
    let body = body.replace("(*sorted).rank", "t.rank");
    let said = end("sorting", &body, &["call first_waiting 0 0 0"]);
    assert!(said.starts_with("thread 4; ") && said.contains("| sorted: 4 3 2 1 |"), "{said}");
}

#[test]
fn imports_are_read_once_and_written_through() {
    let body = "narrow = narrow + 100; a = narrow; level = level * 2.0; x = level;";
    let compiled = Compiled::new("importing", &with_alarm(body), &Options::default(), &[]);
    let unlinked =
        compiled.run(&["thread 1", "call newthread 1 0 0", "call alarm 1 0 0", "call alarm 1 0 0"]);
    let said = unlinked.end();
    assert!(said.contains("narrow 201 level 1 a 201 ") && said.contains(" x 1 "), "{said}");
    let linked = compiled.run(&[
        "thread 1",
        "call newthread 1 0 0",
        "link narrow 0 50",
        "link level 9 3",
        "call alarm 1 0 0",
    ]);
    let said = linked.end();
    // The handler goes on with what it assigned; the application's variable holds what fits.
    assert!(
        said.contains(" a 150 ") && said.contains("narrow=127 level=6 | divisions 0 clamped 1"),
        "{said}"
    );
}

#[test]
fn an_import_with_a_range_is_read_and_assigned_within_it() {
    let text = with_alarm("a = narrow; narrow = 99; b = narrow;")
        .replace("int narrow default 1", "int narrow default 1 within 0 to 10");
    let compiled = Compiled::new("ranged", &text, &Options::default(), &[]);
    let run =
        compiled.run(&["thread 1", "call newthread 1 0 0", "link narrow 0 50", "call alarm 1 0 0"]);
    let said = run.end();
    assert!(said.contains(" a 10 b 10 "), "{said}");
    assert!(said.contains("narrow=10 | divisions 0 clamped 2"), "{said}");
}

#[test]
fn each_cpu_has_its_own() {
    let body = "mine = mine + 1; mine[narrow] = mine[narrow] + 10; a = cpu; b = cpus; preempt 1 - \
        cpu at now + 2; alarm t at now + 1;";
    let text = with_alarm(body);
    let compiled = Compiled::new("per_cpu_run", &text, &Options::default(), &["-DATTUNE_CPUS=2"]);
    let run = compiled.run(&[
        "thread 1",
        "call newthread 1 0 0",
        "call schedule 0 0 1",
        "call alarm 1 7 0",
        "call alarm 1 8 1",
    ]);
    let said = run.end();
    assert!(
        run.lines[1].contains("dispatch 1 for 4000000; | current: | current: 1 |"),
        "{:#?}",
        run.lines
    );
    assert!(
        said.starts_with("alarm 1 at 9; ") || said.starts_with("preempt 0 at 10; alarm 1 at 9; "),
        "{said}"
    );
    assert!(said.contains(" a 1 b 2 ") && said.contains(" mine 1 21 "), "{said}");
}

#[test]
fn divisions_by_zero_are_counted_and_slices_are_not_negative() {
    let said = end("dividing", "a = 7 / b + 7 % b; x = 1.5 / x; b = 2;", &["call schedule 0 0 0"]);
    assert!(
        said.starts_with("dispatch 1 for 0; ")
            && said.contains(" a 7 ")
            && said.contains("divisions 3 "),
        "{said}"
    );
}

#[test]
fn parts_run_in_order_and_return_leaves_one() {
    let text = with_alarm("a = a * 10 + 2; if (b) return; a = a * 10 + 3;").replace(
        "query first_waiting",
        "before alarm(u) { a = a * 10 + 1; if (|RQ| > 0) return; a = 0; } after alarm \
            { a = a * 10 + 4; b = 1; } \
         query first_waiting",
    );
    let said = run(
        "parts",
        &text,
        &["thread 1", "call newthread 1 0 0", "call alarm 1 0 0", "call alarm 1 0 0"],
    );
    assert!(said.lines[1].contains(" a 1234 b 1 "), "{:#?}", said.lines);
    assert!(said.end().contains(" a 1234124 b 1 "), "{}", said.end());
}
