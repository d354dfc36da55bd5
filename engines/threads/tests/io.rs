//! Descriptors, files and calls that block, from C, under both pollers, and what happens where
//! io_uring is not to be had.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ended, POLLERS, directory, program, run};

/// The program, and the directory that holds it.
fn build(name: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = directory();
    let program = program(directory.path(), name);
    (directory, program)
}

/// With this `ATTUNE_IO`, which may be empty, and as many workers.
fn under(program: &Path, poller: &str, workers: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new(program);
    command.args(arguments).env("ATTUNE_IO", poller).env("ATTUNE_WORKERS", workers);
    run(&mut command)
}

#[track_caller]
fn is_ok(ended: &Ended, with: &str) {
    let printed = (ended.status, ended.stdout.as_str());
    assert_eq!(printed, (Some(0), "ok\n"), "{with}: {}", ended.stderr);
}

/// tests/programs/files.c under both pollers, with these numbers of workers.
fn files(what: &str, workers: &[&str]) {
    let (_directory, program) = build("files");
    for poller in POLLERS {
        for workers in workers {
            is_ok(&under(&program, poller, workers, &[what]), poller);
        }
    }
}

#[test]
fn files_are_read_and_written_whole_by_threads_of_all_workers() {
    files("plain", &["1", "3"]);
}

#[test]
fn calls_that_block_keep_no_other_thread_waiting() {
    files("blocking", &["1", "3"]);
}

#[test]
fn a_closed_descriptor_ends_waits_and_the_connection() {
    files("closing", &["1"]);
}

#[test]
fn a_peer_that_ended_its_half_is_told_once() {
    files("half", &["1"]);
}

#[test]
fn a_file_that_blocks_keeps_no_other_thread_waiting() {
    let (_directory, program) = build("files");
    for poller in POLLERS {
        let ended = under(&program, poller, "1", &["slow"]);
        if ended.status == Some(77) {
            eprint!("{}", ended.stderr);
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{}", ended.stderr);
            return;
        }
        is_ok(&ended, poller);
    }
}

#[test]
fn a_deadlock_is_told_after_calls_and_transfers_too() {
    let (_directory, program) = build("files");
    for poller in POLLERS {
        let ended = under(&program, poller, "1", &["stuck"]);
        assert_eq!(ended.status, Some(71), "{poller}: {}", ended.stderr);
        assert!(ended.stderr.contains("waiting for a semaphore"), "{}", ended.stderr);
    }
}

/// Whether this machine allows io_uring at all; with CI=true it must.
fn has_io_uring(program: &Path) -> bool {
    let ended = under(program, "", "1", &["nothing"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let has = ended.stdout == "uring: as it should be\nok\n";
    if !has {
        eprint!("this machine has no io_uring: {}", ended.stdout);
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{}", ended.stdout);
    }
    has
}

#[test]
fn a_program_that_may_not_use_io_uring_uses_epoll_and_tells_why() {
    let (_directory, program) = build("refused");
    has_io_uring(&program);
    for (call, errno, why) in [
        ("setup", libc::EPERM, "the system forbids io_uring"),
        ("setup", libc::ENOSYS, "the kernel has no io_uring"),
        ("setup", libc::EINVAL, "io_uring needs Linux 6.1"),
        ("setup", libc::ENOMEM, "no memory for io_uring"),
        ("enter", libc::EPERM, "the system forbids io_uring"),
        ("enter", libc::ENOSYS, "the kernel has no io_uring"),
    ] {
        let errno = errno.to_string();
        for workers in ["1", "2"] {
            let ended = under(&program, "", workers, &[call, &errno]);
            assert_eq!(ended.status, Some(0), "{call} {errno}: {}", ended.stderr);
            assert!(ended.stdout.starts_with(&format!("epoll: {why}")), "{}", ended.stdout);
            assert!(ended.stdout.ends_with("\nok\n"), "{}", ended.stdout);
        }
        let ended = under(&program, "uring", "1", &[call, &errno]);
        assert_eq!(ended.status, Some(2), "{call} {errno}: {}", ended.stdout);
        let told = format!("attune: refused: ATTUNE_IO=uring: {why}");
        assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    }
}

#[test]
fn a_program_that_forbids_itself_io_uring_later_is_told_what_to_do() {
    let (_directory, program) = build("refused");
    if !has_io_uring(&program) {
        return;
    }
    let errno = libc::EPERM.to_string();
    let ended = under(&program, "", "1", &["late", &errno]);
    assert_eq!(ended.status, Some(71), "{}", ended.stdout);
    assert!(ended.stderr.contains("start with ATTUNE_IO=epoll"), "{}", ended.stderr);
    let ended = under(&program, "epoll", "1", &["late", &errno]);
    assert_eq!(ended.stdout, "epoll: ATTUNE_IO=epoll asks for it\nok\n", "{}", ended.stderr);
}

#[test]
fn attune_io_names_uring_or_epoll_and_nothing_else() {
    let (_directory, program) = build("refused");
    let ended = under(&program, "kqueue", "1", &["nothing"]);
    assert_eq!(ended.status, Some(2), "{}", ended.stdout);
    let told = "attune: refused: ATTUNE_IO=kqueue: it may be uring or epoll";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    if has_io_uring(&program) {
        let ended = under(&program, "uring", "1", &["nothing"]);
        assert_eq!(ended.stdout, "uring: as it should be\nok\n", "{}", ended.stderr);
    }
}
