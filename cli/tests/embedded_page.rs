//! The commands of docs/embedded.md do what the page says, in its order.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use attune_embedded::firmware::{Board, available};

const PAGE: &str = include_str!("../../docs/embedded.md");

/// In CI what the tests need must be there.
fn cannot_run(missing: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
    eprintln!("not run: {missing}");
}

/// A folder in which the page's paths lead to the repository, and its program lies.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["engines", "examples"] {
        symlink(root.join(name), folder.path().join(name)).expect("a link");
    }
    let program = PAGE.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    fs::write(folder.path().join("blink.c"), program.expect("a program")).expect("written");
    folder
}

/// The page's commands between two of its sentences.
fn commands(from: &str, to: &str) -> String {
    let begin = PAGE.find(from).unwrap_or_else(|| panic!("the page lacks `{from}`"));
    let end = PAGE[begin..].find(to).unwrap_or_else(|| panic!("the page lacks `{to}`")) + begin;
    let lines = PAGE[begin..end].lines().filter_map(|line| line.strip_prefix("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

fn sh(folder: &Path, script: &str) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_attune")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(folder).env("PATH", path);
    command.output().expect("a shell")
}

#[test]
fn the_program_of_the_page_runs_on_this_machine() {
    let folder = folder();
    let output = sh(
        folder.path(),
        &commands("\n    attune build --engine embedded -o . ", "The weather station"),
    );
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("each of ATTUNE_THREADS thread records"), "{said}");
    let blinks: Vec<&str> = said.lines().filter(|line| line.contains(" at tick ")).collect();
    let expected = [
        "fast at tick 0",
        "slow at tick 0",
        "fast at tick 10",
        "slow at tick 15",
        "fast at tick 20",
        "slow at tick 30",
    ];
    assert_eq!(blinks, expected);
}

/// What the firmware of the page says that lies between two of its sentences.
fn said_on_the_emulator(from: &str, to: &str) -> String {
    let output = sh(folder().path(), &commands(from, to));
    // Without a chardev the emulator writes what the firmware says to its standard error.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn the_weather_station_of_the_page_runs_on_the_emulator() {
    if let Err(missing) = available(Board::Mps2An385) {
        return cannot_run(&missing.to_string());
    }
    let said = said_on_the_emulator("The weather station", "`attune lab run weather`");
    for word in ["counts ", "ticks ", "samples ", "refreshes "] {
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn the_web_server_of_the_page_serves_its_clients_on_the_emulator() {
    let missing = available(Board::Mps2An385).map_err(Into::into);
    if let Err(missing) = missing.and_then(|()| attune_lab::embedded::web::can_run()) {
        return cannot_run(&missing.to_string());
    }
    let said = said_on_the_emulator("The clients can run inside", "Without `-DCLIENTS=3`");
    for clients in 1..4 {
        let part = format!("clients {clients} answered 100 wrong 0 broken 0");
        assert!(said.contains(&part), "{said}");
    }
}
