//! Experiment `thread-scale`: creating and joining threads, the memory that they need, and what two
//! workers do whose threads move.

use anyhow::{Context, Result};
use serde_json::json;

use super::contestant::{BOOST, CONTESTANTS, Measure, available};
use super::moving::{self, Moving};
use super::rounds::{self, Rounds, place};
use crate::experiment::{Options, Procedure, Progress};
use crate::median_interval::Median;
use crate::plot;
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "thread-scale",
    about: "creating and joining 10 000 threads and the memory of 100 000, beside other libraries; \
            two workers whose threads move",
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
/// The time of two workers by that of one: 1.7 times its work.
const MOST_MOVING: f64 = 1.0 / 1.7;

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let programs = rounds::programs(options, progress)?;
    let (count, created) = if options.quick { (3, 2 * THREADS) } else { (12, CREATED) };
    let all = |place: usize| !CONTESTANTS[place].is_linear();
    let create =
        rounds::measure(&programs, Measure::Create(THREADS), created, count, all, progress)?;
    let memory = rounds::measure(&programs, Measure::Memory(THREADS), 0, 3, all, progress)?;
    let ours = |place: usize| CONTESTANTS[place].is_ours();
    let many = rounds::measure(&programs, Measure::Memory(MANY), 0, 1, ours, progress)?;
    let moving = moving::measure(options, count, progress)?;
    report(&create, &memory, &many, &moving)
}

fn report(create: &Rounds, memory: &Rounds, many: &Rounds, moving: &Moving) -> Result<Report> {
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
        let time = moving.median(workers).map_or("-".to_owned(), |it| format!("{:.1}", it.value));
        vec![workers.to_string(), time]
    };
    let columns = ["workers", "ms"];
    let mut moves = Table::new("Threads that move", &columns, vec![row(1), row(2)]);
    moves.notes.push(format!("medians of {} alternating pairs", moving.pairs.len()));
    let claim = "threads that are all created on worker 1 and may move: two workers take at most \
                 0.59 times as long as one";
    claims.push(match moving.ratio() {
        Some(ratio) => Claim::interval(claim, ratio, MOST_MOVING),
        None => Claim::new(claim, None),
    });
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
        "Threads that move: eight threads compute and yield every few microseconds under \
         `round_robin`. It needs two CPUs with nothing else to do.",
    ]);
    Ok(Report {
        tables: vec![table, moves],
        claims,
        pictures: vec![Picture::new("Create and join", picture)],
        data: json!({
            "contestants": CONTESTANTS.iter().map(|it| it.name).collect::<Vec<_>>(),
            "create": create, "memory": memory, "many": many, "moving": moving,
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
            let moving = Moving { pairs: vec![[100.0, two]; 6] };
            let report = report(&rounds(create), &rounds(1.0), &rounds(many), &moving).unwrap();
            report.claims.iter().map(|claim| claim.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(20.0, 10_000.0, 55.0), [Verdict::Holds; 3]);
        assert_eq!(verdicts(30.0, 11_000.0, 60.0), [Verdict::Missed; 3]);
    }
}
