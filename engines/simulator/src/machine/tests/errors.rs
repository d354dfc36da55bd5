//! Tests the errors of policies and of workloads.

use attune_language::engine::event::Event;

use super::fails;
use crate::scheduler::ThreadId;
use crate::testing::Fifo;

#[test]
fn wrong_dispatches_are_the_schedulers_error() {
    let mut policy = Fifo { insists: Some(ThreadId(1)), ..Fifo::default() };
    let message = fails(
        &mut policy,
        r#"
        [[thread]]
        name = "a"
        count = 2
        do = [{ compute = "1ms" }, { sleep = "1ms" }]
        "#,
    );
    assert!(message.contains("dispatched `a.1` on CPU 0, which has not started"), "{message}");
    let message = fails(&mut Fifo { insists: Some(ThreadId(0)), ..Fifo::default() }, SLEEPER);
    assert!(message.contains("which is waiting; it sits in `away`; at 1.00 ms"), "{message}");
    let message = fails(&mut Fifo { insists: Some(ThreadId(9)), ..Fifo::default() }, SLEEPER);
    assert!(message.contains("thread 9, which never was"), "{message}");
}

const SLEEPER: &str = "[[thread]]\nname = 'a'\ndo = [{ compute = '1ms' }, { sleep = '1ms' }]";

#[test]
fn a_scheduler_that_leaves_work_lying_is_told() {
    let message = fails(&mut Fifo { lazy: true, ..Fifo::default() }, SLEEPER);
    assert!(
        message.contains("leaves all CPUs idle for ever from 0 on")
            && message.contains("`a` in queue"),
        "{message}"
    );
    let message = fails(
        &mut Fifo { lacks: vec![Event::SuspendThread], ..Fifo::default() },
        "[[thread]]\nname = 'a'\ndo = ['suspend']",
    );
    assert!(message.contains("needs `event suspend_thread`"), "{message}");
}

#[test]
fn mistakes_of_workloads_name_their_line() {
    let deadlock = fails(
        &mut Fifo::with_slice(1_000_000),
        r#"
        [[thread]]
        name = "a"
        do = [{ lock = "m" }, { compute = "5ms" }, { lock = "n" },
              { unlock = "n" }, { unlock = "m" }]
        [[thread]]
        name = "b"
        do = [{ lock = "n" }, { compute = "5ms" }, { lock = "m" },
              { unlock = "m" }, { unlock = "n" }]
        "#,
    );
    assert!(
        deadlock.contains("`a` waits for the lock `n` of `b`; `b` waits for the lock `m` of `a`")
            && deadlock.contains("w.toml:4:"),
        "{deadlock}"
    );
    for (program, expected) in [
        (r#"{ lock = "m" }"#, "ends at 0 while it holds the lock `m`"),
        (r#"{ lock = "m" }, { lock = "m" }"#, "takes the lock `m`, which it holds already"),
        (r#"{ unlock = "m" }"#, "unlocks `m`, which it does not hold"),
        (r#"{ reply = 1 }"#, "has received no message"),
        (r#"{ while = "1", do = ["yield"] }"#, "time stands still at 0"),
        (r#"{ cpus = [7] }"#, "is to run only on the CPUs {7}, and the machine has 1"),
        (r#"{ spawn = "a" }, { sleep = "1s" }"#, "more than 10000 threads at once"),
    ] {
        let message =
            fails(&mut Fifo::default(), &format!("[[thread]]\nname = \"a\"\ndo = [{program}]"));
        assert!(message.contains(expected) && message.contains("w.toml:3:"), "{message}");
    }
}

#[test]
fn a_policy_that_gives_no_time_is_told_so() {
    for slice in [0, -5] {
        let message = fails(
            &mut Fifo::with_slice(slice),
            "[[thread]]\nname = \"a\"\ndo = [{ compute = \"1s\" }]",
        );
        assert!(
            message.contains("`test` dispatches for no time") && message.contains("`a`"),
            "{message}"
        );
    }
}
