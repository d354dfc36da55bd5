//! docs/schedulers.md lists the library as it is.

use std::path::Path;
use std::sync::Arc;

use attune_language::ir::{Program, Storage};
use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::{Ending, Options, Workload, simulate};

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedulers.md");
    std::fs::read_to_string(page).unwrap()
}

fn program(name: &Path) -> (Program, attune_language::source::SourceMap) {
    let mut opened = attune_schedulers::open(name, &[]).unwrap();
    let checked = attune_language::check(&opened.source, &mut opened.loader, &Default::default());
    let diagnostics = checked.diagnostics;
    (checked.program.unwrap_or_else(|| panic!("{diagnostics:?}")), checked.sources)
}

/// The words in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_scheduler_has_a_row_with_imports_that_it_has() {
    let page = page();
    let table = page.split("## What every scheduler").next().unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let listed: Vec<&str> = rows.iter().map(|row| quoted(row[0])[0]).collect();
    let library: Vec<&str> = attune_schedulers::LIBRARY
        .iter()
        .filter(|entry| !entry.is_partial())
        .map(|entry| entry.name)
        .collect();
    let (mut sorted, mut expected) = (listed.clone(), library.clone());
    sorted.sort();
    expected.sort();
    assert_eq!(sorted, expected);
    for row in rows {
        let name = quoted(row[0])[0];
        let (program, _) = program(Path::new(name));
        for import in quoted(row[2]) {
            let of_threads = program.attributes.values().any(|a| a.import && a.name == import);
            let of_all = program
                .globals
                .values()
                .any(|global| global.storage == Storage::Import && global.name == import);
            assert!(of_threads || of_all, "{name} has no import {import}");
        }
    }
}

#[test]
fn the_smallest_scheduler_runs() {
    let page = page();
    let text = page.split("```sched\n").nth(1).unwrap().split("```").next().unwrap();
    let file = std::env::temp_dir().join(format!("mine-{}.sched", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let (program, sources) = program(&file);
    std::fs::remove_file(&file).unwrap();
    let options = interpreter::Options::default();
    let mut policy = Interpreter::new(Arc::new(program), &sources, options).unwrap();
    let workload = "[[thread]]\nname = 'a'\ncount = 3\ndo = [{ compute = '1ms' }]";
    let workload = Workload::from_toml(workload, "w.toml").unwrap();
    let outcome = simulate(&mut policy, &workload, &Options::default()).unwrap();
    assert_eq!((outcome.ending(), outcome.elapsed()), (Ending::AllEnded, 3_000_000));
}
