//! What one program takes from others by what it says, or by the way that it works.

use crate::runs::{MS, group, run_text};

/// Two threads of a group that compute, beside what `attackers` says; their shares of the CPU.
fn victims_of(attackers: &str) -> [f64; 2] {
    let text = format!(
        r#"
        duration = "2s"
        cpus = 1

        [[thread]]
        name = "victim"
        count = 2
        imports = {{ user = 1, group = 7, polls = 1, importance = 0 }}
        repeat = "forever"
        do = [{{ compute = "100us" }}, "yield"]

        [[thread]]
        name = "attacker"
        {attackers}
        "#
    );
    let outcome = run_text("coop", &text);
    let cpu = outcome.total().cpu as f64;
    let mut victims = outcome.threads().iter().filter(|thread| thread.name.starts_with("victim"));
    [(); 2].map(|()| victims.next().unwrap().cpu as f64 / cpu)
}

#[track_caller]
fn assert_none_is_robbed(attackers: &str, share: f64) {
    for victim in victims_of(attackers) {
        assert!(victim > share * 0.98, "{victim} instead of {share}");
    }
}

#[test]
fn nobody_joins_a_strangers_group_in_coop() {
    let joins = r#"
        imports = { user = 2, group = 7, polls = 1, importance = -1000000 }
        repeat = "forever"
        do = [{ compute = "100us" }, "yield"]"#;
    assert_none_is_robbed(joins, 1.0 / 3.0);
}

#[test]
fn members_of_a_group_that_sleep_have_no_weight_in_coop() {
    let sleepers = r#"
        count = 61
        imports = { user = 2, group = 9, polls = 1 }
        do = [
            { set = { next_release = "now + 100s", importance = "9223372036854775807" } },
            { if = "index > 0", then = [{ sleep_until = "now + 100s" }] },
            { set = { next_release = "0", importance = "0" } },
            { repeat = 40000, do = [{ compute = "100us" }, "yield"] },
        ]"#;
    assert_none_is_robbed(sleepers, 1.0 / 3.0);
}

/// They wake while another member runs, and have used next to nothing.
#[test]
fn members_of_a_group_that_wake_do_not_set_it_back_in_coop() {
    let sleepers = r#"
        imports = { user = 2, group = 9, polls = 1 }
        repeat = "forever"
        do = [{ compute = "100us" }, "yield"]

        [[thread]]
        name = "sleeper"
        count = 20
        imports = { user = 2, group = 9, polls = 1 }
        do = [
            { set = { next_release = "now + 100s", importance = "9223372036854775807" } },
            { repeat = 100, do = [{ sleep = "20ms + index * 37us" }, { compute = "10us" }] },
        ]"#;
    assert_none_is_robbed(sleepers, 1.0 / 3.0);
}

/// Two programs that compute, beside two whose threads each work for 2 ms, start the next and end.
#[test]
fn a_chain_of_threads_gets_no_more_than_one_thread() {
    let text = r#"
        duration = "4s"
        cpus = 1

        [[thread]]
        name = "hog"
        count = 2
        imports = { user = 1 }
        repeat = "forever"
        do = [{ compute = "50ms" }]

        [[thread]]
        name = "link"
        count = 2
        imports = { user = 2 }
        do = [{ compute = "2ms" }, { spawn = "link" }]
        "#;
    for policy in ["fair", "fair_periodic", "coop", "desktop"] {
        let outcome = run_text(policy, text);
        let share = outcome.share(group(&outcome, "hog"));
        assert!(share > 0.5 * 0.98, "{policy}: {share}\n{}", outcome.table());
        let links = outcome.share(group(&outcome, "link"));
        assert!(links > 0.4, "{policy}: a chain is no worse off either: {links}");
    }
}

/// Programs that only wait, each for one thread after the other that works for a while and ends.
/// Theirs is the share of as many threads as work at a time.
#[test]
fn threads_that_are_started_one_after_the_other_get_no_more_than_one_thread() {
    let shares = |policy: &str, masters: u32, work: &str| {
        let text = format!(
            r#"
            duration = "6s"
            cpus = 1

            [[thread]]
            name = "hog"
            count = 2
            imports = {{ user = 1 }}
            repeat = "forever"
            do = [{{ compute = "50ms" }}]

            [[thread]]
            name = "master"
            count = {masters}
            imports = {{ user = 2 }}
            repeat = "forever"
            do = [{{ spawn = "worker" }}, "join"]

            [[thread]]
            name = "worker"
            count = 0
            imports = {{ user = 2 }}
            do = [{work}]
            "#
        );
        let outcome = run_text(policy, &text);
        let fair = f64::from(masters) / f64::from(masters + 2);
        (outcome.share(group(&outcome, "worker")) / fair, outcome.table())
    };
    let due = r#"{ repeat = 400, do = [
        { compute = "100us" },
        { set = { next_release = "now", polls = "polls + 1" } },
        "yield",
    ] }"#;
    let computes = ["1ms", "1500us", "4ms", "30ms"];
    let computes = computes.map(|time| format!(r#"{{ compute = "{time}" }}"#));
    let plain = computes.iter().flat_map(|work| {
        ["fair", "fair_periodic", "coop", "desktop"].map(|policy| (policy, work.as_str()))
    });
    let due = ["coop", "desktop"].map(|policy| (policy, due));
    for (policy, work) in plain.chain(due) {
        for masters in [1, 8] {
            let (share, table) = shares(policy, masters, work);
            assert!(
                (0.9..1.04).contains(&share),
                "{policy}, {masters}, {work}: {share} of a fair share\n{table}"
            );
        }
    }
}

/// Eight compute nearly all the time and sleep for a moment now and then: they wait at the minimum
/// too, but they have used what is theirs.
#[test]
fn a_thread_that_uses_little_goes_before_those_that_sleep_for_a_moment() {
    let text = r#"
        duration = "4s"
        cpus = 1

        [[thread]]
        name = "seldom"
        period = "10ms"
        do = [{ compute = "100us" }]

        [[thread]]
        name = "often"
        count = 8
        repeat = "forever"
        do = [{ compute = "2ms" }, { sleep = "50us" }]

        [[thread]]
        name = "hog"
        count = 2
        repeat = "forever"
        do = [{ compute = "50ms" }]
        "#;
    for policy in ["fair", "fair_periodic", "coop", "desktop"] {
        let outcome = run_text(policy, text);
        let seldom = group(&outcome, "seldom");
        let latency = seldom.latency.quantile(0.5);
        assert!(latency < MS / 10, "{policy}: {latency}\n{}", outcome.table());
        assert_eq!(seldom.missed, 0, "{policy}: {}", outcome.table());
    }
}

/// How late the thread `seldom`, which wakes every 10 ms beside two that compute, is in 99 of 100
/// wake-ups under each policy with virtual times.
fn seldom_late(start: &str, others: &str) -> [(&'static str, i64); 4] {
    let text = format!(
        r#"
        duration = "20s"
        cpus = 1

        [[thread]]
        name = "seldom"
        imports = {{ user = 1 }}
        start = "{start}"
        period = "10ms"
        do = [{{ compute = "100us" }}]

        [[thread]]
        name = "hog"
        count = 2
        imports = {{ user = 1 }}
        repeat = "forever"
        do = [{{ compute = "50ms" }}]

        [[thread]]
        name = "other"
        imports = {{ user = 2 }}
        {others}
        "#
    );
    ["fair", "fair_periodic", "coop", "desktop"].map(|policy| {
        let outcome = run_text(policy, &text);
        (policy, group(&outcome, "seldom").latency.quantile(0.99))
    })
}

/// Four hundred that wake at once have 16 ms of work. One of another user waits for few of them.
#[test]
fn a_herd_of_one_user_does_not_keep_a_thread_of_another_waiting() {
    let herd = r#"
        count = 400
        period = "200ms"
        do = [{ compute = "40us" }]"#;
    for (policy, late) in seldom_late("0", herd) {
        assert!(late < MS, "{policy}: {late}");
    }
}

/// The other one wakes before it, and then computes for long.
#[test]
fn a_thread_that_wakes_waits_no_longer_for_one_that_woke_too() {
    let woke = r#"
        period = "20ms"
        do = [{ compute = "3ms" }]"#;
    for (policy, late) in seldom_late("50us", woke) {
        assert!(late < 8 * MS / 10, "{policy}: {late}");
    }
}

/// Eight threads whose release has come, or comes in a moment, whenever they poll, so that one of
/// them could always go first. Some sleep for a moment now and then.
#[test]
fn threads_that_are_always_due_do_not_keep_one_that_wakes_waiting() {
    let late = |attackers: &str| {
        let text = format!(
            r#"
            duration = "4s"
            cpus = 1

            [[thread]]
            name = "seldom"
            period = "10ms"
            do = [{{ compute = "150us" }}]      # more than a `min_slice`

            [[thread]]
            name = "hog"
            count = 2
            repeat = "forever"
            do = [{{ compute = "50ms" }}]

            [[thread]]
            name = "attacker"
            count = 8
            repeat = "forever"
            {attackers}
            "#
        );
        ["coop", "desktop"].map(|policy| {
            let outcome = run_text(policy, &text);
            assert!(outcome.share(group(&outcome, "attacker")) < 0.82, "{}", outcome.table());
            group(&outcome, "seldom").latency.quantile(0.99)
        })
    };
    let plain = late(r#"do = [{ compute = "100us" }]"#);
    for (release, turns) in [("now", 1000), ("now + 50us", 1000), ("now", 20), ("now + 50us", 20)] {
        let due = late(&format!(
            r#"do = [
                {{ repeat = {turns}, do = [
                    {{ compute = "100us" }},
                    {{ set = {{ next_release = "{release}", polls = "polls + 1" }} }},
                    "yield",
                ] }},
                {{ sleep = "50us" }},
            ]"#
        ));
        for (due, plain) in due.into_iter().zip(plain) {
            assert!(due < plain + MS, "{release}, {turns} turns: {due} ns beside {plain}");
        }
    }
}
