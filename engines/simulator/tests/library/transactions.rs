//! `transactions`: what matters goes first, and nothing else is kept from running for ever.

use crate::runs::{group, run, run_text, seconds};

#[test]
fn transactions_let_orders_through() {
    let response = |policy| {
        let outcome = run(policy, "transactions.toml", &seconds(10)).unwrap();
        group(&outcome, "order").response.mean()
    };
    assert!(response("transactions") < 0.8 * response("fifo"));
}

/// The part of the CPU that a thread gets that does not matter and computes, beside four of its
/// process that matter and wake so often that one of them can always run.
fn share_of_a_report(policy: &str, matters: &str, how: &str) -> f64 {
    let text = format!(
        r#"
        duration = "5s"
        cpus = 1
        [[thread]]
        name = "matters"
        count = 4
        imports = {{ process = 7, {matters} }}
        repeat = "forever"
        do = [{how}]
        [[thread]]
        name = "report"
        imports = {{ process = 7 }}
        do = [{{ signal = "baton", count = 2 }}, {{ compute = "5s" }}]
        "#
    );
    let outcome = run_text(policy, &text);
    outcome.share(group(&outcome, "report"))
}

#[test]
fn what_does_not_matter_gets_on_beside_threads_that_wake_without_end() {
    for (policy, matters) in [("transactions", "transaction = 5"), ("priority", "prio = 10")] {
        let share =
            share_of_a_report(policy, matters, r#"{ compute = "20us" }, { sleep = "30us" }"#);
        // A turn of 10 ms for each half second that it waits.
        assert!((0.01..0.03).contains(&share), "{policy}: {share}");
    }
}

#[test]
fn threads_that_hand_a_wait_on_to_each_other_do_not_keep_a_transaction_from_its_end() {
    let hand_on = r#"{ wait = "baton" }, { compute = "20us" }, { signal = "baton" }"#;
    let share = share_of_a_report("transactions", "transaction = 5", hand_on);
    assert!(share > 0.98, "{share}");
}
