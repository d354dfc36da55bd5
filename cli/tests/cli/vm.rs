//! `attune vm`: before a set-up, with a wrong copy, and when a user ends it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::set_up;
use crate::support::{ATTUNE, Folder, err};

fn attune() -> Command {
    let mut command = Command::new(ATTUNE);
    command.arg("vm");
    command
}

/// A machine whose command says `ready` and then waits for long.
fn waiting(trap: &str) -> Child {
    let script = format!("{trap} echo ready; for i in $(seq 600); do sleep 0.1; done");
    let mut command = attune();
    command.args(["--memory", "256", "--timeout", "900", "--", "sh", "-c", &script]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    output.read_line(&mut line).expect("it says something");
    assert_eq!(line, "ready\n");
    child
}

fn kill(pid: u32, signal: i32) {
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// The processes that this one started, with their names.
fn children(pid: u32) -> Vec<(u32, String)> {
    let list =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it lives");
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    list.split_whitespace()
        .map(|pid| pid.parse().expect("a pid"))
        .map(|pid| (pid, name(pid)))
        .collect()
}

#[test]
fn without_a_set_up_it_says_what_to_do() {
    let folder = Folder::new("no-set-up").0;
    let output = attune().arg("--dir").arg(&folder).args(["--", "true"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(125));
    assert!(err(&output).contains("run `attune vm setup`"), "{}", err(&output));
    assert_eq!(attune().output().expect("it runs").status.code(), Some(2));
}

#[test]
fn a_copy_that_is_not_the_one_meant_is_refused_and_nothing_is_kept() {
    let folder = Folder::new("wrong-hash").0;
    let copy = folder.join("linux.deb");
    std::fs::write(&copy, "nonsense").expect("written");
    let hash = "0".repeat(64);
    let set_up = |kernel: String| {
        let mut command = attune();
        // The kernel is looked at after the emulator, which is taken from here.
        command.args([
            "setup",
            "--qemu",
            "/bin/echo",
            "--virtiofsd",
            "/bin/true",
            "--kernel",
            &kernel,
        ]);
        command.arg("--dir").arg(folder.join("cache")).output().expect("it runs")
    };
    let old = set_up(copy.display().to_string());
    assert!(err(&old).contains("or newer is needed"), "{}", err(&old));
    assert_eq!(old.status.code(), Some(1));

    let qemu = folder.join("qemu");
    std::fs::write(&qemu, "#!/bin/sh\necho QEMU emulator version 10.0.2\n").expect("written");
    Command::new("chmod").arg("+x").arg(&qemu).status().expect("chmod runs");
    let set_up = |kernel: String| {
        let mut command = attune();
        command
            .args(["setup", "--virtiofsd", "/bin/true", "--kernel", &kernel, "--qemu"])
            .arg(&qemu);
        command.arg("--dir").arg(folder.join("cache")).output().expect("it runs")
    };
    let wrong = set_up(format!("{}#sha256={hash}", copy.display()));
    assert!(err(&wrong).contains("is not the file that was meant"), "{}", err(&wrong));
    let unchecked = set_up("http://example.org/linux.deb".to_owned());
    assert!(err(&unchecked).contains("#sha256="), "{}", err(&unchecked));
    let damaged = set_up(copy.display().to_string());
    assert_eq!(damaged.status.code(), Some(1), "{}", err(&damaged));
    let mut left: Vec<_> = std::fs::read_dir(&folder)
        .expect("there")
        .map(|entry| entry.expect("one").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["linux.deb", "qemu"], "nothing half-made is left");
}

#[test]
fn the_exit_status_and_the_order_of_the_output_are_the_commands() {
    if !set_up() {
        return;
    }
    // The guest finds this very program, wherever it was called from.
    let script = format!(
        "{ATTUNE} vm --memory 256 -- sh -c 'echo 1; echo 2 >&2; echo 3; command -v attune; echo \
            ${{PATH#*:}}; exit 9' 2>&1"
    );
    let mut command = Command::new("sh");
    let output =
        command.args(["-c", &script]).env("PATH", "/usr/bin:/bin").output().expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("1\n2\n3\n{ATTUNE}\n/usr/bin:/bin\n")
    );
    assert_eq!(output.status.code(), Some(9));
}

#[test]
fn ctrl_c_is_the_commands_and_the_second_ends_the_machine() {
    if !set_up() {
        return;
    }
    let child = waiting("");
    kill(child.id(), libc::SIGINT);
    assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(128 + libc::SIGINT));

    let mut child = waiting("trap '' INT;");
    // Two signals that a busy machine delivers as one are one.
    while child.try_wait().expect("it is ours").is_none() {
        kill(child.id(), libc::SIGINT);
        std::thread::sleep(Duration::from_millis(300));
    }
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
}

#[test]
fn when_a_part_is_killed_it_is_told_and_nothing_stays() {
    if !set_up() {
        return;
    }
    for (part, signal, message) in [
        ("qemu", libc::SIGKILL, "the emulator ended (killed by signal 9)"),
        ("qemu", libc::SIGABRT, attune_vm::FAULT),
        ("virtiofsd", libc::SIGKILL, "the host's files ended"),
    ] {
        let child = waiting("");
        let parts = children(child.id());
        let (pid, _) = parts.iter().find(|(_, name)| name.starts_with(part)).expect("it is there");
        kill(*pid, signal);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(125));
        assert!(err(&output).contains(message), "{}", err(&output));
    }
    let mut child = waiting("");
    let parts = children(child.id());
    assert_eq!(parts.len(), 2, "{parts:?}");
    child.kill().expect("it lives");
    child.wait().expect("it ends");
    let patience = Instant::now() + Duration::from_secs(90);
    let alive = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
    while parts.iter().any(|(pid, _)| alive(pid)) {
        assert!(Instant::now() < patience, "{parts:?} outlived it");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_topology_that_makes_no_machine_is_refused() {
    for (topology, why) in [
        ("2:4", "SOCKETS:CORES:THREADS is meant"),
        ("0:1:1", "SOCKETS:CORES:THREADS is meant"),
        ("16:8:1", "that makes 128 CPUs: at most 64 are possible"),
    ] {
        let output = attune().args(["--topology", topology, "--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{topology}");
        assert!(err(&output).contains(why), "{}", err(&output));
    }
    let both =
        attune().args(["--topology", "1:1:1", "--cpus", "2", "--", "true"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
    assert!(err(&both).contains("cannot be used with"), "{}", err(&both));
}
