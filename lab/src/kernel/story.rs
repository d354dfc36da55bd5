//! The figures as tables, claims and a picture.

use anyhow::Result;
use serde_json::json;

use super::confidence::Median;
use super::contestant::Lines;
use super::results::{Results, Row, Rows};
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
    and the same command gives the same figures again. The machine's seed changes between runs of a kind; the table has medians, of \
    so many runs as the row says: who is there to be compared with may have fewer and shorter ones. A run \
    counts only if the scheduler that it began under is still loaded at its end. Runs are kept and known again by all that they are \
    made of: programs, scheduler, kernel, words.";

fn table(part: &Part, rows: &Rows, results: &Results) -> Table {
    let mut columns = vec!["scheduler".to_owned()];
    for figure in part.figures {
        columns.push(figure.name.to_owned());
        columns.extend(figure.ratio.then(|| "ratio".to_owned()));
    }
    // Where a run is a count of what happened, so is the number of choices.
    let counted = part.place.is_deterministic();
    columns.extend(counted.then(|| "runs".to_owned()));
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
        cells.extend(counted.then(|| runs(part, row)));
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
    let medians = match part.place {
        Place::Deterministic { .. } => "medians over the runs that the row has".to_owned(),
        Place::TwoCpus => format!(
            "medians of {} rounds on two CPUs in real time, in brackets where the true ones lie with 95 % confidence, \
             ratios within a round",
            rows.rows.iter().map(Row::count).max().unwrap_or(0)
        ),
    };
    let choices = match part.place {
        Place::Deterministic { .. } => {
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

/// Of each workload: how many, and how long each lasts where the lab says so.
fn runs(part: &Part, row: &Row) -> String {
    let mut seconds: Vec<u32> =
        part.workloads.iter().filter_map(|workload| workload.lasts(row.is_brief)).collect();
    seconds.sort_unstable();
    seconds.dedup();
    let seconds: Vec<String> = seconds.iter().map(u32::to_string).collect();
    match (row.count(), seconds.as_slice()) {
        (0, _) => "-".to_owned(),
        (count, []) => count.to_string(),
        (count, seconds) => format!("{count} of {} s", seconds.join(" and ")),
    }
}

fn length(lines: Lines) -> String {
    if lines.bases > 0 { format!("{} + {}", lines.own, lines.bases) } else { lines.own.to_string() }
}

fn cell(median: Option<Median>, place: Place) -> String {
    match (median, place) {
        (None, _) => "-".to_owned(),
        (Some(median), Place::Deterministic { .. }) => number(median.value),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Contestant, Run, Workload};
    use std::collections::BTreeMap;

    const PART: Part = Part {
        title: "",
        place: Place::ONE_CPU,
        contestants: Vec::new,
        workloads: &[
            Workload::new("one", &["{seconds}"]).lasting(30, 10),
            Workload::new("other", &[]).lasting(5, 5),
        ],
        figures: &[],
    };

    fn row(is_brief: bool, runs: Result<u64, &str>) -> Row {
        let run = |seed| (seed, Run { figures: json!({}), choices: None });
        let runs = runs.map(|runs| (1..=runs).map(run).collect()).map_err(str::to_owned);
        let name = Contestant::ours("coop").name;
        Row { name, is_peer: false, lines: None, is_brief, runs: BTreeMap::from([("one", runs)]) }
    }

    #[test]
    fn a_row_says_how_many_runs_stand_behind_it() {
        assert_eq!(runs(&PART, &row(false, Ok(5))), "5 of 5 and 30 s");
        assert_eq!(runs(&PART, &row(true, Ok(1))), "1 of 5 and 10 s");
        assert_eq!(runs(&PART, &row(false, Err("not built"))), "-");
        const ENDLESS: Part = Part { workloads: &[Workload::new("one", &[])], ..PART };
        assert_eq!(runs(&ENDLESS, &row(false, Ok(2))), "2");
    }

    #[test]
    fn a_brief_run_has_its_own_time() {
        let words = |brief| PART.workloads[0].words(brief).collect::<Vec<_>>();
        assert_eq!((words(false), words(true)), (vec!["30".to_owned()], vec!["10".to_owned()]));
    }
}
