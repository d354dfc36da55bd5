//! Experiment `shared-variables`: what reading and changing shared variables of a cluster costs a
//! program, and whether many nodes keep up, under both models on one machine.
//!
//! The example (examples/tickets) measures itself: rounds in which a plain load, a read of the
//! copy, a bare socket round trip, a read at the owner and an addition there take turns. Claims are
//! on the medians of the rounds' ratios, so that what else runs on the machine meets both sides.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::example::TICKETS;
use super::programs::{Stage, check};
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
    progress("costs");
    let words = [vec!["measure".to_owned(), rounds.to_string()]];
    let (mut costs, _): (Vec<Vec<Round>>, Seen) = stage.run_all(&words, &["see"], SCHEDULER)?;
    let costs = costs.pop().context("one program")?;
    let sizes: &[u32] = if options.quick { &[1, 8, 64] } else { &[1, 2, 4, 8, 16, 32, 64] };
    let draws = if options.quick { 200 } else { 2000 };
    let crowds: Result<Vec<Crowd>> = sizes
        .iter()
        .map(|&nodes| {
            progress(&format!("{nodes} nodes"));
            crowd(&stage, nodes, draws)
        })
        .collect();
    report(&costs, &crowds?)
}

fn crowd(stage: &Stage, nodes: u32, draws: u32) -> Result<Crowd> {
    let all = |words: &[String]| vec![words.to_vec(); nodes as usize];
    let sell = all(&["sell".into(), RATE.to_string(), SECONDS.to_string()]);
    let (sold, seen): (Vec<Vec<Sold>>, Seen) = stage.run_all(&sell, &["see"], SCHEDULER)?;
    let sold: Vec<Sold> = sold.into_iter().flatten().collect();
    let behind = sold.iter().map(|it| it.counted_after).fold(0.0, f64::max);
    let draw = all(&["draw".into(), draws.to_string()]);
    let (drawn, last): (Vec<Vec<Drawn>>, Seen) = stage.run_all(&draw, &["see"], SCHEDULER)?;
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

fn report(costs: &[Round], crowds: &[Crowd]) -> Result<Report> {
    let median = |figure: fn(&Round) -> f64| -> Result<Median> {
        let values: Vec<f64> = costs.iter().map(figure).collect();
        median_interval::of(&values).context("no round")
    };
    let row = |name: &str, figure: fn(&Round) -> f64, by: fn(&Round) -> f64| -> Result<_> {
        let values: Vec<f64> = costs.iter().map(|round| figure(round) / by(round)).collect();
        let ratio = median_interval::of(&values).context("no round")?;
        Ok(vec![
            name.to_owned(),
            format!("{:.1}", median(figure)?.value),
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
    let mut costs_table = Table::new("Costs", &["", "ns", "by load or bare trip"], rows);
    costs_table.notes.push(format!("medians of {} rounds, with their intervals", costs.len()));
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
    let claims = vec![
        Claim::interval(
            "a read of the copy costs at most ten plain loads",
            median(|it| it.cached_ns / it.load_ns)?,
            MOST_CACHED,
        ),
        Claim::interval(
            "a read at the owner costs at most two bare round trips",
            median(|it| it.read_ns / it.bare_ns)?,
            MOST_REQUEST,
        ),
        Claim::interval(
            "an addition at the owner costs at most two bare round trips",
            median(|it| it.add_ns / it.bare_ns)?,
            MOST_REQUEST,
        ),
        Claim::at_most(
            format!("{} nodes with {RATE} additions a second each keep up", largest.nodes),
            largest.behind,
            MOST_BEHIND,
            " s behind",
        ),
        Claim::new("no addition is lost or doubled", Some((exact && on_time, word(exact)))),
        Claim::new("no ticket is given out twice", Some((twice == 0, twice.to_string()))),
    ];
    let report = Report::new("shared-variables", "Shared variables in programs").saying(&[
        "A program of examples/tickets measures what shared variables cost it; the things compared \
         take turns. Then many programs at a time add to one variable in their copies, ten \
         thousand times a second each for two seconds, and then draw tickets from the owner as \
         fast as they can.",
    ]);
    Ok(Report {
        tables: vec![costs_table, crowd_table],
        claims,
        data: json!({ "rounds": costs, "crowds": crowds }),
        ..report
    })
}
