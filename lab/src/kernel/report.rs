//! Shows the figures as tables, claims and a picture.

use anyhow::Result;
use serde_json::json;

use super::bench;
use super::contestant::Lines;
use super::description::Description;
use super::part::Part;
use super::place::Place;
use super::results::{Results, Row, Rows};
use crate::experiment::{Experiment, Options, Progress};
use crate::median_interval::Median;
use crate::plot;
use crate::report::{Picture, Report, Table};

impl Description {
    /// The figures alone.
    pub fn measure(&self, options: &Options, progress: Progress) -> Result<Results> {
        bench::run(self, options, progress)
    }
}

impl Experiment for Description {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn check(&self, options: &Options) -> Result<()> {
        bench::check(self, options)
    }

    fn run(&self, options: &Options, progress: Progress) -> Result<Report> {
        let results = bench::run(self, options, progress)?;
        let published = format!("Published: {}", self.published);
        let parts = self.parts.iter().zip(&results.parts);
        Ok(Report {
            tables: parts.map(|(part, rows)| table(part, rows, &results)).collect(),
            claims: (self.claims)(&results),
            pictures: picture(self, &results)?.into_iter().collect(),
            commands: results.commands.clone(),
            data: json!(results),
            ..Report::new(self.name, self.title)
                .saying(&[self.text, &[METHOD, &published]].concat())
        })
    }
}

const METHOD: &str = "Each run on one CPU is a deterministic virtual machine of its own: an \
    instruction takes a nanosecond, nothing else runs, and the same command gives the same figures \
    again. Runs of a kind differ in the machine's seed; the note below each table says what stands \
    for several runs. Baselines may have fewer and shorter runs. A run counts only if the \
    scheduler that it began under is still loaded at its end. The run cache finds an earlier run \
    by all that it was made of: programs, scheduler, kernel, words.";

fn table(part: &Part, rows: &Rows, results: &Results) -> Table {
    let mut columns = vec!["scheduler".to_owned()];
    for figure in part.figures {
        columns.push(figure.name.to_owned());
        columns.extend(figure.ratio.then(|| "ratio".to_owned()));
    }
    // The number of choices is exact only where runs are deterministic.
    let counted = part.place.is_deterministic();
    columns.extend(counted.then(|| "runs".to_owned()));
    columns.extend(counted.then(|| "choices".to_owned()));
    columns.push("lines".to_owned());
    let first = rows.rows.first();
    let cells = |row: &Row| {
        let mut cells = vec![row.name.clone()];
        for figure in part.figures {
            cells.push(cell(row.summary(figure), part.place));
            if figure.ratio {
                cells.push(cell(first.and_then(|first| row.ratio(figure, first)), part.place));
            }
        }
        cells.extend(counted.then(|| runs(part, row)));
        let choices = part.workloads.iter().find_map(|workload| row.choices(workload.name));
        cells.extend(
            counted.then(|| choices.map_or_else(String::new, |choices| choices.to_string())),
        );
        cells.push(row.lines.map_or_else(String::new, length));
        cells
    };
    let mut notes: Vec<String> = rows.rows.iter().filter_map(Row::failure).collect();
    notes.push(note(part, rows, results));
    let rows_of_cells = rows.rows.iter().map(cells).collect();
    Table { title: rows.title.to_owned(), columns, rows: rows_of_cells, notes }
}

fn note(part: &Part, rows: &Rows, results: &Results) -> String {
    let Results { kernel, qemu, .. } = results;
    let rounds = rows.rows.iter().map(Row::count).max().unwrap_or(0);
    let over_runs = match part.place {
        Place::Deterministic { .. } => {
            let worst = part.figures.iter().all(|figure| figure.at_worst);
            format!(
                "{} over the runs of the row. Choices: calls of the policy's `schedule` in the \
                 whole run of the first workload.",
                if worst { "the largest" } else { "medians" }
            )
        }
        Place::TwoCpus => format!(
            "medians of {rounds} rounds on two CPUs in real time, in brackets their 95 % \
             intervals; ratios are taken within a round."
        ),
    };
    format!(
        "Kernel {kernel}, QEMU {qemu}; {over_runs} Lines: the scheduler's text, and behind the \
         plus the library schedulers that it extends; for peers, C and Rust without shared \
         libraries; none for the kernel's own classes."
    )
}

/// The runs of each workload: how many, and how long each lasts where the lab says so.
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
    let bars = results.summaries(description.drawn);
    if bars.is_empty() {
        return Ok(None);
    }
    let svg = plot::bars(description.drawn, &bars)?;
    let title = format!("{}: {}", description.title, description.drawn);
    Ok(Some(Picture::new(title, svg)))
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
            Workload::new("one", "{seconds}").lasting(30, 10),
            Workload::new("other", "").lasting(5, 5),
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
    fn a_row_tells_how_many_runs_it_has() {
        assert_eq!(runs(&PART, &row(false, Ok(5))), "5 of 5 and 30 s");
        assert_eq!(runs(&PART, &row(true, Ok(1))), "1 of 5 and 10 s");
        assert_eq!(runs(&PART, &row(false, Err("not built"))), "-");
        const ENDLESS: Part = Part { workloads: &[Workload::new("one", "")], ..PART };
        assert_eq!(runs(&ENDLESS, &row(false, Ok(2))), "2");
    }

    #[test]
    fn a_count_of_changes_is_not_told_as_seconds() {
        const COUNTED: Part =
            Part { workloads: &[Workload::new("one", "{count}").counting(40, 6)], ..PART };
        assert_eq!(runs(&COUNTED, &row(false, Ok(2))), "2");
    }

    #[test]
    fn a_brief_run_has_its_own_time() {
        let words = |brief| PART.workloads[0].words(brief, 1).join(" ");
        assert_eq!((words(false), words(true)), ("30".to_owned(), "10".to_owned()));
        let counted = Workload::new("one", "{count}").counting(40, 6).with("--seed {seed}");
        assert_eq!(counted.words(true, 3).join(" "), "6 --seed 3");
    }
}
