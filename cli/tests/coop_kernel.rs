//! Cooperative polling through the kernel engine, in virtual machines: programs find their scheduler and outlive it, and bad days, on which
//! nobody else suffers and nobody gains.
//!
//! Without a set-up machine (`attune vm setup`) the tests say so and pass; where CI=true they fail.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use common::set_up;

const ATTUNE: &str = env!("CARGO_BIN_EXE_attune");

/// A folder with a program of tests/programs, linked with the library that lies beside this test.
fn folder_with(program: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("coop-{program}"));
    std::fs::create_dir_all(&folder).expect("a folder");
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
    folder
}

fn build(folder: &Path, words: &[&str]) {
    let output = Command::new(ATTUNE).current_dir(folder).arg("build").args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What a command says in a machine.
fn in_machine(folder: &Path, words: &[&str]) -> String {
    let output = Command::new(ATTUNE)
        .current_dir(folder)
        .arg("vm")
        .args(words)
        .env("ATTUNE", ATTUNE)
        .env_remove("ATTUNE_COOP")
        .env_remove("ATTUNE_VALUES")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complained.contains("has ended"), "{said}\n{complained}");
    said
}

/// One program lives through two schedulers; another is the command of a third, beside all others under `fair`; a fourth scheduler does
/// not know of cooperation.
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
    let folder = folder_with("cooperates");
    build(&folder, &["coop", "--engine", "kernel", "--cpus", "2", "-o", "coop.bpf.o"]);
    build(&folder, &["coop", "--others", "fair", "--engine", "kernel", "--cpus", "2", "-o", "both.bpf.o"]);
    build(&folder, &["fifo", "--engine", "kernel", "--cpus", "2", "-o", "fifo.bpf.o"]);
    let said = in_machine(&folder, &["--timeout", "400", "--cpus", "2", "--", "sh", "-c", GUEST]);
    let of = |who: &str| -> Vec<&str> { said.lines().filter_map(|line| line.strip_prefix(who)).collect() };
    assert_eq!(of("first: "), ["alone", "answered", "alone", "answered", "well"], "{said}");
    assert_eq!(of("command: "), ["answered", "well"], "{said}");
    assert_eq!(of("unheard: "), ["alone"], "{said}");
    assert!(!said.contains("has ended"), "{said}");
}

/// In per mille of an even share: more than this a villain does not get by its way, and less nobody is left.
const MOST: f64 = 1050.0;
const LEAST: f64 = 950.0;
/// Of the others' timers, in per mille.
const SERVED: f64 = 980.0;

/// Days of tests/programs/bad_days.c, in a machine where a run is the same each time.
fn live(days: &[&str]) {
    if !set_up() {
        return;
    }
    // Tests have a folder and a machine in common.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    let folder = folder_with("bad_days");
    build(&folder, &["coop", "--engine", "kernel", "--cpus", "1", "-o", "coop.bpf.o"]);
    let program = folder.join("bad_days");
    let program = program.to_str().expect("a path in UTF-8");
    let machine =
        ["--deterministic", "--timeout", "900", "--pack", ATTUNE, "--pack", "coop.bpf.o", "--pack", program];
    let command = ["--", ATTUNE, "run", "coop.bpf.o", "--all", "--", program, "1"];
    let said = in_machine(&folder, &[&machine[..], &command, days].concat());
    let lived: Vec<(&str, Vec<f64>)> = said
        .lines()
        .filter_map(|line| {
            let (day, figures) = line.split_once(' ')?;
            Some((day, figures.split(' ').map(|figure| figure.parse()).collect::<Result<_, _>>().ok()?))
        })
        .collect();
    let names: Vec<&str> = lived.iter().map(|(day, _)| *day).collect();
    assert_eq!(names, days, "{said}");
    assert!(said.ends_with("well\n"), "{said}");
    for (day, figures) in lived {
        let [villain, good, hog, served] = figures[..] else { panic!("{day}: {said}") };
        assert!(villain <= MOST, "{day}: the villain has gained\n{said}");
        assert!(good >= LEAST && hog >= LEAST, "{day}: somebody has lost\n{said}");
        assert!(served >= SERVED, "{day}: timers were not served\n{said}");
    }
}

#[test]
fn nobody_suffers_from_programs_that_are_killed_stopped_or_lie() {
    live(&[
        "nothing",
        "killed-in-poll",
        "stopped",
        "always-due",
        "never-due",
        "never-polls",
        "hundred-threads",
    ]);
}

#[test]
fn nobody_suffers_from_a_program_that_scribbles_into_its_page() {
    live(&["scribbles"]);
}

#[test]
fn nobody_suffers_from_a_group_below_zero() {
    live(&["scribbles-below-zero"]);
}
