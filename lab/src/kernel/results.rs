//! Summarises measurements: medians, the worst, ratios.

use std::collections::BTreeMap;

use serde::Serialize;

use super::contestant::Lines;
use super::machine::Run;
use super::part::{Figure, Part};
use crate::median_interval::{self, Median};

/// All that was measured.
#[derive(Serialize)]
pub struct Results {
    pub kernel: String,
    pub qemu: String,
    pub seeds: Vec<u64>,
    /// In the order of the description's parts.
    pub parts: Vec<Rows>,
    pub commands: Vec<String>,
    #[serde(skip)]
    pub description: &'static [Part],
}

/// One table.
#[derive(Serialize)]
pub struct Rows {
    pub title: &'static str,
    /// In the order of the contestants.
    pub rows: Vec<Row>,
}

/// One contestant's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub is_peer: bool,
    /// The scheduler's text; None: a class of the kernel.
    pub lines: Option<Lines>,
    /// A baseline, with fewer and shorter runs
    /// ([`Contestant::briefly`](super::Contestant::briefly)).
    pub is_brief: bool,
    /// By workload, then by seed or round. Err: why it was not measured.
    pub runs: BTreeMap<&'static str, Result<BTreeMap<u64, Run>, String>>,
}

impl Row {
    /// A figure of each run, by seed or round. None: it was not measured.
    fn values(&self, figure: &Figure) -> Option<BTreeMap<u64, f64>> {
        let runs = self.runs.get(figure.workload)?.as_ref().ok()?;
        let value = |run: &Run| Some(run.figures.pointer(figure.pointer)?.as_f64()? / figure.unit);
        runs.iter().map(|(seed, run)| Some((*seed, value(run)?))).collect()
    }

    pub fn median(&self, figure: &Figure) -> Option<Median> {
        median_interval::of(&self.values(figure)?.into_values().collect::<Vec<_>>())
    }

    /// What stands for all runs: the median, or the largest of a figure that counts at its worst.
    pub fn summary(&self, figure: &Figure) -> Option<Median> {
        if !figure.at_worst {
            return self.median(figure);
        }
        let worst = self.values(figure)?.into_values().max_by(f64::total_cmp)?;
        Some(Median { value: worst, low: worst, high: worst })
    }

    /// The median of the ratios to another row's runs of the same seeds or rounds. Compares only
    /// the seeds that both rows have. None: not measured, or no common seed.
    pub fn ratio(&self, figure: &Figure, other: &Row) -> Option<Median> {
        let (own, other) = (self.values(figure)?, other.values(figure)?);
        let pairs = own.iter().filter_map(|(seed, own)| Some(own / other.get(seed)?));
        median_interval::of(&pairs.collect::<Vec<_>>())
    }

    /// The number of runs behind each figure; the least, should workloads differ.
    pub fn count(&self) -> usize {
        self.runs.values().filter_map(|runs| Some(runs.as_ref().ok()?.len())).min().unwrap_or(0)
    }

    /// Why a workload of this row was not measured.
    pub fn failure(&self) -> Option<String> {
        let failed = |(workload, runs): (&&str, &Result<_, String>)| {
            Some(format!("{}, {workload}: {}", self.name, runs.as_ref().err()?))
        };
        self.runs.iter().find_map(failed)
    }

    /// How often the policy chose in the first run of a workload.
    pub fn choices(&self, workload: &str) -> Option<u64> {
        self.runs.get(workload)?.as_ref().ok()?.values().next()?.choices
    }
}

impl Results {
    fn part_of(&self, figure: &str) -> Option<(&Rows, &Figure)> {
        let parts = self.description.iter().zip(&self.parts);
        parts.into_iter().find_map(|(part, rows)| {
            Some((rows, part.figures.iter().find(|known| known.name == figure)?))
        })
    }

    /// Why rows were not measured.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.parts.iter().flat_map(|part| &part.rows).filter_map(Row::failure)
    }

    /// The rows of the table that has the figure.
    pub fn rows(&self, figure: &str) -> &[Row] {
        self.part_of(figure).map_or(&[], |(part, _)| &part.rows)
    }

    fn row(&self, contestant: &str, figure: &str) -> Option<(&Row, &Rows, &Figure)> {
        let (part, figure) = self.part_of(figure)?;
        Some((part.rows.iter().find(|row| row.name == contestant)?, part, figure))
    }

    /// A figure's median. None: it was not measured.
    pub fn median(&self, contestant: &str, figure: &str) -> Option<f64> {
        Some(self.interval(contestant, figure)?.value)
    }

    /// The same with its confidence interval.
    pub fn interval(&self, contestant: &str, figure: &str) -> Option<Median> {
        let (row, _, figure) = self.row(contestant, figure)?;
        row.median(figure)
    }

    /// Contestants with a figure's summary; without those of which it was not measured.
    pub fn summaries(&self, figure: &str) -> Vec<(String, f64)> {
        let Some((part, figure)) = self.part_of(figure) else { return vec![] };
        let summary = |row: &Row| Some((row.name.clone(), row.summary(figure)?.value));
        part.rows.iter().filter_map(summary).collect()
    }

    /// A figure of each run, by seed or round. None: it was not measured.
    fn each(&self, contestant: &str, figure: &str) -> Option<BTreeMap<u64, f64>> {
        let (row, _, figure) = self.row(contestant, figure)?;
        row.values(figure)
    }

    /// The largest of a figure's runs. None: it was not measured.
    pub fn worst(&self, contestant: &str, figure: &str) -> Option<f64> {
        self.each(contestant, figure)?.into_values().max_by(f64::total_cmp)
    }

    /// The smallest of a figure's runs. None: it was not measured.
    pub fn least(&self, contestant: &str, figure: &str) -> Option<f64> {
        self.each(contestant, figure)?.into_values().min_by(f64::total_cmp)
    }

    /// The largest ratio of a contestant's figure to a contestant's figure in runs of the same seed
    /// or round. None: there are none.
    pub fn worst_ratio(&self, one: (&str, &str), other: (&str, &str)) -> Option<f64> {
        let (one, other) = (self.each(one.0, one.1)?, self.each(other.0, other.1)?);
        one.iter().filter_map(|(seed, value)| Some(value / other.get(seed)?)).max_by(f64::total_cmp)
    }

    /// How many runs stand behind a contestant's figure.
    pub fn count(&self, contestant: &str, figure: &str) -> usize {
        self.row(contestant, figure).map_or(0, |(row, ..)| row.count())
    }

    /// The ratio to the first contestant of its table.
    pub fn ratio(&self, contestant: &str, figure: &str) -> Option<Median> {
        let (row, part, figure) = self.row(contestant, figure)?;
        row.ratio(figure, part.rows.first()?)
    }

    /// The peer with the least median.
    pub fn best_peer(&self, figure: &str) -> Option<(f64, &str)> {
        let (part, known) = self.part_of(figure)?;
        let peers = part.rows.iter().filter(|row| row.is_peer);
        let of = |row: &'_ Row| Some(row.median(known)?.value);
        let measured = peers.filter_map(|row| Some((of(row)?, row.name.as_str())));
        measured.min_by(|one, other| one.0.total_cmp(&other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Place, Workload};
    use serde_json::json;

    const PARTS: &[Part] = &[Part {
        title: "",
        place: Place::ONE_CPU,
        contestants: Vec::new,
        workloads: &[Workload::new("one", "")],
        figures: &[Figure::new("x", "one", "/x", 1.0), Figure::new("y", "one", "/y", 1.0)],
    }];

    /// Each seed with its x; y is ten times that.
    fn row(name: &str, figures: &[(u64, f64)]) -> Row {
        let run = |x| Run { figures: json!({ "x": x, "y": 10.0 * x }), choices: None };
        let runs = figures.iter().map(|(seed, x)| (*seed, run(*x))).collect();
        let runs = BTreeMap::from([("one", Ok(runs))]);
        Row { name: name.to_owned(), is_peer: false, lines: None, is_brief: false, runs }
    }

    fn results(rows: Vec<Row>) -> Results {
        Results {
            kernel: String::new(),
            qemu: String::new(),
            seeds: vec![],
            parts: vec![Rows { title: "", rows }],
            commands: vec![],
            description: PARTS,
        }
    }

    #[test]
    fn rows_with_different_seeds_are_compared_in_those_that_they_share() {
        let results = results(vec![
            row("few", &[(2, 2.0), (3, 4.0)]),
            row("many", &[(1, 9.0), (2, 6.0), (3, 4.0)]),
        ]);
        assert_eq!(
            (results.worst("many", "x"), results.least("many", "x")),
            (Some(9.0), Some(4.0))
        );
        assert_eq!((results.count("few", "x"), results.count("many", "x")), (2, 3));
        // 6 to 2 and 4 to 4.
        assert_eq!(results.ratio("many", "x").map(|ratio| ratio.value), Some(2.0));
        assert_eq!(results.worst_ratio(("many", "x"), ("few", "x")), Some(3.0));
        assert_eq!(results.worst_ratio(("few", "y"), ("many", "x")), Some(10.0));
        assert_eq!(results.worst_ratio(("few", "x"), ("nobody", "x")), None);
    }

    #[test]
    fn the_largest_run_stands_for_a_figure_that_counts_at_its_worst() {
        let row = row("one", &[(1, 1.0), (2, 9.0), (3, 2.0)]);
        let figure = Figure::new("x", "one", "/x", 1.0);
        assert_eq!(row.summary(&figure).map(|summary| summary.value), Some(2.0));
        assert_eq!(row.summary(&figure.at_worst()).map(|summary| summary.value), Some(9.0));
    }

    #[test]
    fn without_a_seed_in_common_there_is_no_ratio() {
        let results = results(vec![row("one", &[(1, 1.0)]), row("other", &[(2, 1.0)])]);
        assert_eq!(results.ratio("other", "x"), None);
        assert_eq!(results.worst_ratio(("one", "x"), ("other", "x")), None);
    }
}
