//! Cooperative polling through the kernel engine, in virtual machines: programs find their
//! scheduler and outlive it, and bad days, on which nobody else suffers and nobody gains.
//!
//! Without a set-up machine (`attune vm setup`) the tests say so and pass; where CI=true they fail.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{self, set_up};
use crate::support::ATTUNE;

/// A test's folder, with these programs of tests/programs.
fn folder_with(name: &str, programs: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("coop-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    programs.iter().for_each(|program| compile(program, &folder));
    folder
}

/// Links it with the library that lies beside this test.
fn compile(program: &str, folder: &Path) {
    let test = std::env::current_exe().expect("the test's own path");
    let library = test.parent().expect("tests lie in a folder");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-I"])
        .arg(here.join("../knowledge/coop/include"))
        .arg("-o")
        .args([&folder.join(program), &here.join(format!("tests/programs/{program}.c"))])
        .arg(library.join("libattune_coop.a"))
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn build(folder: &Path, words: &[&str]) {
    let output =
        Command::new(ATTUNE).current_dir(folder).arg("build").args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn machine(folder: &Path, words: &[&str]) -> Command {
    let mut machine = Command::new(ATTUNE);
    machine
        .current_dir(folder)
        .arg("vm")
        .args(words)
        .env("ATTUNE", ATTUNE)
        .env_remove("ATTUNE_COOP")
        .env_remove("ATTUNE_VALUES");
    machine
}

/// What a command says in a machine.
fn in_machine(folder: &Path, words: &[&str]) -> String {
    let output = common::output(&mut machine(folder, words));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complained.contains("has ended"), "{said}\n{complained}");
    said
}

/// One program lives through two schedulers; another is the command of a third, beside all others
/// under `fair`; a fourth scheduler does not know of cooperation.
const GUEST: &str = r#"exec 2>&1
./cooperates 2 > first & first=$!
sleep 1
"$ATTUNE" run coop.bpf.o --all -- sleep 3
sleep 1
"$ATTUNE" run coop.bpf.o --all -- sleep 3
wait $first; sed 's/^/first: /' first
"$ATTUNE" run both.bpf.o -- sh -c './cooperates 1 auto | sed "s/^/command: /"'
"$ATTUNE" run fifo.bpf.o --all -- timeout 2 ./cooperates 1 auto | sed 's/^/unheard: /'
"#;

#[test]
fn programs_find_their_scheduler_and_outlive_it() {
    if !set_up() {
        return;
    }
    let folder = folder_with("cooperates", &["cooperates"]);
    build(&folder, &["coop", "--engine", "kernel", "--cpus", "2", "-o", "coop.bpf.o"]);
    build(
        &folder,
        &["coop", "--others", "fair", "--engine", "kernel", "--cpus", "2", "-o", "both.bpf.o"],
    );
    build(&folder, &["fifo", "--engine", "kernel", "--cpus", "2", "-o", "fifo.bpf.o"]);
    let said = in_machine(&folder, &["--timeout", "900", "--cpus", "2", "--", "sh", "-c", GUEST]);
    let of = |who: &str| -> Vec<&str> {
        said.lines().filter_map(|line| line.strip_prefix(who)).collect()
    };
    assert_eq!(of("first: "), ["alone", "answered", "alone", "answered", "well"], "{said}");
    assert_eq!(of("command: "), ["answered", "well"], "{said}");
    assert_eq!(of("unheard: "), ["alone"], "{said}");
    assert!(!said.contains("has ended"), "{said}");
}

/// In per mille of an even share: a villain gets at most this much, and each other at least this.
const MOST: f64 = 1050.0;
const LEAST: f64 = 950.0;
/// Bounds for the others' timers, in per mille: those served, and those of them served in time.
const SERVED: f64 = 980.0;
const IN_TIME: f64 = 980.0;

/// What a day was like, in per mille: see tests/programs/bad_days.c.
struct Day {
    name: String,
    villain: f64,
    good: f64,
    hog: f64,
    served: f64,
    in_time: f64,
}

impl Day {
    fn read(line: &str) -> Option<Day> {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let figures: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [villain, good, hog, served, in_time] = figures[..] else { return None };
        Some(Day { name, villain, good, hog, served, in_time })
    }
}

/// Days of tests/programs/bad_days.c, in a machine where a run is the same each time: under `coop`,
/// and before that those of programs that cooperate through the transport `shared`, under the
/// kernel's own class.
fn live(days: &[&str], shared: &[&str]) {
    if !set_up() {
        return;
    }
    // Tests have a folder and a machine in common.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    let folder = folder_with("bad_days", &["bad_days"]);
    build(&folder, &["coop", "--engine", "kernel", "--cpus", "1", "-o", "coop.bpf.o"]);
    let program = folder.join("bad_days");
    let program = program.to_str().expect("a path in UTF-8");
    let machine = ["--deterministic", "--timeout", "900", "--pack", ATTUNE, "--pack", "coop.bpf.o"];
    let words = ["--pack", program, "--pack", "/bin/sh", "--", "/bin/sh", "-c"];
    let script = format!(
        "{program} shared 1 {} && exec {ATTUNE} run coop.bpf.o --all -- {program} kernel 1 {}",
        shared.join(" "),
        days.join(" ")
    );
    let said = in_machine(&folder, &[&machine[..], &words, &[&script]].concat());
    let lived: Vec<Day> = said.lines().filter_map(Day::read).collect();
    let names: Vec<&str> = lived.iter().map(|day| day.name.as_str()).collect();
    assert_eq!(names, [shared, days].concat(), "{said}");
    assert!(said.ends_with("well\n"), "{said}");
    for Day { name, villain, good, hog, served, in_time } in lived {
        assert!(villain <= MOST, "{name}: the villain has gained\n{said}");
        assert!(good >= LEAST && hog >= LEAST, "{name}: somebody has lost\n{said}");
        assert!(served >= SERVED, "{name}: timers were not served\n{said}");
        assert!(in_time >= IN_TIME, "{name}: timers were late\n{said}");
    }
}

/// Villains; then others have all the scheduler's pages, the machine's clock goes forwards and back
/// by an hour, and all are stopped at once.
#[test]
fn nobody_suffers_on_bad_days() {
    let lies = ["always-due", "never-due", "never-polls", "hundred-threads"];
    let hours = ["clock-steps", "all-pages-taken", "all-stopped"];
    live(
        &[&["nothing", "killed-in-poll", "stopped"], &lies[..], &hours].concat(),
        &["clock-steps", "all-stopped"],
    );
}

#[test]
fn nobody_suffers_from_a_program_that_scribbles_into_its_page() {
    live(&["scribbles"], &[]);
}

#[test]
fn nobody_suffers_from_a_group_below_zero() {
    live(&["scribbles-below-zero"], &[]);
}

/// How often a day is lived at most, until it was coarsely well: the time of these machines is a
/// busy host's, and a fault that comes each time fails all of them.
const TRIES: usize = 3;

fn once_coarsely_well(mut day: impl FnMut() -> String) {
    let mut lived = String::new();
    let well = (0..TRIES).any(|_| {
        let said = day();
        lived += &said;
        let day = said.lines().find_map(Day::read).expect("a day");
        day.good >= 300.0 && day.hog >= 300.0 && day.served >= 300.0
    });
    assert!(well, "{lived}");
}

/// A scheduler comes and goes while the programs run, and another comes.
#[test]
fn after_a_restart_of_the_scheduler_all_goes_on() {
    if !set_up() {
        return;
    }
    let folder = folder_with("restarted", &["bad_days"]);
    build(&folder, &["coop", "--engine", "kernel", "--cpus", "1", "-o", "coop.bpf.o"]);
    let machine =
        ["--timeout", "900", "--cpus", "1", "--", "./bad_days", "kernel", "1", "restarted", "--"];
    let run = [ATTUNE, "run", "coop.bpf.o", "--all", "--timeout", "30000", "--"];
    once_coarsely_well(|| in_machine(&folder, &[&machine[..], &run].concat()));
}

/// The emulator of a machine.
fn emulator(vm: &Child) -> i32 {
    let is_one = |&process: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
        name.is_ok_and(|name| name.starts_with("qemu"))
    };
    let emulator = attune_tracer::descendants(vm.id()).into_iter().find(is_one);
    i32::try_from(emulator.expect("an emulator")).expect("a process")
}

/// The whole machine stands still for two seconds and its clock goes on.
fn stands_still_under(scheduler: &str) {
    if !set_up() {
        return;
    }
    let folder = folder_with(&format!("stood-still-{scheduler}"), &["bad_days"]);
    build(&folder, &[scheduler, "--engine", "kernel", "--cpus", "1", "-o", "its.bpf.o"]);
    once_coarsely_well(|| stood_still(&folder));
}

/// What was said on such a day.
fn stood_still(folder: &Path) -> String {
    let machine_words = ["--timeout", "900", "--cpus", "1", "--"];
    let run = [ATTUNE, "run", "its.bpf.o", "--all", "--timeout", "30000", "--"];
    let day = ["./bad_days", "kernel", "1", "machine-stopped"];
    let mut vm = machine(folder, &[&machine_words[..], &run, &day].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = String::new();
    for line in BufReader::new(vm.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("UTF-8");
        if line == "stand still" {
            let emulator = emulator(&vm);
            // SAFETY: no memory is involved; the number is that of the machine's child, which waits
            // for it and has not seen it end.
            unsafe { libc::kill(emulator, libc::SIGSTOP) };
            sleep(Duration::from_secs(2));
            // SAFETY: as above; a stopped process does not end.
            unsafe { libc::kill(emulator, libc::SIGCONT) };
        }
        said += &line;
        said += "\n";
    }
    let output = vm.wait_with_output().expect("it ends");
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complained.contains("has ended"), "{said}\n{complained}");
    assert!(said.contains("stood still\n"), "{said}");
    said
}

/// No timer is lost.
#[test]
fn after_the_machine_stood_still_all_goes_on() {
    stands_still_under("coop");
}

/// Programs that would cooperate find nobody who listens.
#[test]
fn after_the_machine_stood_still_all_goes_on_under_fair_too() {
    stands_still_under("fair");
}
