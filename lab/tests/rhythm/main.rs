//! The experiments about rhythm that need nothing but a processor: they run, and what does not
//! depend on its speed holds.

use attune_lab::experiment::Options;
use attune_lab::registry::find;
use attune_lab::report::Report;

fn run(name: &str) -> Report {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let options = Options { quick: true, fresh: false, programs: folder.clone(), folder };
    let names = [name.to_owned()];
    find(&names).unwrap()[0].run(&options, &|_| {}).unwrap()
}

#[test]
fn bandwidth_is_as_published() {
    assert!(run("bandwidth").holds(), "{}", run("bandwidth").to_text());
}

#[test]
fn controllers_are_told_apart() {
    let report = run("controllers");
    let missed: Vec<&str> = report
        .claims
        .iter()
        .filter(|claim| !claim.holds())
        .map(|claim| claim.claim.as_str())
        .collect();
    // The bound on the CPU time given by used is missed, and the report says so.
    assert!(missed.iter().all(|claim| claim.contains("1.15 times")), "{}", report.to_text());
}

#[test]
fn longer_windows_are_right_more_often_and_ours_more_than_the_published() {
    let report = run("period-window");
    let right = |window: f64, program: &str, method: &str| {
        let rows = report.data.as_array().unwrap();
        let row = rows.iter().find(|row| {
            row["window_s"] == window && row["program"] == program && row["method"] == method
        });
        row.unwrap()["right_percent"].as_f64().unwrap()
    };
    for program in ["idle", "loaded"] {
        assert!(
            right(2.0, program, "evidence") >= right(0.2, program, "evidence"),
            "{}",
            report.to_text()
        );
        assert!(
            right(2.0, program, "evidence") > right(2.0, program, "spectrum-2010"),
            "{}",
            report.to_text()
        );
    }
    assert!(report.pictures[0].svg.starts_with("<svg"));
}

#[test]
fn costs_are_measured() {
    let report = run("period-cost");
    // A longer window has more events, so its analysis is never free.
    let rows = report.data.as_array().unwrap();
    let events = |row: &serde_json::Value| row["events"].as_u64().unwrap();
    assert_eq!(rows.len(), 25, "{}", report.to_text());
    for windows in rows.chunks(5) {
        assert!(windows.is_sorted_by_key(events) && events(&windows[4]) > 4 * events(&windows[0]));
        assert!(windows.iter().all(|row| row["cpu_ms"].as_f64().unwrap() > 0.0));
    }
}
