//! Tests the life of threads as a policy sees it: on CPUs, preempted, suspended, periodic, killed;
//! and what time it takes.

use attune_language::engine::event::Event;

use super::{run, run_on};
use crate::testing::Fifo;
use crate::{Ending, Options, Workload, simulate};

#[test]
fn a_thread_lives_as_the_protocol_says() {
    let mut policy = Fifo::with_slice(4_000_000);
    run(
        &mut policy,
        r#"
        [[thread]]
        name = "a"
        do = [{ compute = "5ms" }, { sleep = "10ms" }, "yield", { compute = "1ms" }]
        "#,
    );
    assert_eq!(
        policy.log,
        [
            "init 0 @0",
            "newthread(0) 0 @0",
            "dispatch(0) 0 @0",
            "quantum_expired(0) 0 @4000000",
            "switch_out(0) 0 @4000000",
            "dispatch(0) 0 @4000000",
            "set_waiting(0) 0 @5000000",
            "switch_out(0) 0 @5000000",
            "event_raised(0) 0 @15000000",
            "dispatch(0) 0 @15000000",
            "switch_out(0) 0 @15000000",
            "dispatch(0) 0 @15000000",
            "set_dead(0) 0 @16000000",
            "switch_out(0) 0 @16000000",
        ]
    );
}

#[test]
fn a_thread_that_suspends_itself_is_resumed_by_another() {
    let mut policy = Fifo::default();
    let outcome = run(
        &mut policy,
        r#"
        [[thread]]
        name = "a"
        do = ["suspend", { compute = "1ms" }]
        [[thread]]
        name = "b"
        do = [{ compute = "1ms" }, { resume = "a" }]
        [[thread]]
        name = "c"
        do = [{ compute = "1ms" }]
        "#,
    );
    assert_eq!(outcome.ending(), Ending::AllEnded);
    let told: Vec<&str> = policy.log.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        told,
        [
            "init",
            "newthread(0)",
            "dispatch(0)",
            "newthread(1)",
            "newthread(2)",
            "suspend_thread(0)",
            "switch_out(0)",
            "dispatch(1)",
            "resume_thread(0)",
            "set_dead(1)",
            "switch_out(1)",
            "dispatch(2)",
            "set_dead(2)",
            "switch_out(2)",
            "dispatch(0)",
            "set_dead(0)",
            "switch_out(0)"
        ]
    );
}

#[test]
fn a_ready_thread_is_suspended_resumed_and_yielded_to() {
    let mut policy = Fifo::default();
    run(
        &mut policy,
        r#"
        [[thread]]
        name = "a"
        do = [{ compute = "1ms" }, { suspend = "c" }, { resume = "c" }, { yield_to = "c" }]
        [[thread]]
        name = "b"
        do = [{ compute = "1ms" }]
        [[thread]]
        name = "c"
        do = [{ compute = "1ms" }]
        "#,
    );
    let at = policy.log.iter().position(|line| line.starts_with("suspend_thread(2)")).unwrap();
    assert_eq!(
        policy.log[at..at + 5],
        [
            "suspend_thread(2) 0 @1000000",
            "resume_thread(2) 0 @1000000",
            "set_next_thread(2) 0 @1000000",
            "switch_out(0) 0 @1000000",
            "dispatch(2) 0 @1000000"
        ]
    );
}

#[test]
fn a_policy_without_waiting_sees_suspending() {
    let mut policy = Fifo { lacks: vec![Event::SetWaiting, Event::EventRaised], ..Fifo::default() };
    run(&mut policy, "[[thread]]\nname = 'a'\ndo = [{ sleep = '2ms' }]");
    assert_eq!(
        policy.log[3..7],
        [
            "suspend_thread(0) 0 @0",
            "switch_out(0) 0 @0",
            "resume_thread(0) 0 @2000000",
            "dispatch(0) 0 @2000000"
        ]
    );
}

#[test]
fn a_preempted_thread_goes_on_where_it_was() {
    let mut policy = Fifo { preempts: Some(0), ..Fifo::default() };
    let outcome = run(
        &mut policy,
        r#"
        [[thread]]
        name = "sleeper"
        do = [{ sleep = "3ms" }, { compute = "1ms" }]
        [[thread]]
        name = "hog"
        do = [{ compute = "10ms" }]
        "#,
    );
    assert_eq!(outcome.elapsed(), 11_000_000);
    assert_eq!(outcome.threads()[1].cpu, 10_000_000);
    assert_eq!(outcome.threads()[1].preemptions, 1);
    let woken = policy.log.iter().position(|line| line.starts_with("event_raised")).unwrap();
    assert_eq!(
        policy.log[woken..woken + 3],
        ["event_raised(0) 0 @3000000", "switch_out(1) 0 @3000000", "dispatch(0) 0 @3000000"]
    );
}

#[test]
fn a_cpu_that_is_to_choose_later_goes_on_until_then() {
    let woken = |later| {
        let mut policy = Fifo { preempts: Some(later), slice: Some(6_000_000), ..Fifo::default() };
        let outcome = run(
            &mut policy,
            r#"
            [[thread]]
            name = "sleeper"
            do = [{ sleep = "3ms" }, { compute = "1ms" }]
            [[thread]]
            name = "hog"
            count = 2
            do = [{ compute = "4ms" }, { compute = "1ms" }]
            "#,
        );
        let woken = policy.log.iter().position(|line| line.starts_with("event_raised")).unwrap();
        (policy.log[woken + 1..woken + 3].join(", "), outcome.threads()[2].preemptions)
    };
    assert_eq!(woken(1_500_000).0, "switch_out(1) 0 @4500000, dispatch(2) 0 @4500000");
    // Its thread has left the CPU by itself; the next one is not meant.
    assert_eq!(woken(2_500_000), ("set_dead(1) 0 @5000000, switch_out(1) 0 @5000000".into(), 0));
}

#[test]
fn switching_and_migrating_cost_what_is_asked() {
    let outcome = run(
        &mut Fifo::with_slice(1_000_000),
        r#"
        context_switch = "10us"
        [[thread]]
        name = "a"
        count = 2
        do = [{ compute = "2ms" }]
        "#,
    );
    // Four stays, each after another thread's.
    assert_eq!(outcome.elapsed(), 4_040_000);
    assert_eq!((outcome.cpus()[0].busy, outcome.cpus()[0].overhead), (4_000_000, 40_000));
    assert_eq!(outcome.cpus()[0].switches, 4);

    let outcome = run_on(
        &mut Fifo::default(),
        r#"
        migration = "1ms"
        [[thread]]
        name = "a"
        do = [{ compute = "1ms" }, { cpus = [1] }, { compute = "1ms" }]
        "#,
        2,
    );
    assert_eq!(outcome.elapsed(), 3_000_000);
    assert_eq!(outcome.total().migrations, 1);
}

#[test]
fn cpus_are_filled_in_ascending_order_and_affinity_is_kept() {
    let mut policy = Fifo::default();
    let outcome = run_on(
        &mut policy,
        r#"
        [[thread]]
        name = "pinned"
        count = 2
        cpus = [2]
        do = [{ compute = "1ms" }]
        [[thread]]
        name = "free"
        count = 3
        do = [{ compute = "5ms" }]
        "#,
        3,
    );
    let dispatches: Vec<&String> =
        policy.log.iter().filter(|line| line.starts_with("dispatch")).collect();
    assert_eq!(
        dispatches,
        [
            "dispatch(0) 2 @0",
            "dispatch(2) 0 @0",
            "dispatch(3) 1 @0",
            "dispatch(1) 2 @1000000",
            "dispatch(4) 2 @2000000"
        ]
    );
    assert_eq!(outcome.elapsed(), 7_000_000);
}

#[test]
fn periodic_jobs_have_tardiness() {
    let text = |late: &str| {
        format!(
            r#"
            duration = "100ms"
            [[thread]]
            name = "p"
            period = "10ms"
            deadline = "8ms"
            late = "{late}"
            imports = {{ weight = 3 }}
            job_imports = {{ due = "release + 8ms" }}
            do = [{{ compute = "index * 0 + 15ms" }}]
            "#
        )
    };
    let mut policy = Fifo { thread_imports: vec!["weight", "due"], ..Fifo::default() };
    let outcome = run(&mut policy, &text("catch up"));
    let p = &outcome.groups()[0];
    // Four more are past their deadline when the run ends, and one is released at its very end.
    assert_eq!((p.jobs, p.missed, p.unfinished, p.skipped), (6, 10, 5, 0));
    // The k-th job of 15 ms ends at 15k, its deadline is 10(k-1) + 8.
    assert_eq!((p.tardiness.max(), p.response.max()), (32_000_000, 40_000_000));
    assert_eq!(
        policy.written[..3],
        ["weight 0=Int(3)", "due 0=Int(8000000)", "due 0=Int(18000000)"]
    );

    let outcome = run(&mut Fifo::default(), &text("skip"));
    let p = &outcome.groups()[0];
    assert_eq!((p.jobs, p.skipped), (5, 5));
    assert_eq!(p.response.max(), 15_000_000);
}

#[test]
fn globals_change_and_reach_the_policy() {
    let mut policy = Fifo { global_imports: vec!["heat"], ..Fifo::default() };
    run(
        &mut policy,
        r#"
        duration = "10ms"
        [globals]
        heat = 20
        [[at]]
        time = "5ms"
        set = { heat = "20 + 15" }
        [[thread]]
        name = "a"
        do = [{ compute = "20ms" }]
        "#,
    );
    assert_eq!(policy.written, ["heat=Int(20)", "heat=Int(35)"]);
}

#[test]
fn no_thread_wakes_before_the_time_that_it_asked_for() {
    // A third of a second is no whole number of nanoseconds.
    let outcome = run(
        &mut Fifo::default(),
        r#"
        [[thread]]
        name = "a"
        do = [
            { set = { due = "1s / 3" } },
            { while = "now < due", do = [{ sleep_until = "due" }] },
        ]
        "#,
    );
    assert_eq!(outcome.ending(), Ending::AllEnded);
}

#[test]
fn killing_takes_a_thread_from_wherever_it_is() {
    let outcome = run_on(
        &mut Fifo::default(),
        r#"
        [[thread]]
        name = "killer"
        do = [{ compute = "1ms" }, { kill = "waiter" }, { kill = "runner" }, { kill = "waiter" },
              { signal = "s" }]
        [[thread]]
        name = "runner"
        do = [{ compute = "9ms" }]
        [[thread]]
        name = "waiter"
        do = [{ wait = "s" }]
        "#,
        2,
    );
    assert_eq!((outcome.ending(), outcome.elapsed()), (Ending::AllEnded, 1_000_000));
    assert_eq!(outcome.groups()[1].cpu, 1_000_000);
}

#[test]
fn equal_runs_give_equal_bytes_and_other_seeds_others() {
    let workload = Workload::from_toml(
        r#"
        duration = "1s"
        cpus = 2
        [[thread]]
        name = "a"
        count = 5
        repeat = "forever"
        do = [{ compute = "exponential(1ms)" }, { sleep = "uniform(0, 3ms)" }]
        "#,
        "w.toml",
    )
    .unwrap();
    let run = |seed| {
        let options = Options { seed, trace: true, ..Options::default() };
        let outcome = simulate(&mut Fifo::with_slice(500_000), &workload, &options).unwrap();
        (outcome.json(), outcome.perfetto(), outcome.html())
    };
    assert!(run(1) == run(1));
    assert_ne!(run(1).0, run(2).0);
}

/// Time is neither lost nor made: on every CPU progress, switching and idling add up.
#[test]
fn time_adds_up_on_every_cpu() {
    let outcome = run_on(
        &mut Fifo { preempts: Some(0), slice: Some(300_000), ..Fifo::default() },
        r#"
        duration = "2s"
        context_switch = "7us"
        migration = "3us"
        [[thread]]
        name = "a"
        count = 7
        repeat = "forever"
        do = [{ compute = "exponential(1ms)" }, { io = "exponential(2ms)" }]
        "#,
        3,
    );
    let threads: i64 = outcome.threads().iter().map(|thread| thread.cpu).sum();
    assert_eq!(threads, outcome.cpus().iter().map(|cpu| cpu.busy).sum::<i64>());
    assert!(outcome.idle().all(|idle| idle >= 0));
    let total = outcome.total();
    assert_eq!(total.switches, outcome.cpus().iter().map(|cpu| cpu.switches).sum::<u64>());
    assert!(total.migrations > 0 && total.preemptions > 0);
    assert_eq!(total.latency.count(), total.dispatches);
}
