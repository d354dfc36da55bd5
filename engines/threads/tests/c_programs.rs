//! C programs against the header and the library, under generated schedulers, and what they say
//! when things go wrong.

mod common;

use std::process::Command;

use common::{Ended, POLLERS, cc, directory, here, program, run, scheduler};

/// tests/programs/failures.c under a scheduler of tests/schedulers.
fn fails(what: &str, name: &str) -> Ended {
    let directory = directory();
    let failures = program(directory.path(), "failures");
    let so = scheduler(directory.path(), name);
    run(Command::new(failures).arg(what).env("ATTUNE_SCHED", so))
}

#[track_caller]
fn says(ended: &Ended, text: &str) {
    assert!(ended.stderr.contains(text), "`{text}` is not in:\n{}", ended.stderr);
}

#[test]
fn every_function_of_the_header() {
    let directory = directory();
    let api = program(directory.path(), "api");
    let so = scheduler(directory.path(), "test_fifo");
    for poller in POLLERS {
        let mut command = Command::new(&api);
        command.arg("imports").env("ATTUNE_SCHED", &so).env("ATTUNE_IO", poller);
        let ended = run(&mut command);
        let printed = (ended.status, ended.stdout.as_str());
        assert_eq!(printed, (Some(0), "ok\n"), "{poller}: {}", ended.stderr);
        says(
            &ended,
            "attune: api: the scheduler test_fifo has no import `presure`; it has pressure",
        );
        says(&ended, "`urgent` is a thread import, not an import");
    }
}

#[test]
fn a_policy_that_knows_only_suspending_serves_every_function_too() {
    let directory = directory();
    let api = program(directory.path(), "api");
    let so = scheduler(directory.path(), "old");
    let ended = run(Command::new(&api).env("ATTUNE_SCHED", so));
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "ok\n"), "{}", ended.stderr);
}

#[test]
fn pth_is_built_in() {
    let directory = directory();
    let failures = program(directory.path(), "failures");
    let with = |what: &str| run(Command::new(&failures).arg(what).env_remove("ATTUNE_SCHED"));
    assert_eq!(with("name").stdout, "begins\npth\n");
    assert_eq!(with("many").stdout, "begins\n10001 1\n");
    let ended = with("deadlock");
    assert_eq!(ended.status, Some(71));
    says(&ended, "thread 1 \"main\" (ready, suspended), in SQ");
    says(&ended, "thread 2 \"stuck\" (waiting for a mutex), in WQ");
}

#[test]
fn handlers_come_in_the_documented_order() {
    let ended = fails("log", "log");
    assert_eq!(ended.status, Some(0));
    let wanted = [
        "newthread 1, schedule 1",
        "newthread 2",
        "set_next_thread 2, switch_out, schedule 2", // main yields to it
        "switch_out, schedule 1",                    // it yields
        "suspend_thread 2, resume_thread 2",         // main suspends and resumes it
        "set_waiting 1, switch_out, schedule 2",     // main joins it
        "switch_out, schedule 2",
        "switch_out, schedule 2",
        "event_raised 1, set_dead 2, switch_out, schedule 1", // its end is what main waits for
        "set_waiting 1, switch_out, schedule 0",              // main sleeps: an idle processor
        "event_raised 1, schedule 1",
    ]
    .join(", ");
    assert_eq!(ended.stderr.trim().replace('\n', ", "), wanted);
}

#[test]
fn alarms_come_back_as_events_unless_cancelled() {
    let ended = fails("log", "alarms");
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), "alarm 1\n"));
}

#[test]
fn a_deadlock_is_told_thread_by_thread() {
    let ended = fails("deadlock", "test_fifo");
    assert_eq!(ended.status, Some(71));
    assert_eq!(ended.stdout, "begins\n", "what was printed is not lost");
    says(&ended, "attune: failures: deadlock: every thread waits");
    says(&ended, "thread 1 \"main\" (ready, suspended), in SQ");
    says(&ended, "thread 2 \"stuck\" (waiting for a mutex), in WQ");
    assert!(!ended.stderr.contains("rests"), "{}", ended.stderr);
}

#[test]
fn a_failed_check_stops_the_program_with_its_place() {
    let ended = fails("wake", "traps");
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(70), "begins\n"));
    says(&ended, "the scheduler failed: ");
    says(&ended, "traps.sched:4:9: ");
    says(&ended, "SQ");
}

#[test]
fn dispatching_a_thread_that_waits_is_the_schedulers_error() {
    let ended = fails("wake", "loses");
    assert_eq!(ended.status, Some(70));
    says(&ended, "loses dispatched thread ");
    says(&ended, "which cannot run; it is in current");
}

#[test]
fn destroying_a_living_thread_is_the_schedulers_error() {
    let ended = fails("log", "destroys");
    assert_eq!(ended.status, Some(70));
    says(&ended, "destroys destroyed thread ");
}

#[test]
fn a_scheduler_that_leaves_ready_threads_lying_is_named() {
    let ended = fails("log", "idles");
    assert_eq!(ended.status, Some(71));
    says(
        &ended,
        "stuck: the scheduler idles dispatches none of 2 ready threads, and no event can come",
    );
}

#[test]
fn a_stack_overflow_names_the_thread() {
    use std::os::unix::process::ExitStatusExt;
    let directory = directory();
    let failures = program(directory.path(), "failures");
    let output = Command::new(failures).arg("overflow").output().expect("it runs");
    assert_eq!(output.status.signal(), Some(11));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("attune: thread 2 \"deep one\" overflowed its stack of 26"),
        "{stderr}"
    );
}

#[test]
fn handlers_do_not_use_up_a_small_stack() {
    let ended = fails("small stacks", "deep");
    let printed = (ended.status, ended.stdout.as_str());
    assert_eq!(printed, (Some(0), "begins\njoined\n"), "{}", ended.stderr);
}

#[test]
fn other_faults_reach_the_programs_own_handler() {
    // The program has installed its handler before the library's first call.
    assert_eq!(fails("crash", "test_fifo").status, Some(33));
}

#[test]
fn the_process_ends_with_its_last_thread() {
    assert_eq!(fails("main exits", "test_fifo").status, Some(0));
}

#[test]
fn a_forked_child_is_refused() {
    for poller in POLLERS {
        let directory = directory();
        let failures = program(directory.path(), "failures");
        let ended = run(Command::new(failures).arg("fork").env("ATTUNE_IO", poller));
        assert_eq!(ended.status, Some(7), "{poller}: {}", ended.stderr);
    }
}

#[test]
fn unknown_imports_are_refused_told_or_ignored() {
    let directory = directory();
    let failures = program(directory.path(), "failures");
    let so = scheduler(directory.path(), "test_fifo");
    let with = |what: &str, policy: Option<&str>| {
        let mut command = Command::new(&failures);
        command.arg(what).env("ATTUNE_SCHED", &so);
        policy.map(|policy| command.env("ATTUNE_UNKNOWN_IMPORTS", policy));
        let ended = run(&mut command);
        (ended.status, ended.stderr.contains("has no import `no_such_import`"))
    };
    assert_eq!(with("unknown", None), (Some(5), true));
    assert_eq!(with("unknown", Some("warn")), (Some(6), true));
    assert_eq!(with("unknown", Some("ignore")), (Some(6), false));
    assert_eq!(with("ignored", None), (Some(6), false));
    assert_eq!(
        with("ignored", Some("error")),
        (Some(5), true),
        "the environment has the last word"
    );
}

#[test]
fn options_of_an_older_header_are_taken() {
    let directory = directory();
    let failures = program(directory.path(), "failures");
    // Without a file to load, so that the scheduler in the program would count if it were read.
    let ended = run(Command::new(failures).arg("older").env_remove("ATTUNE_SCHED"));
    assert_eq!(ended.status, Some(6), "{}", ended.stderr);
}

#[test]
fn an_unusable_scheduler_is_refused_before_anything_runs() {
    let directory = directory();
    let failures = program(directory.path(), "failures");
    let text = directory.path().join("text.so");
    std::fs::write(&text, "no library").expect("written");
    let broken = directory.path().join("broken.so");
    std::fs::write(&broken, b"\x7fELF and no more").expect("written");
    let (c, other_version) = (directory.path().join("other.c"), directory.path().join("other.so"));
    let source = "#include <attune_scheduler.h>\nconst struct attune_scheduler attune_scheduler = \
        { .abi = 99 };\n";
    std::fs::write(&c, source).expect("written");
    let include = here("../../backends/c/runtime");
    cc(&[&"-shared", &"-fPIC", &"-I", &include, &"-o", &other_version, &c]);
    for (path, message) in [
        (directory.path().join("none.so"), "there is no such file; to make one: attune build "),
        (text, "this is no compiled scheduler; to make one: attune build FILE.sched "),
        (directory.path().into(), "this is no compiled scheduler"),
        ("libm.so.6".into(), "there is no such file"),
        (broken, "cannot load it: "),
        (
            here("tests/schedulers/old.sched"),
            "this is the text of a scheduler, and the threads engine loads compiled ones; \
             to make one: attune build ",
        ),
        (here("tests/schedulers/old.sched"), "old.sched --engine threads -o old.so"),
        (other_version, "compiled for version 99"),
        (
            scheduler(directory.path(), "no_schedule"),
            "needs handlers that it lacks: schedule, event_raised",
        ),
    ] {
        let ended = run(Command::new(&failures).arg("name").env("ATTUNE_SCHED", &path));
        assert_eq!(
            (ended.status, ended.stdout.as_str()),
            (Some(2), "begins\n"),
            "{}",
            ended.stderr
        );
        says(&ended, message);
        says(&ended, &path.display().to_string());
    }
}

#[test]
fn ten_thousand_threads() {
    let ended = fails("many", "test_fifo");
    assert_eq!(
        (ended.status, ended.stdout.as_str()),
        (Some(0), "begins\n10001 1\n"),
        "{}",
        ended.stderr
    );
}

/// Needs to be root, to give a file to root with the set-uid bit; elsewhere load.rs's own tests
/// stand for it.
#[test]
fn a_set_uid_program_ignores_the_environment() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    // SAFETY: asks for the user of this process.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let directory = directory();
    let failures = program(directory.path(), "failures");
    let so = scheduler(directory.path(), "old");
    let (everyone, set_uid) = (PermissionsExt::from_mode(0o755), PermissionsExt::from_mode(0o4755));
    std::fs::set_permissions(directory.path(), everyone).expect("permissions");
    chown(&failures, Some(0), None).expect("owner");
    std::fs::set_permissions(&failures, set_uid).expect("permissions");
    let output = Command::new(&failures).arg("name").env("ATTUNE_SCHED", &so).uid(65534).output();
    let output = output.expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("ATTUNE_SCHED is ignored"), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "begins\npth\n");
}
