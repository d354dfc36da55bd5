//! The wake-up graph on the real kernel, with real programs. Needs root, BTF and an X server;
//! elsewhere it says so and passes, but fails where CI=true.

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use attune_desktop::display::Display;
use attune_desktop::observation::{Handed, Observation};
use attune_desktop::wakes::{Error, Row, Wakes};
use attune_desktop::x11::{InputSource, X11};
use attune_desktop::{Cause, Facts, Process, Settings, monitor};
use attune_linux::futex;
use attune_linux::memory::Mapping;
use attune_linux::time::NEVER;
use common::{Desktop, cannot_run, child_of, have, wait_for};

/// One test at a time: each program sees the wake-ups of the whole machine.
static ALONE: Mutex<()> = Mutex::new(());

fn wakes() -> Option<(Wakes, MutexGuard<'static, ()>)> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Wakes::start() {
        Ok(wakes) => Some((wakes, alone)),
        Err(error @ (Error::NoPrivilege | Error::NoBtf)) => {
            cannot_run(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn typing_into_an_editor_is_explained_by_the_path_from_the_terminal() {
    if !have(&["Xvfb", "openbox", "xterm", "vim", "xdotool"]) {
        return;
    }
    let Some((wakes, _alone)) = wakes() else { return };
    let mut desktop = Desktop::start();
    desktop.manage();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    let terminal = desktop.terminal(&["vim", "-u", "NONE", "-n", file.to_str().unwrap()]);
    let xterm = Process::now(terminal).unwrap();
    let vim = child_of(terminal, "vim");
    let hog = Process::now(desktop.run("sh", &["-c", "while :; do :; done"])).unwrap();
    let x = Process::now(desktop.server()).unwrap();

    let display = desktop.display.clone();
    let connect = Box::new(move || {
        let x11 = X11::connect(Some(&display), InputSource::Best)?;
        Ok(Box::new(x11) as Box<dyn Display>)
    });
    let settings = Settings::default();
    let mut monitor = monitor::Monitor::start(connect, Some(wakes), settings, &mut |_| ()).unwrap();
    desktop.xdotool(&["key", "Escape", "i"]);
    let typist = {
        let mut command = desktop.command("xdotool");
        // For as long as it takes to be seen.
        command.args(["type", "--delay", "60", &"the quick brown fox ".repeat(80)]);
        command.spawn().unwrap()
    };
    let mut keys = 0;
    let explained = wait_for("a rating of the editor", || {
        monitor.step(u64::MAX, &mut |seen| {
            if let Observation::Input(input) = seen {
                keys += usize::from(input.process == xterm);
            }
        });
        let rated = monitor.attention().rated().get(&vim)?;
        let wanted = Some(Cause::Path(vec![xterm, vim]));
        let whole = keys > 10 && rated.input.value > 8.0 && rated.output.value > 0.0;
        (whole && rated.input.cause == wanted).then(|| monitor.attention().explain(vim))
    });
    let mut typist = typist;
    typist.kill().unwrap();
    typist.wait().unwrap();
    assert!(monitor.attention().is_hub(x));
    let steps: Vec<&str> = explained.input.path.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps[..2], ["Xvfb", "xterm"], "{explained}");
    assert!(steps[2].starts_with("vim"), "{explained}");
    let reason = explained.input.reason.clone().unwrap();
    assert!(reason.starts_with(&format!("xterm ({terminal}) got a key")), "{reason}");
    // The terminal shows what the editor tells it: output goes the other way.
    assert_eq!(explained.output.path.len(), 3, "{explained}");
    let server = monitor.attention().explain(x);
    assert!(server.input.reason.unwrap().contains("display server of xterm"));
    let rated = |process| monitor.attention().rated().contains_key(&process);
    assert!(!rated(hog), "a hog that nobody deals with is not rated");
    assert!(!rated(Process::now(std::process::id()).unwrap()), "nor is this test");
    // What the kernel has is what was computed.
    let row = monitor.wakes().unwrap().row(vim).unwrap();
    assert!(row.input > 500 && !row.hub, "{row:?}");
    let dot = monitor.attention().dot();
    assert!(dot.contains(&format!("p{} -> p{}", xterm.key(), vim.key())), "{dot}");
}

/// A process sleeps, too, while its program is read from a file.
fn wait_until_it_reads_a_pipe(pid: u32) {
    wait_for("a process that waits at a pipe", || {
        let place = std::fs::read_to_string(format!("/proc/{pid}/wchan")).ok()?;
        place.contains("pipe_read").then_some(())
    });
}

/// Two processes that wake each other through a pipe, and nothing else.
#[test]
fn a_rated_process_hands_its_rating_to_one_that_it_wakes_and_to_its_children() {
    let Some((wakes, _alone)) = wakes() else { return };
    let mut command = Command::new("sh");
    let mut sleeper =
        command.args(["-c", "read line; exec sleep 1000"]).stdin(Stdio::piped()).spawn().unwrap();
    let woken = Process::now(sleeper.id()).unwrap();
    wait_until_it_reads_a_pipe(sleeper.id());
    let own = Process::now(std::process::id()).unwrap();
    wakes.publish(&[Row { process: own, input: 700, output: 300, hub: false }]).unwrap();
    wakes.take().unwrap();
    sleeper.stdin.take().unwrap().write_all(b"go\n").unwrap();
    // At once: before user space has computed anything.
    let row = wakes.row(woken).expect("the kernel handed the rating on");
    assert_eq!((row.input, row.output), (700, 0));
    let handed = wakes.handovers(10.0).unwrap();
    let found = handed.iter().find(|handover| handover.to == woken).unwrap();
    assert_eq!((found.from, found.how, found.input), (own, Handed::Wake, 7.0));
    let edges = wakes.take().unwrap();
    assert!(edges.iter().any(|edge| edge.from == own && edge.to == woken), "{edges:?}");

    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let born = Process::now(child.id()).unwrap();
    let row = wakes.row(born).expect("a child starts with its parent's ratings");
    assert_eq!((row.input, row.output), (700, 300));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(wakes.row(born), None, "its row ends with it");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

/// The kernel looks at the ratings of a pair anew only where some have changed since.
#[test]
fn a_rating_that_comes_after_a_pairs_first_wake_up_is_handed_on_at_its_next() {
    let Some((wakes, _alone)) = wakes() else { return };
    let mut command = Command::new("sh");
    let mut reader =
        command.args(["-c", "while read line; do :; done"]).stdin(Stdio::piped()).spawn().unwrap();
    let (own, woken) = [std::process::id(), reader.id()].map(Process::now).into();
    let (own, woken) = (own.unwrap(), woken.unwrap());
    let mut writer = reader.stdin.take().unwrap();
    let mut wake = || {
        wait_until_it_reads_a_pipe(woken.pid);
        writer.write_all(b"go\n").unwrap();
    };
    wake();
    assert_eq!(wakes.row(woken), None, "nothing is rated");
    wakes.put(&[Row { process: own, input: 700, output: 0, hub: false }]).unwrap();
    wake();
    assert_eq!(wakes.row(woken).map(|row| row.input), Some(700));
    let edges = wakes.take().unwrap();
    let edge = edges.iter().find(|edge| edge.from == own && edge.to == woken).unwrap();
    assert_eq!(edge.count, 2, "the same pair");
    drop(writer);
    reader.wait().unwrap();
}

/// Where two processes meet that share memory and nothing else.
const SHARED: &str = "ATTUNE_TEST_SHARED";

fn meeting(file: &std::fs::File) -> Mapping {
    Mapping::of(file.as_fd(), 8).unwrap()
}

fn number(mapping: &Mapping) -> &AtomicU32 {
    // SAFETY: four of the eight bytes, aligned for eight, that live as long as the mapping.
    unsafe { &*(&raw const mapping.words()[0]).cast::<AtomicU32>() }
}

/// Not a test by itself: the process that waits in the next one.
#[test]
fn waits_at_a_futex_of_another_process() {
    let Ok(path) = std::env::var(SHARED) else { return };
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mapping = meeting(&file);
    loop {
        let seen = number(&mapping).load(Ordering::SeqCst);
        futex::wait(number(&mapping), seen, NEVER);
    }
}

#[test]
fn processes_that_meet_at_a_futex_in_shared_memory_have_an_edge() {
    let Some((wakes, _alone)) = wakes() else { return };
    let shared = tempfile::NamedTempFile::new().unwrap();
    shared.as_file().set_len(8).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "waits_at_a_futex_of_another_process"]).env(SHARED, shared.path());
    let mut waiter = command.stdout(Stdio::null()).spawn().unwrap();
    let (own, other) = [std::process::id(), waiter.id()].map(Process::now).into();
    let (own, other) = (own.unwrap(), other.unwrap());
    wakes.publish(&[Row { process: own, input: 700, output: 0, hub: false }]).unwrap();
    let mapping = meeting(shared.as_file());
    wait_for("a wake-up through shared memory", || {
        number(&mapping).fetch_add(1, Ordering::SeqCst);
        futex::wake(number(&mapping), 1);
        let edges = wakes.take().unwrap();
        edges.iter().any(|edge| edge.from == own && edge.to == other).then_some(())
    });
    assert_eq!(wakes.row(other).map(|row| row.input), Some(700), "and the rating goes along");
    waiter.kill().unwrap();
    waiter.wait().unwrap();
}

#[test]
fn a_hub_hands_nothing_on() {
    let Some((wakes, _alone)) = wakes() else { return };
    let own = Process::now(std::process::id()).unwrap();
    wakes.publish(&[Row { process: own, input: 700, output: 300, hub: true }]).unwrap();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    assert_eq!(wakes.row(Process::now(child.id()).unwrap()), None);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Through a pseudo-terminal the kernel's worker wakes the reader, and the writer is meant.
#[test]
fn what_a_terminal_writes_is_the_terminals_wake_up_and_no_workers() {
    if !have(&["Xvfb", "xterm", "xdotool"]) {
        return;
    }
    let Some((wakes, _alone)) = wakes() else { return };
    let mut desktop = Desktop::start();
    let terminal = desktop.terminal(&["cat"]);
    let (xterm, cat) = (Process::now(terminal).unwrap(), child_of(terminal, "cat"));
    wakes.take().unwrap();
    let mut counts: BTreeMap<(Process, Process), u64> = BTreeMap::new();
    wait_for("twenty wake-ups of cat, and its answer", || {
        // Lines that come while cat still runs wake nobody: so keys go on until the count is there.
        desktop.xdotool(&["key", "Return"]);
        for edge in wakes.take().unwrap() {
            *counts.entry((edge.from, edge.to)).or_default() += edge.count;
        }
        let count = |from, to| counts.get(&(from, to)).copied().unwrap_or(0);
        (count(xterm, cat) >= 20 && count(cat, xterm) > 0).then_some(())
    });
    let others: Vec<_> = counts
        .iter()
        .filter(|((from, to), _)| *to == cat && *from != xterm)
        .map(|((from, _), count)| (Facts::read(from.pid), count))
        .collect();
    assert!(others.is_empty(), "only the terminal wakes cat: {others:?}");
}

#[test]
fn thousands_of_short_processes_leave_no_trace() {
    let Some((wakes, _alone)) = wakes() else { return };
    let own = Process::now(std::process::id()).unwrap();
    wakes.publish(&[Row { process: own, input: 900, output: 0, hub: false }]).unwrap();
    let script = "i=0; while [ $i -lt 3000 ]; do (:); i=$((i+1)); done";
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
    assert!(wakes.handovers(10.0).unwrap().len() < 50, "rows of processes that ended are gone");
    assert_eq!(wakes.lost(), 0);
    assert!(wakes.take().unwrap().len() <= 16384);
    wakes.publish(&[]).unwrap();
    assert_eq!(wakes.row(own), None);
}
