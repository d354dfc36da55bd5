//! `reserve`: a thread with a reservation gets it, and no more where others want the CPU.

use attune_language::engine::event::Event;
use attune_simulator::Outcome;
use attune_simulator::interpreter::Interpreter;
use attune_simulator::scheduler::{Call, CpuSet, Decision, Scheduler, ThreadId, Value};

use crate::runs::{MS, group, run, run_text, scheduler, seconds};

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
    run_text("reserve", text)
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
