//! GDB sees the threads of a program that has stopped, and those in its core file.

mod common;

use std::path::Path;
use std::process::Command;

use common::{directory, here, program, run, scheduler};

/// What GDB says after commands about a program, and its core file if there is one.
fn gdb(files: &[&Path], commands: &[&str], environment: &[(&str, &Path)]) -> String {
    let mut command = Command::new("gdb");
    command.args(["-q", "-nx", "-batch", "-x"]).arg(here("gdb/attune.py"));
    commands.iter().for_each(|words| {
        command.args(["-ex", words]);
    });
    command.args(files).env_remove("DEBUGINFOD_URLS");
    command.envs(environment.iter().copied());
    let ended = run(&mut command);
    assert!(ended.status.is_some(), "{}{}", ended.stdout, ended.stderr);
    ended.stdout + &ended.stderr
}

/// Why these tests cannot run here, where that may be so.
fn missing() -> bool {
    let missing = "GDB is not there; tools/setup.sh test installs it";
    let has = Command::new("gdb").arg("--version").output().is_ok();
    assert!(has || std::env::var("CI").as_deref() != Ok("true"), "{missing}");
    if !has {
        eprintln!("not run: {missing}");
    }
    !has
}

/// The lines about one thread of `attune bt all`, or of `attune threads` its one.
#[track_caller]
fn about<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    let lines: Vec<_> = text.lines().skip_while(|line| !line.starts_with(begin)).collect();
    assert!(!lines.is_empty(), "`{begin}` begins no line of:\n{text}");
    lines.into_iter().take_while(|line| !line.is_empty()).collect()
}

/// The functions of the program itself in a backtrace, innermost first.
fn functions<'a>(backtrace: &[&'a str]) -> Vec<&'a str> {
    let own = backtrace.iter().filter(|line| line.contains("stopped.c"));
    let name = |line: &'a str| line.split(" in ").nth(1).unwrap_or(line).split(" (").next();
    own.filter_map(|line| name(line)).collect()
}

/// `counted`: the program counts how long its threads run and are ready.
#[track_caller]
fn shows_all_threads(text: &str, counted: bool) {
    for (thread, state, container, chosen) in [
        ("1  main", "waiting for the end of a thread", "WQ", "1"),
        ("2  sleeper", "sleeping", "WQ", "1"),
        ("3  yielder", "ready", "ready", "1"),
        ("4  locker", "waiting for a mutex", "WQ", "1"),
        ("5  stopper", "running", "current[0]", "1"),
        ("6  unborn", "ready", "ready", "0"),
    ] {
        let line = about(text, &format!("     {thread}"))[0];
        let words: Vec<_> = line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
        assert_eq!((words[3], words[4], words[7]), (state, container, chosen), "{line}");
        let none = if counted { "0.000000" } else { "-" };
        let has_times = counted && words[7] != "0";
        assert_eq!(has_times, [words[5], words[6]] != [none; 2], "run and ready: {line}");
    }
    for (begin, expected) in [
        ("thread 1 \"main\" (waiting for the end of a thread), in WQ", vec!["main"]),
        ("thread 2 \"sleeper\" (sleeping), in WQ", vec!["sleeps"]),
        (
            "thread 3 \"yielder\" (ready), in ready",
            vec!["recurses", "recurses", "recurses", "recurses", "yields"],
        ),
        ("thread 4 \"locker\" (waiting for a mutex), in WQ", vec!["locks"]),
        ("thread 5 \"stopper\" (running), in current", vec!["stops"]),
    ] {
        let lines = about(text, begin);
        assert_eq!(functions(&lines), expected, "{}", lines.join("\n"));
        assert!(lines[1].starts_with("#0 "), "{}", lines.join("\n"));
        assert!(lines.last().is_some_and(|line| line.contains("stopped.c")), "{lines:?}");
    }
    assert!(about(text, "thread 6 \"unborn\"")[1].contains("it has not run yet"), "{text}");
}

#[test]
fn gdb_lists_threads_with_a_backtrace_of_each_in_a_program_and_in_its_core_file() {
    if missing() {
        return;
    }
    let directory = directory();
    let program = program(directory.path(), "stopped");
    let so = scheduler(directory.path(), "test_fifo");
    let core = directory.path().join("core");
    let save = format!("generate-core-file {}", core.display());
    let look = ["attune threads", "attune bt all"];
    let commands = [&["run"], &look[..], &[&save]].concat();
    shows_all_threads(&gdb(&[&program], &commands, &[("ATTUNE_SCHED", &so)]), false);
    shows_all_threads(&gdb(&[&program, &core], &look, &[]), false);
    let control = directory.path().join("control");
    let environment = [("ATTUNE_SCHED", so.as_path()), ("ATTUNE_CONTROL", &control)];
    shows_all_threads(&gdb(&[&program], &[&["run"], &look[..]].concat(), &environment), true);
}

#[test]
fn gdbs_own_commands_see_the_thread_that_the_user_looks_at() {
    if missing() {
        return;
    }
    let directory = directory();
    let program = program(directory.path(), "stopped");
    let so = scheduler(directory.path(), "test_fifo");
    let commands = [
        "run",
        "attune thread 3",
        "frame function yields",
        "print *(int *)depth",
        "attune thread",
        "frame function stops",
        "attune bt 3",
        "frame",
        "attune thread 6",
        "attune bt 7",
    ];
    let text = gdb(&[&program], &commands, &[("ATTUNE_SCHED", &so)]);
    assert!(text.contains("$1 = 3\n"), "{text}");
    assert_eq!(functions(&about(&text, "thread 3")).last(), Some(&"stops"), "kept: {text}");
    assert!(text.contains("thread 6 has no frames: it has not run yet"), "{text}");
    assert!(text.contains("there is no thread 7; `attune threads` lists them"), "{text}");
}

#[test]
fn gdb_sees_threads_of_every_worker() {
    if missing() {
        return;
    }
    let directory = directory();
    let program = program(directory.path(), "stopped");
    let commands = ["run away", "attune threads", "attune bt all"];
    let text = gdb(&[&program], &commands, &[("ATTUNE_WORKERS", Path::new("2"))]);
    assert!(about(&text, "     2  away")[0].contains("  away          2  "), "{text}");
    // It may be seen on its processor or off it.
    assert!(functions(&about(&text, "thread 2 \"away\"")).contains(&"goes_away"), "{text}");
}

#[test]
fn gdb_sees_a_thread_that_has_moved_on_the_worker_that_has_it() {
    if missing() {
        return;
    }
    let directory = directory();
    let program = program(directory.path(), "stopped");
    let so = directory.path().join("policy.so");
    common::compile(Path::new("round_robin"), &so);
    let environment = [("ATTUNE_WORKERS", Path::new("2")), ("ATTUNE_SCHED", &so)];
    let text = gdb(&[&program], &["run moved", "attune threads", "attune bt 5"], &environment);
    let line = about(&text, "     5  moved")[0];
    assert!(line.contains("  moved         2  sleeping") && line.contains("  WQ  "), "{line}");
    assert!(functions(&about(&text, "thread 5 \"moved\"")).contains(&"goes_away"), "{text}");
}

#[test]
fn a_program_without_threads_is_told_from_one_with() {
    if missing() {
        return;
    }
    let text = gdb(&[Path::new("/bin/true")], &["attune threads"], &[]);
    assert!(text.contains("this program has no threads of Attune"), "{text}");
}
