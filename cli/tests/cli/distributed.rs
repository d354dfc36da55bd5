//! The commands of docs/distributed.md that simulate do what the page says; `cluster` runs those
//! of one machine.

use crate::support::{Folder, err, out, status};
use std::os::unix::fs::symlink;
use std::path::Path;

const PAGE: &str = include_str!("../../../docs/distributed.md");

fn folder(test: &str) -> Folder {
    let folder = Folder::new(test);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    symlink(examples, folder.0.join("examples")).unwrap();
    folder
}

#[test]
fn the_commands_of_the_page_run() {
    let folder = folder("distributed_page");
    let lines = PAGE.lines().filter_map(|line| line.strip_prefix("    attune "));
    let simulates = |words: &Vec<&str>| matches!(words[0], "check" | "sim");
    let commands = lines.map(|line| line.split_whitespace().collect());
    let commands: Vec<Vec<&str>> = commands.filter(simulates).collect();
    assert!(commands.len() >= 7, "the commands were not found");
    for words in commands {
        let output = folder.attune(&words);
        assert_eq!(status(&output), 0, "{words:?}: {}", err(&output));
        let said = out(&output);
        match (words[0], words.contains(&"--json")) {
            ("check", _) => assert!(said.contains("nodes of family process"), "{said}"),
            (_, true) => {
                let parsed: serde_json::Value = serde_json::from_str(said).unwrap();
                assert_eq!(parsed["master"]["arrivals"], 4, "{said}");
            }
            _ => assert!(said.contains("arrivals, 0 departures"), "{said}"),
        }
    }
}

#[test]
fn a_cluster_is_written_as_a_page_and_as_a_trace() {
    let folder = folder("distributed_files");
    let words = [
        "sim",
        "examples/webapp/webapp.sched",
        "--workload",
        "examples/webapp/webapp.toml",
        "--report",
        "r.html",
        "--trace",
        "t.pftrace",
    ];
    let output = folder.attune(&words);
    assert_eq!(status(&output), 0, "{}", err(&output));
    assert!(folder.text("r.html").contains("<h2>database</h2>"));
    let trace = folder.trace("t.pftrace");
    assert!(trace.of_group("web: CPUs").any(|cpu| !cpu.slices.is_empty()));
    assert!(trace.of_group("database: threads").any(|thread| !thread.slices.is_empty()));
}

#[test]
fn a_workload_that_does_not_fit_is_refused() {
    let folder = folder("distributed_refused");
    let (pool, workload) = ("examples/pool/pool.sched", "examples/pool/pool.toml");
    folder.refused(&["sim", pool, "--workload", "hogs"], "has a [[node]]");
    folder.refused(&["sim", "fair", "--workload", workload], "no distributed scheduler");
    folder.refused(&["sim", pool, "--workload", workload, "--cpus", "2"], "each [[node]]");
    folder.refused(&["sim", pool, "--workload", workload, "--set", "x=1"], "they share r, n");
}
