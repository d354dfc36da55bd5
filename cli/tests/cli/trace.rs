//! `attune trace`. Needs root and BTF.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{ATTUNE, err, skip};

fn file(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trace-{test}.txt"));
    let _ = std::fs::remove_file(&path);
    path
}

fn attune() -> Command {
    Command::new(ATTUNE)
}

fn trace(path: &Path, words: &[&str]) -> Output {
    attune().args(["trace", "-o"]).arg(path).args(words).output().unwrap()
}

/// Whether this machine lets us trace.
fn possible() -> bool {
    let output = trace(&file("possible"), &["--", "/bin/true"]);
    if output.status.success() {
        return true;
    }
    skip(err(&output));
    false
}

fn calls(text: &str, kind: &str) -> usize {
    text.lines().filter(|line| line.split(' ').nth(2) == Some(kind)).count()
}

#[test]
fn a_command_from_beginning_to_end() {
    if !possible() {
        return;
    }
    let path = file("command");
    let output = trace(
        &path,
        &["--call", "clock_nanosleep", "--", "/bin/sh", "-c", "sleep 0.02; sleep 0.02; exit 7"],
    );
    assert_eq!(output.status.code(), Some(7), "{}", err(&output));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# attune trace 1\n# /bin/sh -c"));
    assert!(text.ends_with("# lost 0\n"));
    assert_eq!((calls(&text, "enter"), calls(&text, "exit")), (2, 2), "{text}");
    assert!(calls(&text, "block") > 1 && calls(&text, "wake") > 1);
}

#[test]
fn a_running_process_for_a_while_then_left_alone() {
    if !possible() {
        return;
    }
    let mut beat =
        Command::new("/bin/sh").args(["-c", "while :; do sleep 0.01; done"]).spawn().unwrap();
    let path = file("process");
    let output = trace(&path, &["-p", &beat.id().to_string(), "--seconds", "0.5"]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(calls(&std::fs::read_to_string(&path).unwrap(), "enter") > 0);
    assert!(beat.try_wait().unwrap().is_none(), "it still runs");
    beat.kill().unwrap();
    beat.wait().unwrap();
}

#[test]
fn ctrl_c_ends_the_recording_and_the_command_and_keeps_the_file() {
    if !possible() {
        return;
    }
    let path = file("interrupt");
    let mut tracing = attune()
        .args(["trace", "-o"])
        .arg(&path)
        .args(["--", "/bin/sh", "-c", "while :; do sleep 0.01; done"])
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let written = || std::fs::read_to_string(&path).unwrap_or_default().len();
    while written() < 1000 && begun.elapsed() < Duration::from_secs(90) {
        sleep(Duration::from_millis(20));
    }
    let group = i32::try_from(tracing.id()).unwrap();
    // SAFETY: no memory is involved; the group is the child's own.
    assert_eq!(unsafe { libc::kill(-group, libc::SIGINT) }, 0);
    tracing.wait().unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("# lost 0\n"));
    // A process that lost its parent is there until the machine's first process has waited for it.
    // SAFETY: as above; signal 0 only asks.
    while unsafe { libc::kill(-group, 0) } == 0 {
        assert!(begun.elapsed() < Duration::from_secs(180), "a process of the group is left");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_cannot_be_traced_says_why_and_writes_nothing() {
    let path = file("nothing");
    let output = trace(&path, &["-p", "999999999"]);
    assert_eq!(output.status.code(), Some(2));
    let output = trace(&path, &["--call", "tea", "-p", "1"]);
    assert!(err(&output).contains("no system call of this machine is called tea"));
    assert!(!path.exists());
    if possible() {
        let output = trace(&path, &["--", "/no/such/program"]);
        assert_eq!(output.status.code(), Some(127));
        assert!(err(&output).contains("cannot run /no/such/program"));
        assert!(!path.exists());
    }
}

#[test]
fn without_privilege_it_says_what_to_do() {
    // SAFETY: only asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        let output = trace(&file("user"), &["--", "/bin/true"]);
        assert!(err(&output).contains("run it as root"), "{}", err(&output));
        return;
    }
    // The same program, without the right to load one into the kernel.
    let output = Command::new("setpriv")
        .args([
            "--bounding-set",
            "-bpf,-perfmon,-sys_admin",
            "--inh-caps",
            "-bpf,-perfmon,-sys_admin",
        ])
        .arg(ATTUNE)
        .args(["trace", "-o"])
        .arg(file("user"))
        .args(["--", "/bin/true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("run it as root"), "{}", err(&output));
    assert!(!file("user").exists());
}
