//! Threads on several workers, from C, under the library's policies, and how such programs end.

mod common;

use std::path::Path;
use std::process::Command;

use attune_language::engine::Engine;
use attune_language::{Options, check};
use common::{Ended, compile, directory, program, run};

fn workers(program: &Path, policy: &Path, count: &str, poller: &str, what: Option<&str>) -> Ended {
    let mut command = Command::new(program);
    command.args(what).env("ATTUNE_SCHED", policy).env("ATTUNE_WORKERS", count);
    run(command.env("ATTUNE_IO", poller))
}

/// tests/programs/workers.c under a policy of the library.
fn under(policy: &str, count: &str, what: Option<&str>) -> Ended {
    let directory = directory();
    let program = program(directory.path(), "workers");
    let so = directory.path().join("policy.so");
    compile(Path::new(policy), &so);
    workers(&program, &so, count, "", what)
}

/// Whether the threads engine takes a policy of the library.
fn runs_here(name: &str) -> bool {
    let mut opened = attune_schedulers::open(Path::new(name), &[]).expect("the policy");
    let checked = check(&opened.source, &mut opened.loader, &Options::default());
    !checked.has_errors() && checked.program.is_some() && checked.engine(Engine::Threads).accepted
}

#[test]
fn workers_wake_each_others_threads_under_every_policy() {
    let directory = directory();
    let program = program(directory.path(), "workers");
    let mut tried = 0;
    for entry in attune_schedulers::LIBRARY.iter().filter(|entry| runs_here(entry.name)) {
        let so = directory.path().join(entry.name).with_extension("so");
        compile(Path::new(entry.name), &so);
        for (count, poller) in [("2", ""), ("3", "epoll")] {
            let ended = workers(&program, &so, count, poller, None);
            let name = entry.name;
            assert_eq!(
                (ended.status, ended.stdout.as_str()),
                (Some(0), "ok\n"),
                "{name}, {count} workers: {}",
                ended.stderr
            );
        }
        tried += 1;
    }
    assert!(tried >= 10, "only {tried} policies run here");
}

#[test]
fn one_worker_serves_the_same_program() {
    let ended = under("fifo", "1", None);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "ok\n"), "{}", ended.stderr);
}

#[test]
fn no_post_and_no_lock_is_lost_between_workers() {
    let ended = under("fifo", "2", Some("tight"));
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "ok\n"), "{}", ended.stderr);
}

#[test]
fn a_deadlock_over_several_workers_is_told_once_with_all_threads() {
    let ended = under("fifo", "2", Some("deadlock"));
    assert_eq!(ended.status, Some(71));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ended.stderr);
    assert!(lines[0].contains("deadlock: every thread waits"), "{}", lines[0]);
    assert!(lines[1].contains("thread 1 \"main\" (waiting for the end of thread 2)"));
    assert!(lines[2].contains("thread 2 \"worker's\" (waiting for a mutex)"));
}

#[test]
fn a_stack_overflow_on_another_worker_names_the_thread() {
    let ended = under("fifo", "2", Some("overflow"));
    assert!(
        ended.stderr.contains("thread 2 \"worker's\" overflowed its stack"),
        "{}",
        ended.stderr
    );
}

#[test]
fn the_process_ends_with_the_last_thread_of_all_workers() {
    let ended = under("fifo", "3", Some("main exits"));
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "last\n"), "{}", ended.stderr);
}

#[test]
fn a_senseless_number_of_workers_is_refused() {
    for count in ["0", "65", "many"] {
        let ended = under("fifo", count, None);
        assert_eq!(ended.status, Some(2));
        let wanted = format!("ATTUNE_WORKERS={count}: it may be 1 to 64");
        assert!(ended.stderr.contains(&wanted), "{}", ended.stderr);
    }
}
