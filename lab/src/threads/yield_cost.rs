//! Experiment `yield-cost`: a yield of ours and of other libraries, with 2, 100 and 10 000 threads.

use anyhow::Result;
use serde_json::json;

use super::contestant::{BOOST, COMPILED_IN, CONTESTANTS, Measure, POOLED, available};
use super::rounds::{self, Rounds};
use crate::experiment::{Options, Procedure, Progress};
use crate::plot::{self, Line};
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "yield-cost",
    about: "a yield through a policy, loaded and compiled in, with 2, 100 and 10 000 threads, \
            beside Boost.Fiber, State Threads, Tokio, Go and GNU Pth",
    check: available,
    run,
};

const THREADS: [u32; 3] = [2, 100, 10_000];
/// Yields of all threads in one run.
const TURNS: u32 = 4_000_000;
/// A yield of ours by one of theirs.
const MOST: f64 = 1.0;
/// The same of a policy that is compiled in, by one of Boost.Fiber's.
const MOST_COMPILED_IN: f64 = 0.8;

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let programs = rounds::programs(options, progress)?;
    let (count, turns) = if options.quick { (3, TURNS / 10) } else { (24, TURNS) };
    let mut levels = vec![];
    for threads in THREADS {
        // Boost's stacks differ only where threads are created.
        let takes_part = |place: usize| {
            let contestant = &CONTESTANTS[place];
            contestant.name != POOLED && !(contestant.is_linear() && threads > 1000)
        };
        let measure = Measure::Yield(threads);
        levels.push(rounds::measure(&programs, measure, turns, count, takes_part, progress)?);
    }
    report(&levels)
}

fn report(levels: &[Rounds]) -> Result<Report> {
    let shown = |rounds: &Rounds, place: usize| {
        rounds.median(place).map_or("-".to_owned(), |median| format!("{:.1}", median.value))
    };
    let took_part = |place: &usize| levels.iter().any(|rounds| rounds.median(*place).is_some());
    let places: Vec<usize> = (0..CONTESTANTS.len()).filter(took_part).collect();
    let row = |&place: &usize| {
        let cells = levels.iter().map(|rounds| shown(rounds, place));
        std::iter::once(CONTESTANTS[place].name.to_owned()).chain(cells).collect()
    };
    let columns = ["ns a yield", "2 threads", "100", "10 000"];
    let mut table = Table::new("A yield", &columns, places.iter().map(row).collect());
    let count = levels.first().map_or(0, |rounds| rounds.rounds.len());
    table.notes.push(format!("medians of {count} rounds, in which the contestants take turns"));
    table.notes.push("GNU Pth walks all threads at each yield: not with 10 000".to_owned());

    let mut claims = vec![];
    for (rounds, threads) in levels.iter().zip(THREADS) {
        for (ours, contestant) in CONTESTANTS.iter().enumerate().filter(|(_, it)| it.is_ours()) {
            for (theirs, peer) in CONTESTANTS.iter().enumerate().filter(|(_, it)| !it.is_ours()) {
                if rounds.median(theirs).is_none() {
                    continue;
                }
                let most = match (contestant.name, peer.name) {
                    (COMPILED_IN, BOOST) => MOST_COMPILED_IN,
                    _ => MOST,
                };
                let claim = format!(
                    "{threads} threads: {} takes at most {most} times {}'s",
                    contestant.name, peer.name
                );
                claims.push(match rounds.ratio(ours, theirs) {
                    Some(ratio) => Claim::interval(claim, ratio, most),
                    None => Claim::new(claim, None),
                });
            }
        }
    }
    let line = |&place: &usize| {
        let points = levels.iter().zip(THREADS).filter_map(|(rounds, threads)| {
            Some((f64::from(threads).log10(), rounds.median(place)?.value))
        });
        Line {
            name: CONTESTANTS[place].name.to_owned(),
            points: points.collect(),
            dashed: !CONTESTANTS[place].is_ours(),
        }
    };
    let lines: Vec<Line> = places.iter().map(line).collect();
    let picture = plot::lines("threads, as a power of ten", "ns a yield", &lines)?;
    let report = Report::new("yield-cost", "What a yield costs").saying(&[
        "All threads of a program yield in turn; the first of them takes the time of its own \
         turns. Our threads run under `fifo`, which the library loads or which is compiled \
         into the program. Boost.Fiber has an algorithm of the program's own, \
         first in, first out. Tokio's tasks have no stack: a switch between them saves none.",
        "The contestants take turns within a round, on one CPU, and claims are about ratios within \
         rounds: the interval of their median must lie below the bound.",
    ]);
    Ok(Report {
        tables: vec![table],
        claims,
        pictures: vec![Picture::new("A yield", picture)],
        data: json!({
            "contestants": CONTESTANTS.iter().map(|it| it.name).collect::<Vec<_>>(),
            "levels": levels,
        }),
        ..report
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    /// One round for each number of threads, every peer at 50 ns.
    fn levels(ours: f64) -> Vec<Rounds> {
        let figure = |place: usize| if CONTESTANTS[place].is_ours() { ours } else { 50.0 };
        let round: Vec<f64> = (0..CONTESTANTS.len()).map(figure).collect();
        let rounds = |_| Rounds { measure: String::new(), rounds: vec![round.clone(); 6] };
        THREADS.iter().map(rounds).collect()
    }

    #[test]
    fn a_slower_yield_misses_and_a_faster_one_holds() {
        let verdict = |ours| report(&levels(ours)).unwrap().claims[0].verdict;
        assert_eq!((verdict(20.0), verdict(60.0)), (Verdict::Holds, Verdict::Missed));
        // GNU Pth has none with 10 000 threads, and so no claim is made of either of ours.
        let mut levels = levels(20.0);
        let all = report(&levels).unwrap().claims.len();
        levels[2].rounds.iter_mut().for_each(|round| *round.last_mut().unwrap() = f64::NAN);
        assert_eq!(report(&levels).unwrap().claims.len(), all - 2);
    }
}
