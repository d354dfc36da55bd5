//! Experiment `shared-variables`: what reading and changing shared variables of a cluster costs a
//! program, and whether many nodes keep up, under both models on one machine.
//!
//! The example (examples/tickets) measures itself: rounds in which a plain load, a read of the
//! copy, a bare socket round trip, a read at the owner and an addition there take turns. Claims are
//! on the medians of the rounds' ratios, so that what else runs on the machine meets both sides.
//! Where two processes run decides what a round trip costs, and the kernel chooses by chance. So
//! the manager and the process that answers bare packets are put on one CPU: the program's, and
//! another one.

use anyhow::{Context, Result};
use attune_linux::affinity::Cpus;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::example::TICKETS;
use super::programs::{Place, Stage, check};
use crate::experiment::{Options, Procedure, Progress};
use crate::median_interval::{self, Median};
use crate::report::{Claim, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "shared-variables",
    about: "shared variables in programs: copies, requests to their owner, 64 nodes",
    check: |options| check(options, &TICKETS),
    run,
};

/// Bounds of the claims, as ratios: to a plain load, to a bare round trip.
const MOST_CACHED: f64 = 10.0;
const MOST_REQUEST: f64 = 2.0;
/// Additions that each node makes, and for how long; it keeps up if the manager has counted the
/// last of them so soon after. The rate is the claim's.
const RATE: u32 = 10_000;
const SECONDS: u32 = 2;
const MOST_BEHIND: f64 = 0.5;

/// What a round of `tickets measure` says. Nanoseconds for each.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Round {
    load_ns: f64,
    cached_ns: f64,
    call_ns: f64,
    bare_ns: f64,
    read_ns: f64,
    add_ns: f64,
}

/// The rounds with the owner on one CPU.
#[derive(Clone, Debug, Serialize)]
struct Costs {
    place: Place,
    rounds: Vec<Round>,
}

/// What `tickets sell` says.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sold {
    sold: u64,
    counted_after: f64,
}

/// What `tickets draw` says of each ticket. Nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Drawn {
    begins: u64,
    ends: u64,
    ticket: u64,
}

/// What `tickets see` says.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Seen {
    last: u64,
    sold: u64,
}

/// How a number of nodes fared.
#[derive(Clone, Debug, Serialize)]
struct Crowd {
    nodes: u32,
    /// Additions in the copies, and what the store has of them.
    sold: u64,
    counted: u64,
    /// The slowest node, in seconds after its last addition.
    behind: f64,
    /// Tickets drawn in all, a second, and how many were given out twice.
    tickets: u64,
    rate: f64,
    twice: u64,
}

const SCHEDULER: &str = "./counter.so";

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let stage = Stage::set(options, &TICKETS)?;
    let rounds = if options.quick { 7 } else { 31 };
    let cpus: Vec<u32> = Cpus::of_this_thread()?.iter().collect();
    let programs = *cpus.first().context("a CPU")?;
    // The same one, and another if there is one.
    let owners = std::iter::once(programs).chain(cpus.get(1).copied());
    let costs: Result<Vec<Costs>> = owners
        .map(|manager| {
            let place = Place { manager, programs };
            progress(&format!("costs, {}", place.in_words()));
            let words = ["measure".to_owned(), rounds.to_string(), manager.to_string()];
            let words = [words.to_vec()];
            let (mut said, _): (Vec<Vec<Round>>, Seen) =
                stage.run_all(&words, &["see"], SCHEDULER, Some(place))?;
            Ok(Costs { place, rounds: said.pop().context("one program")? })
        })
        .collect();
    let sizes: &[u32] = if options.quick { &[1, 8, 64] } else { &[1, 2, 4, 8, 16, 32, 64] };
    let draws = if options.quick { 200 } else { 2000 };
    let crowds: Result<Vec<Crowd>> = sizes
        .iter()
        .map(|&nodes| {
            progress(&format!("{nodes} nodes"));
            crowd(&stage, nodes, draws)
        })
        .collect();
    report(&costs?, &crowds?)
}

fn crowd(stage: &Stage, nodes: u32, draws: u32) -> Result<Crowd> {
    let all = |words: &[String]| vec![words.to_vec(); nodes as usize];
    let sell = all(&["sell".into(), RATE.to_string(), SECONDS.to_string()]);
    let (sold, seen): (Vec<Vec<Sold>>, Seen) = stage.run_all(&sell, &["see"], SCHEDULER, None)?;
    let sold: Vec<Sold> = sold.into_iter().flatten().collect();
    let behind = sold.iter().map(|it| it.counted_after).fold(0.0, f64::max);
    let draw = all(&["draw".into(), draws.to_string()]);
    let (drawn, last): (Vec<Vec<Drawn>>, Seen) = stage.run_all(&draw, &["see"], SCHEDULER, None)?;
    let mut drawn: Vec<Drawn> = drawn.into_iter().flatten().collect();
    let begins = drawn.iter().map(|it| it.begins).min().context("no ticket")?;
    let ends = drawn.iter().map(|it| it.ends).max().context("no ticket")?;
    let tickets = drawn.len() as u64;
    drawn.sort_by_key(|it| it.ticket);
    drawn.dedup_by_key(|it| it.ticket);
    Ok(Crowd {
        nodes,
        sold: sold.iter().map(|it| it.sold).sum(),
        counted: seen.sold,
        behind,
        tickets: last.last,
        rate: tickets as f64 / ((ends - begins) as f64 / 1e9),
        twice: tickets - drawn.len() as u64,
    })
}

impl Place {
    fn in_words(self) -> &'static str {
        if self.manager == self.programs { "all on one CPU" } else { "the owner on another CPU" }
    }
}

impl Costs {
    fn median(&self, figure: impl Fn(&Round) -> f64) -> Result<Median> {
        let values: Vec<f64> = self.rounds.iter().map(figure).collect();
        median_interval::of(&values).context("no round")
    }

    fn table(&self) -> Result<Table> {
        let row = |name: &str, figure: fn(&Round) -> f64, by: fn(&Round) -> f64| -> Result<_> {
            let ratio = self.median(|round| figure(round) / by(round))?;
            Ok(vec![
                name.to_owned(),
                format!("{:.1}", self.median(figure)?.value),
                format!("{:.2} [{:.2} {:.2}]", ratio.value, ratio.low, ratio.high),
            ])
        };
        let rows = vec![
            row("a plain load", |it| it.load_ns, |it| it.load_ns)?,
            row("a read of the copy", |it| it.cached_ns, |it| it.load_ns)?,
            row("the same by a call", |it| it.call_ns, |it| it.load_ns)?,
            row("a bare socket round trip", |it| it.bare_ns, |it| it.bare_ns)?,
            row("a read at the owner", |it| it.read_ns, |it| it.bare_ns)?,
            row("an addition at the owner", |it| it.add_ns, |it| it.bare_ns)?,
        ];
        let title = format!("Costs, {}", self.place.in_words());
        let mut table = Table::new(title, &["", "ns", "by load or bare trip"], rows);
        table.notes.push(format!("medians of {} rounds, with their intervals", self.rounds.len()));
        Ok(table)
    }

    fn claims(&self) -> Result<[Claim; 3]> {
        let place = self.place.in_words();
        Ok([
            Claim::interval(
                format!("{place}: a read of the copy costs at most ten plain loads"),
                self.median(|it| it.cached_ns / it.load_ns)?,
                MOST_CACHED,
            ),
            Claim::interval(
                format!("{place}: a read at the owner costs at most two bare round trips"),
                self.median(|it| it.read_ns / it.bare_ns)?,
                MOST_REQUEST,
            ),
            Claim::interval(
                format!("{place}: an addition at the owner costs at most two bare round trips"),
                self.median(|it| it.add_ns / it.bare_ns)?,
                MOST_REQUEST,
            ),
        ])
    }
}

fn report(costs: &[Costs], crowds: &[Crowd]) -> Result<Report> {
    let rows = crowds.iter().map(|it| {
        vec![
            it.nodes.to_string(),
            it.sold.to_string(),
            it.counted.to_string(),
            format!("{:.1}", it.behind * 1e3),
            it.tickets.to_string(),
            format!("{:.0}", it.rate),
        ]
    });
    let columns = ["nodes", "added", "counted", "last counted after, ms", "tickets", "a second"];
    let crowd_table = Table::new("Nodes", &columns, rows.collect());
    let largest = crowds.last().context("no crowd")?;
    let exact = crowds.iter().all(|it| it.sold == it.counted);
    let due = |it: &Crowd| u64::from(it.nodes) * u64::from(RATE * SECONDS);
    let on_time = crowds.iter().all(|it| it.sold == due(it));
    let twice: u64 = crowds.iter().map(|it| it.twice).sum();
    let word = |good: bool| if good { "none" } else { "some" }.to_owned();
    let mut claims = Vec::new();
    let mut tables = Vec::new();
    for costs in costs {
        claims.extend(costs.claims()?);
        tables.push(costs.table()?);
    }
    tables.push(crowd_table);
    claims.extend([
        Claim::at_most(
            format!("{} nodes with {RATE} additions a second each keep up", largest.nodes),
            largest.behind,
            MOST_BEHIND,
            " s behind",
        ),
        Claim::new("no addition is lost or doubled", Some((exact && on_time, word(exact)))),
        Claim::new("no ticket is given out twice", Some((twice == 0, twice.to_string()))),
    ]);
    let report = Report::new("shared-variables", "Shared variables in programs").saying(&[
        "A program of examples/tickets measures what shared variables cost it; the things compared \
         take turns. The manager and the process that answers bare packets are on the program's \
         CPU, then on another. Then many programs at a time add to one variable in their copies, \
         ten thousand times a second each for two seconds, and then draw tickets from the owner \
         as fast as they can.",
    ]);
    Ok(Report { tables, claims, data: json!({ "costs": costs, "crowds": crowds }), ..report })
}
