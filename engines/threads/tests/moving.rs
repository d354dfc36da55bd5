//! Threads that move between workers, from C: which go, which stay, and what is refused.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use attune_language::engine::Engine;
use attune_language::{Options, check};
use common::{Ended, compile, directory, program_with, run, scheduler};

/// tests/programs/moves.c under a policy.
struct Moves {
    /// It goes with the test.
    _directory: tempfile::TempDir,
    program: PathBuf,
    policy: PathBuf,
}

impl Moves {
    /// Under tests/schedulers/moving.sched, which looks where its handlers run.
    fn new() -> Moves {
        let directory = directory();
        let policy = scheduler(directory.path(), "moving");
        Moves::with(directory, policy)
    }

    fn under(policy: &str) -> Moves {
        let directory = directory();
        let so = directory.path().join("policy.so");
        compile(Path::new(policy), &so);
        Moves::with(directory, so)
    }

    fn with(directory: tempfile::TempDir, policy: PathBuf) -> Moves {
        // A compiler that optimises keeps addresses of thread-local variables.
        let program = program_with(directory.path(), "moves", "-O2");
        Moves { _directory: directory, program, policy }
    }

    fn command(&self, workers: &str, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).env("ATTUNE_SCHED", &self.policy).env("ATTUNE_WORKERS", workers);
        command
    }

    fn run(&self, workers: &str, words: &[&str]) -> Ended {
        run(&mut self.command(workers, words))
    }
}

#[track_caller]
fn is_ok(ended: &Ended) {
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "ok\n"), "{}", ended.stderr);
}

/// Policies of the library that the threads engine takes, and that say how threads arrive.
fn split_policies() -> impl Iterator<Item = &'static str> {
    attune_schedulers::LIBRARY.iter().map(|entry| entry.name).filter(|name| {
        let mut opened = attune_schedulers::open(Path::new(name), &[]).expect("the policy");
        let checked = check(&opened.source, &mut opened.loader, &Options::default());
        let split = checked.program.as_ref().is_some_and(|program| program.may_be_split);
        split && checked.engine(Engine::Threads).accepted
    })
}

#[test]
fn a_worker_without_threads_gets_some() {
    let moves = Moves::new();
    for (workers, how) in [("2", ""), ("3", ""), ("2", "preempted")] {
        is_ok(&moves.run(workers, &["pulls", how]));
    }
}

#[test]
fn a_lasting_difference_in_ready_threads_is_evened_out() {
    is_ok(&Moves::new().run("2", &["evens"]));
}

#[test]
fn a_pinned_thread_stays_until_it_unpins_itself() {
    is_ok(&Moves::new().run("2", &["pinned"]));
}

#[test]
fn a_thread_that_waits_or_makes_a_blocking_call_stays() {
    let moves = Moves::new();
    for poller in common::POLLERS {
        is_ok(&run(moves.command("2", &["blocked"]).env("ATTUNE_IO", poller)));
    }
}

#[test]
fn errno_is_the_threads_own_wherever_it_is() {
    is_ok(&Moves::new().run("2", &["errors"]));
}

#[test]
fn nothing_is_lost_while_threads_move_as_often_as_they_can() {
    let moves = Moves::new();
    for (workers, how, poller) in [("2", "", ""), ("3", "preempted", "epoll"), ("5", "", "")] {
        is_ok(&run(moves.command(workers, &["stress", how]).env("ATTUNE_IO", poller)));
    }
}

#[test]
fn threads_move_under_every_policy_that_says_how_they_arrive() {
    let mut tried = Vec::new();
    for name in split_policies() {
        let moves = Moves::under(name);
        is_ok(&moves.run("2", &["pulls"]));
        is_ok(&moves.run("2", &["brief"]));
        tried.push(name);
    }
    assert!(tried.contains(&"fair") && tried.contains(&"round_robin"), "{tried:?}");
}

#[test]
fn a_policy_that_does_not_say_how_threads_arrive_is_refused() {
    let moves = Moves::under("fifo");
    let ended = moves.run("2", &["none"]);
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the scheduler fifo has no `arrives` of its own"),
        "{}",
        ended.stderr
    );
    // One worker has no other, and the user may forbid moves.
    is_ok(&moves.run("1", &["none"]));
    is_ok(&run(moves.command("2", &["none"]).env("ATTUNE_MOVES", "0")));
}

#[test]
fn only_the_program_can_let_its_threads_move() {
    let moves = Moves::new();
    let ended = run(moves.command("2", &["none"]).env("ATTUNE_MOVES", "1"));
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.contains("ATTUNE_MOVES=1: it may be 0"), "{}", ended.stderr);
}

/// A failed check in `arrives` ends the program as any other does.
#[test]
fn a_policy_that_fails_when_a_thread_arrives_is_told_with_its_line() {
    let directory = directory();
    let text = directory.path().join("careless.sched");
    let careless = "scheduler careless extends round_robin {
        data { threadref one; tunable int cares = 0; }
        after newthread(t) { if (cares > 0 && |one| == 0) t => one; }
        after arrives(t) {
            if (cares == 0)
                one => ready;
        }
    }";
    std::fs::write(&text, careless).expect("written");
    let so = directory.path().join("careless.so");
    compile(&text, &so);
    let ended = Moves::with(directory, so).run("2", &["pulls"]);
    assert_eq!(ended.status, Some(70), "{}", ended.stderr);
    assert!(ended.stderr.contains("careless.sched:6"), "{}", ended.stderr);
}
