//! Unmodified programs with the library preloaded: every call means what it means without.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn library() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().join("libattune_coop_preload.so")
}

fn session() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    directory
}

/// The program, cooperating in a session.
fn cooperating(program: impl AsRef<std::ffi::OsStr>, session: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", library())
        .env("ATTUNE_COOP", format!("shared:{}", session.display()));
    command
}

#[track_caller]
fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success(),
        "{:?} {text}{}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    text
}

#[test]
fn every_call_means_the_same() {
    let directory = session();
    let program = directory.path().join("calls");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/calls.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(source);
    output(&mut cc);
    assert_eq!(output(&mut Command::new(&program)), "ok\n", "the test itself, without the library");
    let session = session();
    let wakeup = session.path().join("wakeup-0");
    assert_eq!(output(cooperating(&program, session.path()).env("WAKEUP", wakeup)), "ok\n");
    // Several at a time take turns.
    std::thread::scope(|scope| {
        let run = || output(&mut cooperating(&program, session.path()));
        let all = [scope.spawn(run), scope.spawn(run), scope.spawn(run)];
        for one in all {
            assert_eq!(one.join().unwrap(), "ok\n");
        }
    });
}

#[test]
fn programs_that_do_not_wait_or_find_no_session_work() {
    let session = session();
    assert_eq!(output(cooperating("echo", session.path()).arg("hello")), "hello\n");
    let mut refused = cooperating("sh", Path::new("/no/such/directory"));
    assert_eq!(output(refused.args(["-c", "echo fine"])), "fine\n");
}

/// An X server that knows nothing of this draws what a client sends, and serves others meanwhile.
#[test]
fn an_unmodified_x_server_cooperates_and_serves() {
    let works = |program: &str| Command::new(program).arg("-version").output().is_ok();
    if !(works("Xvfb") && works("ffmpeg")) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "Xvfb and ffmpeg must be there");
        eprintln!("not tested: needs Xvfb and ffmpeg; tools/setup.sh test installs them");
        return;
    }
    let session = session();
    let mut command = cooperating("Xvfb", session.path());
    command.args(["-displayfd", "1", "-screen", "0", "64x64x24", "-nolisten", "tcp", "-br"]);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut number = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
    let grab = format!(
        "-v error -f x11grab -video_size 64x64 -draw_mouse 0 -i :{} -frames:v 5 -f rawvideo \
         -pix_fmt rgb24 -",
        number.trim()
    );
    let grabbed = Command::new("ffmpeg").args(grab.split(' ')).output().unwrap();
    let joined = session.path().join("wakeup-0").exists();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(
        grabbed.stdout.len() == 5 * 64 * 64 * 3 && grabbed.stdout.iter().all(|byte| *byte == 0)
    );
    assert!(joined, "the server takes part");
}
