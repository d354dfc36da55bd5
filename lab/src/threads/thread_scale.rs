//! Experiment `thread-scale`: creating and joining threads, the memory that they need, and what two
//! workers do.

use anyhow::{Context, Result};
use serde_json::json;

use super::contestant::{BOOST, CONTESTANTS, Measure, available};
use super::moving::{self, Moving, Threads};
use super::rounds::{self, Rounds, place};
use crate::experiment::{Options, Procedure, Progress};
use crate::median_interval::Median;
use crate::plot;
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "thread-scale",
    about: "creating and joining 10 000 threads and the memory of 100 000, beside other libraries; \
            two workers, whose threads move or stay",
    check: available,
    run,
};

const THREADS: u32 = 10_000;
/// Threads that one run creates.
const CREATED: u32 = 100_000;
/// For the claim about memory, and the memory that they may take.
const MANY: u32 = 100_000;
const MOST_MEMORY: f64 = (1u64 << 30) as f64;
const MOST_CREATE: f64 = 0.25;
/// The time of two workers by that of one: 1.7 and 1.8 times its work.
const MOST_MOVING: f64 = 1.0 / 1.7;
const MOST_SPREAD: f64 = 1.0 / 1.8;

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let programs = rounds::programs(options, progress)?;
    let (count, created) = if options.quick { (3, 2 * THREADS) } else { (12, CREATED) };
    let all = |place: usize| !CONTESTANTS[place].is_linear();
    let create =
        rounds::measure(&programs, Measure::Create(THREADS), created, count, all, progress)?;
    let memory = rounds::measure(&programs, Measure::Memory(THREADS), 0, 3, all, progress)?;
    let ours = |place: usize| CONTESTANTS[place].is_ours();
    let many = rounds::measure(&programs, Measure::Memory(MANY), 0, 1, ours, progress)?;
    let moving = moving::measure(options, Threads::Move, count, progress)?;
    let spread = moving::measure(options, Threads::AreSpread, count, progress)?;
    report(&create, &memory, &many, &[moving, spread])
}

/// `two`: threads that move, and threads that are spread.
fn report(create: &Rounds, memory: &Rounds, many: &Rounds, two: &[Moving; 2]) -> Result<Report> {
    let cell =
        |median: Option<Median>| median.map_or("-".to_owned(), |it| format!("{:.0}", it.value));
    let took_part = |place: &usize| create.median(*place).is_some();
    let places: Vec<usize> = (0..CONTESTANTS.len()).filter(took_part).collect();
    let row = |&place: &usize| {
        let name = CONTESTANTS[place].name.to_owned();
        vec![name, cell(create.median(place)), cell(memory.median(place))]
    };
    let columns = ["with 10 000 threads", "create and join, ns", "bytes a thread"];
    let mut table = Table::new("Many threads", &columns, places.iter().map(row).collect());
    table.notes.push(format!("medians of {} rounds; page tables included", create.rounds.len()));

    let boost = place(BOOST);
    let mut claims = vec![];
    for (ours, contestant) in CONTESTANTS.iter().enumerate().filter(|(_, it)| it.is_ours()) {
        let claim =
            format!("{}: create and join take at most 0.25 times {BOOST}'s", contestant.name);
        let ratio = create.ratio(ours, boost).context("Boost.Fiber takes part")?;
        claims.push(Claim::interval(claim, ratio, MOST_CREATE));
        let bytes = many.median(ours).map(|each| each.value * f64::from(MANY));
        let shown = |bytes: f64| (bytes < MOST_MEMORY, format!("{:.0} MiB", bytes / 1048576.0));
        let claim = format!("{}: 100 000 threads take less than 1 GiB", contestant.name);
        claims.push(Claim::new(claim, bytes.map(shown)));
    }
    let row = |workers: usize| {
        let time = |of: &Moving| {
            of.median(workers).map_or("-".to_owned(), |it| format!("{:.1}", it.value))
        };
        std::iter::once(workers.to_string()).chain(two.iter().map(time)).collect()
    };
    let columns = ["workers", "threads that move, ms", "threads that are spread, ms"];
    let mut workers = Table::new("Two workers", &columns, vec![row(1), row(2)]);
    workers.notes.push(format!("medians of {} alternating pairs", two[0].pairs.len()));
    let bounds = [
        ("threads that are all created on worker 1 and may move", MOST_MOVING),
        ("threads that are spread over the workers", MOST_SPREAD),
    ];
    for (measured, (threads, most)) in two.iter().zip(bounds) {
        let claim = format!("{threads}: two workers take at most {most:.2} times as long as one");
        claims.push(match measured.ratio() {
            Some(ratio) => Claim::interval(claim, ratio, most),
            None => Claim::new(claim, None),
        });
    }
    let bars: Vec<(String, f64)> = places
        .iter()
        .filter_map(|&place| {
            Some((CONTESTANTS[place].name.to_owned(), create.median(place)?.value))
        })
        .collect();
    let picture = plot::bars("ns to create and join", &bars)?;
    let report = Report::new("thread-scale", "Many threads").saying(&[
        "A batch of 10 000 threads that end at once is created and joined, again and again: the \
         libraries that keep stacks have them. A thread's memory is what the process has more of \
         after 10 000 threads have each run and yield; 100 000 for the claim.",
        "Boost.Fiber's stacks are those of its default, 128 KiB from malloc without a guard, or \
         its pool's; ours have 256 KiB and a guard.",
        "Two workers: eight threads compute and yield every few microseconds under \
         `round_robin`. It needs two CPUs with nothing else to do.",
    ]);
    Ok(Report {
        tables: vec![table, workers],
        claims,
        pictures: vec![Picture::new("Create and join", picture)],
        data: json!({
            "contestants": CONTESTANTS.iter().map(|it| it.name).collect::<Vec<_>>(),
            "create": create, "memory": memory, "many": many, "moving": two[0], "spread": two[1],
        }),
        ..report
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn dear_threads_and_large_ones_miss_their_claims() {
        let rounds = |ours: f64| {
            let figure = |place: usize| if CONTESTANTS[place].is_ours() { ours } else { 100.0 };
            let round: Vec<f64> = (0..CONTESTANTS.len()).map(figure).collect();
            Rounds { measure: String::new(), rounds: vec![round; 6] }
        };
        let verdicts = |create, many, two| {
            let both = [two, two].map(|two| Moving { pairs: vec![[100.0, two]; 6] });
            let report = report(&rounds(create), &rounds(1.0), &rounds(many), &both).unwrap();
            report.claims.iter().map(|claim| claim.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(20.0, 10_000.0, 55.0), [Verdict::Holds; 6]);
        assert_eq!(verdicts(30.0, 11_000.0, 60.0), [Verdict::Missed; 6]);
    }
}
