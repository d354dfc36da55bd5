//! Programs that are watched by AddressSanitizer, ThreadSanitizer and Valgrind: what is right is
//! silent, and what is wrong is told with its place.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Ended, compile, directory, program, program_with, run};

/// ThreadSanitizer's shadow has fixed addresses, which a kernel that scatters mappings may take.
fn watched(program: &Path, what: &str, options: (&str, &str)) -> Ended {
    let mut command = Command::new("setarch");
    command.arg("-R").arg(program).arg(what).env("ATTUNE_WORKERS", "2");
    if what == "moved" {
        // The built-in policy does not say how threads arrive.
        let policy = program.with_extension("so");
        compile(Path::new("round_robin"), &policy);
        command.env("ATTUNE_SCHED", policy);
    }
    run(command.env(options.0, options.1))
}

#[track_caller]
fn is_silent(ended: Ended) {
    assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "ok\n", ""));
}

#[track_caller]
fn is_told(ended: Ended, words: &[&str]) {
    assert_ne!(ended.status, Some(0), "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word} is not in:\n{}", ended.stderr);
    }
}

#[test]
fn the_address_sanitizer_knows_each_threads_stack() {
    let directory = directory();
    let program = program_with(directory.path(), "watched", "-fsanitize=address");
    let under = |what| {
        watched(&program, what, ("ASAN_OPTIONS", "detect_stack_use_after_return=1:color=never"))
    };
    is_silent(under("clean"));
    is_silent(under("files"));
    is_silent(under("moved"));
    is_told(under("overflow"), &["stack-buffer-overflow", "in overflows", "watched.c"]);
    is_told(under("after-return"), &["stack-use-after-return", "in reads_after_return"]);
}

#[test]
fn the_thread_sanitizer_knows_switches_locks_and_workers() {
    let directory = directory();
    let program = program_with(directory.path(), "watched", "-fsanitize=thread");
    let under = |what| watched(&program, what, ("TSAN_OPTIONS", "color=never"));
    is_silent(under("clean"));
    is_silent(under("locked"));
    is_silent(under("files"));
    is_silent(under("moved"));
    is_told(under("race"), &["data race", "#0 races ", "'shared'"]);
}

#[test]
fn valgrind_takes_a_switch_for_a_switch() {
    let directory = directory();
    let program = program(directory.path(), "watched");
    for what in ["clean", "files"] {
        let mut command = Command::new("valgrind");
        command.arg("--error-exitcode=9").arg(&program).arg(what);
        let ended = run(&mut command);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "ok\n"), "{}", ended.stderr);
        assert!(ended.stderr.contains("ERROR SUMMARY: 0 errors"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("switching stacks"), "{}", ended.stderr);
    }
}
