//! The library's schedulers under the lab's workloads: every pair runs, and each idea does what its
//! header promises.

use std::path::Path;
use std::sync::Arc;

use attune_language::engine::event::Event;
use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::metrics::Tally;
use attune_simulator::scheduler::{Call, CpuSet, Decision, Scheduler, ThreadId, Value};
use attune_simulator::{Diagnostic, Options, Outcome, Workload, simulate};

const MS: i64 = 1_000_000;

fn scheduler(name: &str) -> Interpreter {
    let mut opened = attune_schedulers::open(Path::new(name), &[]).unwrap();
    let checked = attune_language::check(&opened.source, &mut opened.loader, &Default::default());
    let program = checked.program.unwrap_or_else(|| panic!("{name}: {:?}", checked.diagnostics));
    Interpreter::new(Arc::new(program), &checked.sources, interpreter::Options::default()).unwrap()
}

fn workload(name: &str) -> Workload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/workloads").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    Workload::from_file_text(&text, name).unwrap_or_else(|error| panic!("{error}"))
}

fn run(policy: &str, file: &str, options: &Options) -> Result<Outcome, Diagnostic> {
    simulate(&mut scheduler(policy), &workload(file), options)
}

fn group<'o>(outcome: &'o Outcome, name: &str) -> &'o Tally {
    outcome.groups().iter().find(|group| group.name == name).unwrap()
}

fn seconds(duration: i64) -> Options {
    Options { duration: Some(duration * 1000 * MS), ..Options::default() }
}

/// The library's schedulers but the one that others are made of.
fn complete() -> impl Iterator<Item = &'static str> {
    attune_schedulers::LIBRARY.iter().map(|entry| entry.name).filter(|name| *name != "lifecycle")
}

#[test]
fn every_scheduler_runs_every_workload_the_same_way_twice() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/workloads");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        for policy in complete() {
            for cpus in [1, 3] {
                let options = Options {
                    cpus: Some(cpus),
                    duration: Some(60 * MS),
                    trace: true,
                    ..Options::default()
                };
                let once = || {
                    let outcome = run(policy, &file, &options);
                    outcome.map(|outcome| (outcome.json(), outcome.perfetto()))
                };
                let first =
                    once().unwrap_or_else(|error| panic!("{policy}, {file}, {cpus} CPUs: {error}"));
                assert!(first == once().unwrap(), "{policy}, {file}, {cpus} CPUs: two runs differ");
            }
        }
    }
}

#[test]
fn fair_gives_shares_by_weight() {
    let outcome = run("fair", "hogs.toml", &seconds(5)).unwrap();
    assert!(
        (outcome.share(group(&outcome, "heavy")) - 1.0 / 3.0).abs() < 0.01,
        "{}",
        outcome.table()
    );
    assert!(outcome.jain_within(group(&outcome, "light").group).unwrap() > 0.999);
}

#[test]
fn edf_meets_every_deadline_that_fifo_misses() {
    let edf = run("edf", "periodic.toml", &seconds(5)).unwrap();
    assert_eq!(edf.total().missed, 0, "{}", edf.table());
    assert!(edf.total().jobs > 1_500);
    assert!(run("fifo", "periodic.toml", &seconds(5)).unwrap().total().missed > 100);
}

#[test]
fn a_reservation_holds_beside_one_that_is_overrun() {
    let reserve = run("reserve", "reserved.toml", &seconds(10)).unwrap();
    for name in ["player", "controller"] {
        let served = group(&reserve, name);
        assert!(served.jobs > 200 && served.missed == 0, "{name}: {}", reserve.table());
    }
    // The runaway gets its 4 ms of every 20 and no more; the others share the rest.
    let share = |name| reserve.share(group(&reserve, name));
    assert!((share("runaway") - 0.2).abs() < 0.001, "{}", reserve.table());
    assert!((share("hog") - 0.5).abs() < 0.001, "{}", reserve.table());
    assert!(
        reserve.jain_within(group(&reserve, "hog").group).unwrap() > 0.999,
        "{}",
        reserve.table()
    );
    // Under deadlines alone the runaway's is always the nearest, and no other thread runs.
    let edf = run("edf", "reserved.toml", &seconds(10)).unwrap();
    assert!(group(&edf, "player").jobs < 10, "{}", edf.table());
}

fn reserved(text: &str) -> Outcome {
    let workload =
        Workload::from_file_text(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    simulate(&mut scheduler("reserve"), &workload, &Options::default()).unwrap()
}

#[test]
fn a_thread_without_budget_has_a_processor_that_no_other_thread_wants() {
    let outcome = reserved(
        r#"
        duration = "5s"

        [[thread]]
        name = "runaway"
        imports = { dl_runtime = "10ms", dl_period = "100ms" }
        repeat = "forever"
        do = [{ compute = "100ms" }]

        [[thread]]
        name = "visitor"
        period = "10ms"
        phase = "5ms"
        do = [{ compute = "1ms" }]

        [[thread]]
        name = "hog"
        start = "4s"
        repeat = "forever"
        do = [{ compute = "100ms" }]
        "#,
    );
    // All that the visitor leaves for four seconds, and its budget still in the fifth.
    let share = (4.0 * 0.9 + 0.1) / 5.0;
    assert!(
        (outcome.share(group(&outcome, "runaway")) - share).abs() < 0.004,
        "{}",
        outcome.table()
    );
    // While no other thread is there the visitor waits for budgets alone.
    assert!(group(&outcome, "visitor").latency.quantile(0.7) == 0, "{}", outcome.table());
}

/// The free one last ran where, every other time, one with an earlier deadline has the processor.
#[test]
fn a_reservation_takes_the_processor_with_the_latest_deadline() {
    let outcome = reserved(
        r#"
        duration = "5s"
        cpus = 2

        [[thread]]
        name = "left"
        cpus = [0]
        period = "100ms"
        phase = "50ms"
        imports = { dl_runtime = "20ms", dl_period = "30ms" }
        do = [{ compute = "20ms" }]

        [[thread]]
        name = "right"
        cpus = [1]
        period = "100ms"
        imports = { dl_runtime = "20ms", dl_period = "30ms" }
        do = [{ compute = "20ms" }]

        [[thread]]
        name = "free"
        period = "50ms"
        phase = "5ms"
        imports = { dl_runtime = "10ms", dl_period = "50ms" }
        do = [{ compute = "10ms" }]

        [[thread]]
        name = "hog"
        count = 2
        repeat = "forever"
        do = [{ compute = "50ms" }]
        "#,
    );
    for name in ["left", "right", "free"] {
        let served = group(&outcome, name);
        assert!(served.jobs >= 50 && served.latency.max() == 0, "{name}: {}", outcome.table());
    }
}

/// As when `attune hint` tells of it, or the program itself: thread 0 waits then, and 1 has the
/// processor.
#[test]
fn a_reservation_that_comes_while_its_thread_waits_counts_when_it_wakes() {
    let mut reserve = scheduler("reserve");
    reserve.start(1, 0);
    let import = |name| reserve.thread_import(name).unwrap();
    let values = [(import("dl_period"), 10 * MS), (import("dl_runtime"), 2_500_000)];
    let mut now = 0;
    let mut call = |policy: &mut Interpreter, event, thread: Option<u32>| {
        now += MS;
        let mut decision = Decision::default();
        policy
            .call(
                &Call { event, thread: thread.map(ThreadId), now, cpu: 0, cpus: 1 },
                &mut decision,
            )
            .unwrap();
        decision
    };
    for thread in [0, 1] {
        reserve.thread_created(ThreadId(thread), &CpuSet::ALL);
        call(&mut reserve, Event::NewThread, Some(thread));
    }
    assert_eq!(call(&mut reserve, Event::Schedule, None).dispatch.unwrap().thread, ThreadId(0));
    call(&mut reserve, Event::SetWaiting, Some(0));
    call(&mut reserve, Event::SwitchOut, Some(0));
    assert_eq!(call(&mut reserve, Event::Schedule, None).dispatch.unwrap().thread, ThreadId(1));
    for (import, value) in values {
        reserve.set_thread_import(ThreadId(0), import, Value::Int(value));
    }
    assert_eq!(call(&mut reserve, Event::EventRaised, Some(0)).preempt, [(0, 0)]);
    call(&mut reserve, Event::SwitchOut, Some(1));
    let dispatch = call(&mut reserve, Event::Schedule, None).dispatch.unwrap();
    assert_eq!((dispatch.thread, dispatch.slice), (ThreadId(0), Some(2_500_000)));
}

/// The machine stood still in the middle of a stay, or a higher class had the processor.
#[test]
fn a_reservation_does_not_pay_for_time_that_others_took() {
    let mut reserve = scheduler("reserve");
    reserve.start(1, 0);
    let import = |name| reserve.thread_import(name).unwrap();
    let values = [(import("dl_period"), 10 * MS), (import("dl_runtime"), 2 * MS)];
    let call = |policy: &mut Interpreter, event, thread: Option<u32>, now| {
        let mut decision = Decision::default();
        let thread = thread.map(ThreadId);
        policy.call(&Call { event, thread, now, cpu: 0, cpus: 1 }, &mut decision).unwrap();
        decision.dispatch.map(|dispatch| (dispatch.thread.0, dispatch.slice.unwrap()))
    };
    for thread in [0, 1] {
        reserve.thread_created(ThreadId(thread), &CpuSet::ALL);
    }
    for (import, value) in values {
        reserve.set_thread_import(ThreadId(0), import, Value::Int(value));
    }
    for thread in [0, 1] {
        call(&mut reserve, Event::NewThread, Some(thread), 0);
    }
    let mut turns = vec![];
    // Its first stay lasts for 50 ms instead of 2; it has its budget at once, and in each period.
    let (mut now, stolen) = (0, 48 * MS);
    for turn in 0..5 {
        let (thread, slice) = call(&mut reserve, Event::Schedule, None, now).unwrap();
        turns.push((thread, slice));
        now += if turn == 0 { slice + stolen } else { slice };
        call(&mut reserve, Event::SwitchOut, Some(thread), now);
    }
    let own = (0, 2 * MS);
    assert_eq!(turns, [own, own, (1, 4 * MS), (1, 4 * MS), own]);
}

#[test]
fn a_budget_too_small_to_be_one_leaves_its_thread_with_the_others() {
    let outcome = reserved(
        r#"
        duration = "4s"

        [[thread]]
        name = "tiny"
        imports = { dl_runtime = "1us", dl_period = "4s" }
        repeat = "forever"
        do = [{ compute = "50ms" }]

        [[thread]]
        name = "hog"
        repeat = "forever"
        do = [{ compute = "50ms" }]
        "#,
    );
    let share = outcome.share(group(&outcome, "tiny"));
    assert!((share - 0.5).abs() < 0.01, "{}", outcome.table());
}

#[test]
fn shortest_reply_answers_sooner_than_fifo() {
    let mean = |policy| {
        let outcome = run(policy, "webserver.toml", &seconds(5)).unwrap();
        group(&outcome, "small").response.mean()
    };
    let (fifo, shortest) = (mean("fifo"), mean("shortest_reply"));
    assert!(shortest < 0.7 * fifo, "{shortest} ns, fifo {fifo} ns");
}

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
    let workload = Workload::from_file_text(&text, "matters.toml");
    let workload = workload.unwrap_or_else(|error| panic!("{error}"));
    let outcome = simulate(&mut scheduler(policy), &workload, &seconds(5)).unwrap();
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

#[test]
fn the_weather_station_shows_the_temperature_only_when_it_is_hot() {
    let outcome = run("weather", "weather.toml", &seconds(10)).unwrap();
    let display = group(&outcome, "display");
    // Released every 100 ms; on time only in the second, hot half.
    let on_time = display.tardiness.zeros();
    assert!((45..=60).contains(&on_time), "{on_time}: {}", outcome.table());
    assert!(group(&outcome, "wind").skipped < 10, "{}", outcome.table());
}

/// coop_players.toml with changes to its text: from, to.
fn players(policy: &str, changes: &[(&str, &str)]) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/workloads/coop_players.toml");
    let mut text = std::fs::read_to_string(path).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let workload = Workload::from_file_text(&text, "coop_players.toml");
    let workload = workload.unwrap_or_else(|error| panic!("{error}"));
    simulate(&mut scheduler(policy), &workload, &seconds(5)).unwrap()
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
    let workload = Workload::from_file_text(
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
        "stopped.toml",
    )
    .unwrap();
    let outcome = simulate(&mut scheduler("coop"), &workload, &seconds(5)).unwrap();
    let stopped = group(&outcome, "stopped");
    assert!(stopped.jobs > 80 && stopped.tardiness.max() < 2 * MS, "{}", outcome.table());
}

#[test]
fn a_group_in_coop_shares_progress_and_has_the_weight_of_its_members() {
    // Every other player's units are twice as dear.
    let dear = |imports: &str| {
        let text = "{ compute = \"uniform(0.05ms, 0.2ms) * (1 + index % 2)\" }";
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/workloads/coop_players.toml");
        let all = std::fs::read_to_string(path)
            .unwrap()
            .replace("{ compute = \"uniform(0.05ms, 0.2ms)\" }", text);
        let all = all.replace("imports = { until = 0 }", imports);
        let workload = Workload::from_file_text(&all, "coop_players.toml").unwrap();
        simulate(&mut scheduler("coop"), &workload, &seconds(5)).unwrap()
    };
    let (alone, together) =
        (dear("imports = { until = 0 }"), dear("imports = { until = 0, group = 1 }"));
    let jain = |outcome: &Outcome| outcome.jain_within(group(outcome, "player").group).unwrap();
    assert!(jain(&alone) > 0.99, "CPU time is shared: {}", alone.table());
    assert!(jain(&together) < 0.95, "progress is shared, so CPU time is not: {}", together.table());
    let share = together.share(group(&together, "player"));
    assert!((share - 2.0 / 3.0).abs() < 0.03, "{}", together.table());
}

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
    let workload = Workload::from_file_text(&text, "attackers.toml");
    let workload = workload.unwrap_or_else(|error| panic!("{error}"));
    let outcome = simulate(&mut scheduler("coop"), &workload, &seconds(2)).unwrap();
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

/// Two programs that compute, beside two whose threads each work for 2 ms, start the next and end.
#[test]
fn a_chain_of_threads_gets_no_more_than_one_thread() {
    let text = r#"
        duration = "4s"
        cpus = 1

        [[thread]]
        name = "hog"
        count = 2
        repeat = "forever"
        do = [{ compute = "50ms" }]

        [[thread]]
        name = "link"
        count = 2
        do = [{ compute = "2ms" }, { spawn = "link" }]
        "#;
    let workload = Workload::from_file_text(text, "chains.toml").unwrap();
    for policy in ["fair", "fair_periodic", "coop", "desktop"] {
        let outcome = simulate(&mut scheduler(policy), &workload, &seconds(4)).unwrap();
        let share = outcome.share(group(&outcome, "hog"));
        assert!(share > 0.5 * 0.98, "{policy}: {share}\n{}", outcome.table());
        let links = outcome.share(group(&outcome, "link"));
        assert!(links > 0.4, "{policy}: a chain is no worse off either: {links}");
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
    let workload = Workload::from_file_text(text, "seldom.toml").unwrap();
    for policy in ["fair", "fair_periodic", "coop", "desktop"] {
        let outcome = simulate(&mut scheduler(policy), &workload, &seconds(4)).unwrap();
        let seldom = group(&outcome, "seldom");
        let latency = seldom.latency.quantile(0.5);
        assert!(latency < MS / 10, "{policy}: {latency}\n{}", outcome.table());
        assert_eq!(seldom.missed, 0, "{policy}: {}", outcome.table());
    }
}

/// One of eight forgets to poll for up to 10 ms now and then; the others hardly notice.
#[test]
fn a_player_that_does_not_poll_harms_itself() {
    let forgets = "{ compute = \"uniform(0.05ms, 0.2ms)\" }, \
        { if = \"index == 7 && uniform(0, 100) < 1\", \
                   then = [{ compute = \"uniform(0ms, 10ms)\" }] }";
    let outcome = players("coop", &[("{ compute = \"uniform(0.05ms, 0.2ms)\" }", forgets)]);
    let player = |index: usize| {
        let name = format!("player.{index}");
        outcome.threads().iter().find(|thread| thread.name == name).unwrap()
    };
    let worst = (0..7).map(|index| player(index).tardiness.max()).max().unwrap();
    assert!(worst < 2 * MS, "within the slack and a callback: {}", outcome.table());
    assert!(player(7).tardiness.max() > 5 * MS, "{}", outcome.table());
}
