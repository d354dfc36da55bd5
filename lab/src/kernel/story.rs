//! The figures as a table, claims and a picture.

use anyhow::Result;
use serde_json::json;

use super::{Description, Results, Row, bench};
use crate::experiment::{Options, Progress};
use crate::plot;
use crate::report::{Picture, Report, Table};

/// Measures, judges and tells.
pub fn run(description: &Description, options: &Options, progress: Progress) -> Result<Report> {
    let results = bench::run(description, options, progress)?;
    let mut text: Vec<String> = description.text.iter().map(|paragraph| (*paragraph).to_owned()).collect();
    text.push(METHOD.to_owned());
    text.push(format!("Published: {}", description.published));
    Ok(Report {
        name: description.name.to_owned(),
        title: description.title.to_owned(),
        text,
        tables: vec![table(description, &results)],
        claims: (description.claims)(&results),
        pictures: picture(description, &results)?.into_iter().collect(),
        commands: results.commands.clone(),
        data: json!(results),
    })
}

const METHOD: &str = "Each run is a deterministic virtual machine of its own with one CPU: one instruction takes one nanosecond, nothing else runs, and \
    the same command gives the same figures again. The machine's seed changes between runs of a kind; the table has medians. A run counts \
    only if the scheduler that it began under is still loaded at its end.";

fn table(description: &Description, results: &Results) -> Table {
    let mut columns = vec!["scheduler".to_owned()];
    columns.extend(description.figures.iter().map(|figure| figure.name.to_owned()));
    columns.extend(["choices".to_owned(), "lines".to_owned()]);
    let cells = |row: &Row| {
        let mut cells = vec![row.name.clone()];
        cells.extend(
            description
                .figures
                .iter()
                .map(|figure| results.median(row, figure.name).map_or_else(|| "-".to_owned(), number)),
        );
        let first = row.runs.values().find_map(|runs| runs.as_ref().ok()?.first()?.choices);
        cells.push(first.map_or_else(String::new, |choices| choices.to_string()));
        cells.push(row.lines.map_or_else(String::new, |lines| lines.to_string()));
        cells
    };
    let reason = |row: &Row| {
        let reason = row.runs.iter().find_map(|(workload, runs)| Some((workload, runs.as_ref().err()?)))?;
        Some(format!("{}, {}: {}", row.name, reason.0, reason.1))
    };
    let mut notes: Vec<String> = results.rows.iter().filter_map(reason).collect();
    notes.push(format!(
        "Kernel {}, QEMU {}; medians of {} runs. Choices: calls of the policy's `schedule` in the first workload, its \
         beginning and end included. Lines: of the scheduler's text, without comments and empty lines; of the peers' in C \
         and Rust, without shared libraries; none: the kernel's own.",
        results.kernel,
        results.qemu,
        results.seeds.len()
    ));
    Table {
        title: description.title.to_owned(),
        columns,
        rows: results.rows.iter().map(cells).collect(),
        notes,
    }
}

fn picture(description: &Description, results: &Results) -> Result<Option<Picture>> {
    let bar = |row: &Row| Some((row.name.clone(), results.median(row, description.drawn)?));
    let bars: Vec<_> = results.rows.iter().filter_map(bar).collect();
    if bars.is_empty() {
        return Ok(None);
    }
    let svg = plot::bars(description.drawn, &bars)?;
    Ok(Some(Picture { title: format!("{}: {}", description.title, description.drawn), svg }))
}

/// Four significant digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        v if v > 0.0 => format!("{value:.4}"),
        _ => "0".to_owned(),
    }
}
