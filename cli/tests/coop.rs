//! Cooperative polling through the kernel engine, in a virtual machine: programs find their scheduler, and outlive it.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::set_up;

const ATTUNE: &str = env!("CARGO_BIN_EXE_attune");

/// tests/programs/cooperates.c, linked with the library that lies beside this test.
fn program(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let library = test.parent().expect("tests lie in a folder");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("cooperates");
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-Wall", "-Werror", "-I"])
        .arg(here.join("../knowledge/coop/include"))
        .arg("-o")
        .args([&program, &here.join("tests/programs/cooperates.c")])
        .arg(library.join("libattune_coop.a"))
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn build(folder: &Path, words: &[&str]) {
    let output = Command::new(ATTUNE).current_dir(folder).arg("build").args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coop");
    std::fs::create_dir_all(&folder).expect("a folder");
    program(&folder);
    build(&folder, &["coop", "--engine", "kernel", "--cpus", "2", "-o", "coop.bpf.o"]);
    build(&folder, &["coop", "--others", "fair", "--engine", "kernel", "--cpus", "2", "-o", "both.bpf.o"]);
    build(&folder, &["fifo", "--engine", "kernel", "--cpus", "2", "-o", "fifo.bpf.o"]);
    let output = Command::new(ATTUNE)
        .current_dir(&folder)
        .args(["vm", "--timeout", "240", "--cpus", "2", "--", "sh", "-c", GUEST])
        .env("ATTUNE", ATTUNE)
        .env_remove("ATTUNE_COOP")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let of = |who: &str| -> Vec<&str> { said.lines().filter_map(|line| line.strip_prefix(who)).collect() };
    assert_eq!(of("first: "), ["alone", "answered", "alone", "answered", "well"], "{said}");
    assert_eq!(of("command: "), ["answered", "well"], "{said}");
    assert_eq!(of("unheard: "), ["alone"], "{said}");
    assert!(!said.contains("has ended"), "{said}");
}
