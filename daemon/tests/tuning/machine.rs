//! A daemon and programs for it to tune, ended when their test is.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use attune_daemon::Error;
use attune_linux::process;
use attune_linux::procfs;
use attune_linux::scheduling::{Attributes, Class};
use attune_linux::signal::Signal;

/// One test at a time: together they would want more than there is.
static ALONE: Mutex<()> = Mutex::new(());

/// This test alone; None where this machine does not let us, which is a failure where CI=true. A
/// tuner starts its own program as its guardian, which a test's program is not: tests drive the
/// daemon.
pub fn alone_where_possible() -> Option<MutexGuard<'static, ()>> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(missing) = missing() else { return Some(alone) };
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
    eprintln!("cannot run here: {missing}");
    None
}

fn missing() -> Option<String> {
    if !attune_daemon::kernel::may_reserve() {
        return Some(Error::NoPrivilege.to_string());
    }
    (!Path::new("/sys/kernel/btf/vmlinux").exists()).then(|| "this kernel has no BTF".to_owned())
}

pub fn state(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The daemon with its own state and socket, a tuner in a process of its own.
pub fn attuned(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_attuned"));
    command.env("ATTUNE_STATE_DIR", folder).stderr(Stdio::null()).stdin(Stdio::null());
    command
}

/// A program that is ended when the test is.
pub struct Running(pub Child);

impl Running {
    /// A program with a beat, which has all its threads.
    pub fn beat(words: &[&str]) -> Running {
        let threads = words
            .iter()
            .find_map(|word| word.strip_prefix("threads="))
            .map_or(1, |n| n.parse().unwrap());
        let beat = Running(
            Command::new(env!("CARGO_BIN_EXE_attune-beat"))
                .args(words)
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        assert!(eventually(|| procfs::threads(beat.id()).len() == threads));
        beat
    }

    /// A program of another user's.
    pub fn of_user(user: u32, words: &[&str]) -> Running {
        let program = Running(
            Command::new("setpriv")
                .args([&format!("--reuid={user}"), "--clear-groups"])
                .args(words)
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        assert!(eventually(|| process::user_of(program.id()).ok() == Some(user)));
        program
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        // The child was not waited for, so the number is its own.
        process::signal(self.id(), signal).unwrap();
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The scheduling attributes of a process's threads.
pub fn attributes(process: u32) -> Vec<Attributes> {
    let threads = procfs::threads(process).into_iter();
    threads.filter_map(|thread| Attributes::of(thread).ok()).collect()
}

pub fn is_reservation(attributes: &Attributes) -> bool {
    attributes.class == Class::DEADLINE
}

pub fn reserved(process: u32) -> usize {
    attributes(process).iter().filter(|of_thread| is_reservation(of_thread)).count()
}

/// Whether the beat is a whole number of the reservation's periods.
pub fn has_beat(reservation: &Attributes, millis: u64) -> bool {
    let periods = millis as f64 * 1e6 / reservation.period as f64;
    periods >= 0.99 && (periods - periods.round()).abs() < 0.01 * periods
}

pub fn share(reservation: &Attributes) -> f64 {
    reservation.runtime as f64 / reservation.period as f64
}

pub fn stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

/// Waits until the condition holds; false if it does not within 90 s, on however busy a machine.
pub fn eventually(what: impl Fn() -> bool) -> bool {
    found(|| what().then_some(())).is_some()
}

/// Looks until there is something; None if there is nothing within 90 s.
pub fn found<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let seen = look();
        if seen.is_some() || begun.elapsed() > Duration::from_secs(90) {
            return seen;
        }
        sleep(Duration::from_millis(20));
    }
}

/// A daemon that answers requests.
pub struct Daemon {
    pub running: Running,
    pub folder: PathBuf,
}

impl Daemon {
    pub fn start(folder: &Path) -> Daemon {
        let daemon = Daemon {
            running: Running(attuned(folder).spawn().unwrap()),
            folder: folder.to_owned(),
        };
        assert!(eventually(|| folder.join("attuned.sock").exists()), "the daemon listens");
        daemon
    }

    /// What lies in its folder, apart from the lock, which tells two daemons apart and no more.
    pub fn left_behind(&self) -> Vec<std::ffi::OsString> {
        let names =
            std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name != "attuned.lock").collect()
    }

    pub fn ask(&self, request: &str) -> serde_json::Value {
        use std::io::{BufRead, BufReader, Write};
        let mut stream =
            std::os::unix::net::UnixStream::connect(self.folder.join("attuned.sock")).unwrap();
        writeln!(stream, "{request}").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub fn tune(&self, process: u32) {
        let answer = self.ask(&format!("{{\"request\":\"tune\",\"process\":{process}}}"));
        assert_eq!(answer["ok"], true, "{answer}");
    }

    pub fn guardian(&self) -> u32 {
        let guardian = self.ask("{\"request\":\"status\"}")["status"]["guardian"].as_u64().unwrap();
        u32::try_from(guardian).unwrap()
    }
}

/// The daemon as it would be on another machine: files of this one's kernel are hidden behind
/// others, for it alone.
pub fn attuned_elsewhere(folder: &Path, hide: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{hide} && exec {}", env!("CARGO_BIN_EXE_attuned"));
    command.args(["--mount", "sh", "-c", &script]);
    command.env("ATTUNE_STATE_DIR", folder).stdin(Stdio::null());
    command
}
