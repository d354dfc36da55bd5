//! The figures as tables, claims and a picture.

use anyhow::Result;
use serde_json::json;

use super::bench::{Results, Row, Rows};
use super::confidence::Median;
use super::contestant::Lines;
use super::{Description, Part, Place, bench};
use crate::experiment::{Options, Progress};
use crate::plot;
use crate::report::{Picture, Report, Table};

/// Measures, judges and tells.
pub fn run(description: &Description, options: &Options, progress: Progress) -> Result<Report> {
    let results = bench::run(description, options, progress)?;
    let mut text: Vec<String> = description.text.iter().map(|paragraph| (*paragraph).to_owned()).collect();
    text.push(METHOD.to_owned());
    text.push(format!("Published: {}", description.published));
    let parts = description.parts.iter().zip(&results.parts);
    Ok(Report {
        name: description.name.to_owned(),
        title: description.title.to_owned(),
        text,
        tables: parts.map(|(part, rows)| table(part, rows, &results)).collect(),
        claims: (description.claims)(&results),
        pictures: picture(description, &results)?.into_iter().collect(),
        commands: results.commands.clone(),
        data: json!(results),
    })
}

const METHOD: &str = "Each run on one CPU is a deterministic virtual machine of its own: one instruction takes one nanosecond, nothing else runs, \
    and the same command gives the same figures again. The machine's seed changes between runs of a kind; the table has medians. A run \
    counts only if the scheduler that it began under is still loaded at its end. Runs are kept and known again by all that they are \
    made of: programs, scheduler, kernel, words.";

fn table(part: &Part, rows: &Rows, results: &Results) -> Table {
    let mut columns = vec!["scheduler".to_owned()];
    for figure in part.figures {
        columns.push(figure.name.to_owned());
        columns.extend(figure.ratio.then(|| "ratio".to_owned()));
    }
    // Where a run is a count of what happened, so is the number of choices.
    let counted = part.place == Place::Deterministic;
    columns.extend(counted.then(|| "choices".to_owned()));
    columns.push("lines".to_owned());
    let first = rows.rows.first();
    let cells = |row: &Row| {
        let mut cells = vec![row.name.clone()];
        for figure in part.figures {
            cells.push(cell(row.median(figure), part.place));
            if figure.ratio {
                cells.push(cell(first.and_then(|first| row.ratio(figure, first)), part.place));
            }
        }
        let choices = part.workloads.iter().find_map(|workload| row.choices(workload.name));
        cells.extend(counted.then(|| choices.map_or_else(String::new, |choices| choices.to_string())));
        cells.push(row.lines.map_or_else(String::new, length));
        cells
    };
    let reason = |row: &Row| {
        let reason = row.runs.iter().find_map(|(workload, runs)| Some((workload, runs.as_ref().err()?)))?;
        Some(format!("{}, {}: {}", row.name, reason.0, reason.1))
    };
    let mut notes: Vec<String> = rows.rows.iter().filter_map(reason).collect();
    notes.push(note(part, rows, results));
    Table { title: rows.title.to_owned(), columns, rows: rows.rows.iter().map(cells).collect(), notes }
}

fn note(part: &Part, rows: &Rows, results: &Results) -> String {
    let run = rows.rows.iter().find_map(|row| row.runs.values().find_map(|runs| runs.as_ref().ok()));
    let runs = run.map_or(0, Vec::len);
    let medians = match part.place {
        Place::Deterministic => format!("medians of {runs} runs"),
        Place::TwoCpus => format!(
            "medians of {runs} rounds on two CPUs in real time, in brackets where the true ones lie with 95 % confidence, \
             ratios within a round"
        ),
    };
    let choices = match part.place {
        Place::Deterministic => {
            " Choices: calls of the policy's `schedule` in the whole run of the first workload."
        }
        Place::TwoCpus => "",
    };
    format!(
        "Kernel {}, QEMU {}; {medians}.{choices} Lines: of the scheduler's text, and behind the plus of the library schedulers that it \
         extends; of the peers' in C and Rust, without shared libraries; none: the kernel's own.",
        results.kernel, results.qemu
    )
}

fn length(lines: Lines) -> String {
    if lines.bases > 0 { format!("{} + {}", lines.own, lines.bases) } else { lines.own.to_string() }
}

fn cell(median: Option<Median>, place: Place) -> String {
    match (median, place) {
        (None, _) => "-".to_owned(),
        (Some(median), Place::Deterministic) => number(median.value),
        (Some(median), Place::TwoCpus) => {
            format!("{} [{} {}]", number(median.value), number(median.low), number(median.high))
        }
    }
}

fn picture(description: &Description, results: &Results) -> Result<Option<Picture>> {
    let bar = |row: &Row| Some((row.name.clone(), results.median(&row.name, description.drawn)?));
    let bars: Vec<_> = results.rows(description.drawn).iter().filter_map(bar).collect();
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
