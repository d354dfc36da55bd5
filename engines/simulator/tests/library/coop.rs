//! `coop`: a release is served on time, and cooperating costs nobody a share.

use attune_simulator::{Outcome, simulate};

use crate::runs::{MS, group, run_text, scheduler, seconds, text_of, workload};

/// coop_players.toml with changes to its text: from, to.
fn players(policy: &str, changes: &[(&str, &str)]) -> Outcome {
    let mut text = text_of("coop_players.toml");
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    simulate(&mut scheduler(policy), &workload(&text, "coop_players.toml"), &seconds(5)).unwrap()
}

fn tardiness(outcome: &Outcome, quantile: f64) -> i64 {
    group(outcome, "player").tardiness.quantile(quantile)
}

#[test]
fn coop_is_on_time_where_fair_is_not_at_the_same_shares() {
    let [coop, fair, periodic] =
        ["coop", "fair", "fair_periodic"].map(|policy| players(policy, &[]));
    let late = |outcome| tardiness(outcome, 0.99);
    assert!(late(&fair) > 20 * late(&coop), "{}{}", fair.table(), coop.table());
    assert!(late(&periodic) > 4 * late(&coop), "{}{}", periodic.table(), coop.table());
    assert!(periodic.total().switches > 8 * coop.total().switches);
    for outcome in [&coop, &fair] {
        assert!(
            (outcome.share(group(outcome, "hog")) - 1.0 / 3.0).abs() < 0.02,
            "{}",
            outcome.table()
        );
        assert!(outcome.jain_within(group(outcome, "player").group).unwrap() > 0.99);
    }
}

/// The slice that a lone player has beside few others is long; its timers are on time all the same.
#[test]
fn coop_serves_one_player_among_hogs() {
    let one = players("coop", &[("count = 8", "count = 1")]);
    assert!(one.total().tardiness.max() < 500_000, "{}", one.table());
}

/// Were every processor to choose anew for every release, eight would choose nearly four times for
/// each here.
#[test]
fn one_processor_of_many_stops_for_a_release_in_coop() {
    let many = players("coop", &[("cpus = 1", "cpus = 8"), ("count = 8", "count = 32")]);
    let total = many.total();
    assert!(total.jobs > 10_000 && total.tardiness.max() < 500_000, "{}", many.table());
    assert!(total.dispatches < 2 * total.jobs, "{} for {}", total.dispatches, total.jobs);
}

/// The turn that answers such a poll ends at once in its yield, long before the next one by virtual
/// time.
#[test]
fn a_thread_stopped_in_the_middle_of_a_poll_is_served_in_time_by_coop() {
    let outcome = run_text(
        "coop",
        r#"
        duration = "5s"
        cpus = 1

        [[thread]]
        name = "stopped"
        imports = { until = 0 }
        repeat = "forever"
        do = [
            { set = { next = "now + 5ms" } },
            { set = { next_release = "next", importance = "0", polls = "polls + 1" } },
            { compute = "5.2ms" }, # longer than it may have the CPU: slice and slack are 5 ms
            "yield",
            { job = [{ compute = "20us" }], release = "next", deadline = "next" },
            { set = { next_release = "next + 50ms", importance = "9223372036854775807",
                polls = "polls + 1" } },
            { sleep_until = "next + 50ms" },
        ]

        [[thread]]
        name = "hog"
        count = 4
        repeat = "forever"
        do = [{ compute = "50ms" }]
        "#,
    );
    let stopped = group(&outcome, "stopped");
    // Its first job comes while the others begin.
    let most = stopped.tardiness.quantile(0.98);
    assert!(stopped.jobs > 80 && most < 2 * MS, "{}", outcome.table());
}

#[test]
fn a_group_in_coop_shares_progress_and_has_the_weight_of_its_members() {
    // Every other player's units are twice as dear.
    let dear = |imports: &str| {
        let text = "{ compute = \"uniform(0.05ms, 0.2ms) * (1 + index % 2)\" }";
        let unit = "{ compute = \"uniform(0.05ms, 0.2ms)\" }";
        players("coop", &[(unit, text), ("imports = { until = 0 }", imports)])
    };
    let (alone, together) =
        (dear("imports = { until = 0 }"), dear("imports = { until = 0, group = 1 }"));
    let jain = |outcome: &Outcome| outcome.jain_within(group(outcome, "player").group).unwrap();
    assert!(jain(&alone) > 0.99, "CPU time is shared: {}", alone.table());
    assert!(jain(&together) < 0.95, "progress is shared, so CPU time is not: {}", together.table());
    let share = together.share(group(&together, "player"));
    assert!((share - 2.0 / 3.0).abs() < 0.03, "{}", together.table());
}

/// One of eight forgets to poll for up to 10 ms now and then; the others hardly notice. That holds
/// for callbacks of nearly the slack, too: a thread that is interrupted breaks no word by it.
#[test]
fn a_player_that_does_not_poll_harms_itself() {
    let callback = "{ compute = \"uniform(0.05ms, 0.2ms)\" }";
    let forgets = ", { if = \"index == 7 && uniform(0, 100) < 1\", \
                       then = [{ compute = \"uniform(0ms, 10ms)\" }] }";
    for each in [callback, "{ compute = \"uniform(0.05ms, 0.92ms)\" }"] {
        let outcome = players("coop", &[(callback, &[each, forgets].concat())]);
        let player = |index: usize| {
            let name = format!("player.{index}");
            outcome.threads().iter().find(|thread| thread.name == name).unwrap()
        };
        let worst = (0..7).map(|index| player(index).tardiness.max()).max().unwrap();
        assert!(worst < 2 * MS, "within the slack and a callback: {}", outcome.table());
        assert!(player(7).tardiness.max() > 5 * MS, "{}", outcome.table());
    }
}

/// A thread that polls in time a thousand times, and then for 3 ms does not, would otherwise be
/// trusted with a millisecond each time.
#[test]
fn words_broken_again_and_again_hold_nobody_up() {
    let outcome = run_text(
        "coop",
        r#"
        duration = "10s"
        cpus = 1

        [[thread]]
        name = "breaks"
        count = 2
        imports = { until = 0 }
        repeat = "forever"
        do = [
            { set = { polled = "0" } },
            { while = "polled < 1000", do = [
                { set = { next_release = "now", polls = "polls + 1", polled = "polled + 1" } },
                "yield",
                { compute = "10us" },
            ] },
            { compute = "3ms" },
        ]

        [[thread]]
        name = "hog"
        count = 2
        repeat = "forever"
        do = [{ compute = "50ms" }]

        [[thread]]
        name = "woken"
        repeat = "forever"
        do = [
            { set = { next = "max(next + 10ms, now)" } },
            { sleep_until = "next" },
            { job = [{ compute = "100us" }], release = "next", deadline = "next" },
        ]
        "#,
    );
    let woken = group(&outcome, "woken");
    let most = woken.tardiness.quantile(0.99);
    assert!(woken.jobs > 900 && most < MS * 3 / 4, "{}", outcome.table());
}
