//! Tests threads that wait for each other: locks, semaphores, channels, calls from outside,
//! joining.

use super::run;
use crate::Ending;
use crate::testing::Fifo;

#[test]
fn locks_are_handed_over_in_order() {
    let mut policy = Fifo::with_slice(1_000_000);
    let outcome = run(
        &mut policy,
        r#"
        [[thread]]
        name = "a"
        count = 3
        do = [{ lock = "m", do = [{ compute = "3ms" }] }]
        "#,
    );
    assert_eq!(outcome.elapsed(), 9_000_000);
    let ended: Vec<_> = outcome.threads().iter().map(|thread| thread.ended.unwrap()).collect();
    assert_eq!(ended, [3_000_000, 6_000_000, 9_000_000]);
}

#[test]
fn semaphores_channels_conditions_barriers_and_wakes_meet() {
    let outcome = run(
        &mut Fifo::default(),
        r#"
        [barriers]
        gate = 3
        [[thread]]
        name = "consumer"
        do = [
            { repeat = 3, do = [{ receive = "box", into = "size" }, { compute = "size * 1ms" }] },
            { lock = "m" }, { await = "done", lock = "m" }, { unlock = "m" }, { barrier = "gate" },
        ]
        [[thread]]
        name = "producer"
        do = [
            { repeat = 3, do = [{ sleep = "10ms" }, { send = "box", value = 2 }] },
            { sleep = "10ms" }, { lock = "m", do = [{ notify = "done" }] }, { barrier = "gate" },
            { signal = "s", count = 2 }, { wake = "third" },
        ]
        [[thread]]
        name = "third"
        do = [{ barrier = "gate" }, "park", { wait = "s" }, { wait = "s" }]
        "#,
    );
    assert_eq!(outcome.ending(), Ending::AllEnded, "{:?}", outcome.warnings());
    assert_eq!(outcome.elapsed(), 40_000_000);
    assert_eq!(outcome.threads()[0].cpu, 6_000_000);
}

#[test]
fn calls_from_outside_are_answered_and_timed() {
    let outcome = run(
        &mut Fifo::default(),
        r#"
        duration = "1s"
        [[thread]]
        name = "server"
        repeat = "forever"
        do = [{ receive = "requests", into = "size" }, { compute = "size * 1ms" },
              { reply = "size" }]
        [[client]]
        name = "client"
        count = 2
        repeat = 5
        do = [{ job = [{ call = "requests", value = 4 }] }, { sleep = "2ms" }]
        "#,
    );
    let clients = &outcome.groups()[1];
    assert!(clients.outside);
    assert_eq!((clients.jobs, clients.cpu), (10, 0));
    // Two clients that ask again after 2 ms keep one server busy: each waits for the other's 4 ms.
    assert_eq!(clients.response.max(), 8_000_000);
    assert_eq!(outcome.groups()[0].cpu, 40_000_000);
    assert_eq!(outcome.ending(), Ending::Stalled);
}

#[test]
fn full_channels_lose_messages() {
    let outcome = run(
        &mut Fifo::default(),
        r#"
        duration = "1s"
        [channels]
        box = { capacity = 2 }
        [[thread]]
        name = "slow"
        repeat = "forever"
        do = [{ receive = "box" }, { compute = "100ms" }]
        [[client]]
        name = "fast"
        repeat = 10
        do = [{ send = "box" }]
        "#,
    );
    // One is taken at once, or all ten meet an empty box: the client runs first.
    assert_eq!(outcome.lost(), [("box".to_string(), 7)]);
    assert_eq!(outcome.total().cpu, 300_000_000);
}

#[test]
fn spawned_threads_are_joined() {
    let outcome = run(
        &mut Fifo::default(),
        r#"
        [[thread]]
        name = "parent"
        do = [{ spawn = "child", count = 4, set = { size = "3" } }, "join", { compute = "1ms" }]
        [[thread]]
        name = "child"
        count = 0
        do = [{ compute = "size * 1ms" }]
        "#,
    );
    assert_eq!(outcome.ending(), Ending::AllEnded);
    assert_eq!(outcome.threads()[0].ended, Some(13_000_000));
    assert_eq!(outcome.groups()[1].threads, 4);
}

#[test]
fn waiting_for_ever_is_a_warning() {
    let outcome = run(
        &mut Fifo::default(),
        r#"
        [[thread]]
        name = "a"
        do = [{ wait = "s" }, { wait = "s" }]
        [[thread]]
        name = "b"
        do = [{ signal = "s" }]
        "#,
    );
    assert_eq!(outcome.ending(), Ending::Stalled);
    assert!(
        outcome.warnings()[0]
            .to_string()
            .contains("`a` waits for the semaphore `s` for ever\n  --> w.toml:4:")
    );
}
