//! More than two schedulers share a machine, and objects that follow each other know whose threads
//! are whose. What happens in the machine is a test of this program too, which runs itself there.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use attune_backend_c::Policy;
use attune_kernel::{Compiler, Division, Image, Layout, Members, Running, Settings};
use attune_language::engine::Engine;
use attune_language::engine::event::Event;

use super::common::machine::{SHORT, folder, hog, in_machine, in_quiet_machine, strip};
use super::common::set_up;

/// An object of these library schedulers.
fn build(schedulers: &[&str], object: &Path) {
    let checked: Vec<_> = schedulers
        .iter()
        .map(|scheduler| {
            let mut opened = attune_schedulers::open(Path::new(scheduler), &[]).unwrap();
            attune_language::check(&opened.source, &mut opened.loader, &Default::default())
        })
        .collect();
    let policies: Vec<_> = checked
        .iter()
        .map(|checked| Policy {
            program: checked.program.as_ref().unwrap(),
            verdicts: &checked.engine(Engine::Kernel).verdicts,
            sources: &checked.sources,
        })
        .collect();
    let text = attune_kernel::shared_source(&policies).unwrap();
    let compiler = Compiler::find().unwrap();
    attune_kernel::compile(&compiler, &text, object, 2, 1, Layout::Usual).unwrap();
}

/// The numbers behind a label.
pub fn numbers(said: &str, label: &str) -> Vec<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix(&format!("{label}:")));
    let line = line.unwrap_or_else(|| panic!("{label}: {said}"));
    line.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

#[test]
fn three_policies_share_a_cpu_and_threads_keep_theirs_when_objects_change() {
    if !set_up() {
        return;
    }
    let folder = folder("several");
    hog(&folder);
    build(&[SHORT, SHORT], &folder.join("two.bpf.o"));
    build(&["edf", SHORT, SHORT], &folder.join("three.bpf.o"));
    strip(&std::env::current_exe().unwrap(), &folder.join("tests"));
    let said = in_quiet_machine(
        &folder,
        1,
        &["tests", "hog", "two.bpf.o", "three.bpf.o"],
        "./tests --exact several::inside --ignored --nocapture",
    );
    // A hog for each, parts 2 to 3 to 1; one sleeps; two, of which one is a command's, at 1 to 1.
    for (label, expected) in [
        ("two", vec![50.0, 50.0]),
        ("three", vec![33.3, 50.0, 16.7]),
        ("one sleeps", vec![0.0, 75.0, 25.0]),
        ("two again", vec![50.0, 50.0]),
    ] {
        let parts = numbers(&said, label);
        assert_eq!(parts.len(), expected.len(), "{label}: {said}");
        for (part, expected) in parts.iter().zip(&expected) {
            assert!((part - expected).abs() < 1.0, "{label}: {parts:?}\n{said}");
        }
    }
    // The one that the first object started is the first one's under both; the other one only
    // under the second.
    assert_eq!(numbers(&said, "threads of three"), [1.0, 1.0], "{said}");
    assert_eq!(numbers(&said, "a child born later"), [1.0], "{said}");
    assert!(said.contains("a role: command2.quantum is set"), "{said}");
    // An idle CPU sleeps. It looked at its last slice some 15 000 times a second.
    let timers = numbers(&said, "timers while nothing runs")[0];
    assert!(timers < 500.0, "{said}");
}

#[test]
fn the_verifier_takes_eight_large_policies_at_once() {
    if !set_up() {
        return;
    }
    let folder = folder("eight");
    build(&["desktop"; 8], &folder.join("desktop.bpf.o"));
    let script = "$attune check --engine kernel --load desktop.bpf.o";
    let said = in_machine(&folder, 1, script);
    assert!(said.contains("the kernel takes it"), "{said}");
}

pub fn image(object: &str) -> Image {
    Image::read(std::fs::read(object).unwrap()).unwrap()
}

fn settings(shares: &[u32], runs: &[u32], map: Option<Arc<OwnedFd>>) -> Settings {
    Settings {
        seed: 0,
        cpus: 1,
        partial: false,
        shares: shares.to_vec(),
        members: Members { runs: runs.to_vec(), map },
        timeout_ms: 30_000,
        strict: false,
        implicit: false,
        division: Division::whole(1),
    }
}

fn start_hog() -> Child {
    Command::new("./hog").spawn().unwrap()
}

/// The parts that the policies had for a second, in per cent.
fn parts(running: &Running, label: &str) {
    let ran = || -> Vec<f64> {
        let policies = running.statistics().policies;
        policies.iter().map(|policy| policy.ran.as_secs_f64()).collect()
    };
    sleep(Duration::from_millis(300));
    let before = ran();
    sleep(Duration::from_secs(1));
    let ran: Vec<f64> = ran().iter().zip(&before).map(|(now, before)| now - before).collect();
    let all: f64 = ran.iter().sum();
    let parts: Vec<String> = ran.iter().map(|ran| format!("{:.2}", 100.0 * ran / all)).collect();
    println!("\n{label}: {}", parts.join(" "));
}

/// How many threads the policy has met.
fn met(running: &Running, policy: usize) -> u64 {
    let calls = &running.statistics().policies[policy].calls;
    calls.iter().filter(|(event, _)| *event == Event::NewThread).map(|(_, count)| count).sum()
}

#[test]
#[ignore = "runs in the virtual machine, where the test above starts it"]
fn inside() {
    let mut first = attune_kernel::start(image("two.bpf.o"), &settings(&[], &[4], None)).unwrap();
    let mut older = first.as_command(start_hog).unwrap();
    let mut other = start_hog();
    parts(&first, "two");

    // Another process has the second object: both lie at the same address. It inherits the map.
    let map = first.members().unwrap();
    // SAFETY: changes a flag of a descriptor that this test owns.
    assert_eq!(unsafe { libc::fcntl(map.as_raw_fd(), libc::F_SETFD, 0) }, 0);
    let own = std::env::current_exe().unwrap();
    let second = Command::new(own)
        .args(["--exact", "several::inside_beside", "--ignored", "--nocapture"])
        .env(MAP, map.as_raw_fd().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut second = second.unwrap();
    for line in BufReader::new(second.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        println!("{line}");
        if line == VERIFIED {
            first.lend();
            second.stdin.take().unwrap().write_all(b"\n").unwrap();
        }
    }
    assert!(second.wait().unwrap().success());
    first.reload().unwrap();
    parts(&first, "two again");
    let before = met(&first, 0);
    let mut later = first.as_command(start_hog).unwrap();
    sleep(Duration::from_millis(300));
    println!("\na child born later: {}", met(&first, 0) - before);
    for child in [&mut older, &mut other, &mut later] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = first.statistics().timers;
    sleep(Duration::from_secs(1));
    println!("\ntimers while nothing runs: {}", first.statistics().timers - before);
    first.stop();
}

/// The second object is loaded while the first one schedules, and takes over when it may.
#[test]
#[ignore = "runs in the virtual machine, where the test above starts it"]
fn inside_beside() {
    let map = std::env::var(MAP).unwrap().parse().unwrap();
    // SAFETY: the test's own process has opened it for this one, which uses it nowhere else.
    let map = unsafe { OwnedFd::from_raw_fd(map) };
    let three = settings(&[2, 3, 1], &[7, 4], Some(Arc::new(map)));
    let second = attune_kernel::prepare(image("three.bpf.o"), &three).unwrap();
    println!("\n{VERIFIED}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let second = second.attach().unwrap();
    let mut newer = second.as_command(start_hog).unwrap();
    parts(&second, "three");
    println!("\nthreads of three: {} {}", met(&second, 0), met(&second, 1));
    second.set(&[("command2.quantum".to_owned(), "7ms".to_owned())]).unwrap();
    let set = second.tunables().into_iter().find(|it| {
        it.role.as_deref() == Some("command2") && it.name == "quantum" && it.value == 7_000_000
    });
    println!("\na role: {}", set.map_or("lost", |_| "command2.quantum is set"));
    newer.kill().unwrap();
    newer.wait().unwrap();
    parts(&second, "one sleeps");
    second.stop();
}

/// The descriptor of the map that the first object has made.
const MAP: &str = "ATTUNE_TEST_MAP";
const VERIFIED: &str = "the second object is verified";
