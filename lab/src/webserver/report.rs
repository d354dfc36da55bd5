//! Shows the figures as tables, claims and pictures. Times are milliseconds.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::measure::{SHARES, Sample};
use super::pairs::{POLICIES, Pairs};
use super::plan;
use super::runs::{ByServer, Results, percent};
use crate::http::wrk;
use crate::median_interval::Median;
use crate::plot::{self, Line};
use crate::report::{Claim, Picture, Report, Table};

/// The bounds of the claims: mean response time and throughput in parts of fifo's.
const MEAN: f64 = 0.65;
const THROUGHPUT: f64 = 0.98;
/// `per_byte` of shortest_reply times a megabyte, in milliseconds.
const LARGE_MAY_LOSE: f64 = 2_100.0;

/// `machine`: None where no virtual machine is set up; Err: why it failed.
pub fn report(
    results: &Results,
    machine: &Result<Option<(Pairs, String)>, String>,
    network: Option<anyhow::Error>,
) -> Result<Report> {
    let mut tables = vec![pairs_table(&results.pairs, "this machine, in real time")];
    tables[0].notes.extend(network.map(plain_loopback));
    let mut claims = claims(&results.pairs, "", MEAN);
    let mut commands = results.commands.clone();
    match machine {
        Ok(Some((pairs, command))) => {
            let mut table = pairs_table(pairs, "a deterministic machine with two CPUs");
            table.notes.push(
                "Its CPUs take turns, an instruction takes a nanosecond: every figure is the same \
                 each time."
                    .to_owned(),
            );
            tables.push(table);
            claims.extend(self::claims(pairs, "deterministic machine: ", MEAN));
            commands.push(command.clone());
        }
        Ok(None) => tables[0]
            .notes
            .push("`attune vm setup` adds the pairs in a deterministic machine.".to_owned()),
        Err(error) => claims.push(Claim::new(format!("deterministic machine: {error}"), None)),
    }
    match &results.contest {
        Some(contest) => {
            tables.push(contest.table("server"));
            claims.extend(contest.claims());
        }
        None => claims.push(Claim::new("nginx is not installed: `tools/setup.sh webserver`", None)),
    }
    tables.extend([open_table(results), closed_table(results)]);
    if !results.wrk_keep_alive.is_empty() {
        tables.push(keep_alive_table(results));
    }
    let machine = machine.as_ref().ok().and_then(|both| Some(&both.as_ref()?.0));
    Ok(Report {
        tables,
        claims,
        pictures: pictures(&results.pairs, &results.open)?,
        commands,
        data: json!({ "here": results, "machine": machine }),
        ..Report::new("webserver", "A web server at overload: shortest reply first").saying(METHOD)
    })
}

/// What a reader must know where the experiment got no network of its own.
pub fn plain_loopback(error: anyhow::Error) -> String {
    format!(
        "The clients shared plain loopback with the server ({error:#}): they pay for both ends of \
         each connection. Run as root for a network of the experiment's own."
    )
}

const METHOD: &[&str] = &[
    "Server and clients have a core each. Requests come at random times (a Poisson process) at a \
     rate fixed beforehand, each on a connection of its own; for one second, at overload more of \
     them than the server can answer, then none until all are answered. A response time runs from \
     the moment a request was due to the last byte of its reply, and every request counts.",
    "The claims rest on pairs. A pair measures the capacity (the most that fifo answers of loads \
     that rise from what a closed loop is answered), then sends the same requests at 110 % of it \
     to both servers; the first of the two alternates. Each pair gives a ratio, and the table \
     shows the median ratio with its 95 % interval. A claim is undecided where its interval lies \
     on both sides of the bound. Both servers run with the settings that suit them best, found by \
     the same search.",
    "Why not a closed loop? With N clients that ask again as soon as they are answered the mean \
     response time is N / throughput whatever the scheduler does (Little's law). The table of the \
     closed loop shows just that, and how many short waits and a few long ones make the same mean.",
    "How much an order can gain depends on how much of the work can be put off: once the small \
     requests alone are more than the core can do, as at 120 % where a connection costs much and a \
     byte little, some requests wait in any order.",
    "The server's core does the kernel's work on arriving packets (receive packet steering on a \
     loopback of the experiment's own), as it would if the clients were another machine. Otherwise \
     the client pays for both ends of each handshake, and one core of clients cannot overload the \
     server.",
    "The contest with nginx is a closed loop of 256 clients, a connection for each request, on \
     the same core in alternating pairs, with the best of four configurations of nginx. Ours runs \
     under `shortest_reply`.",
    "Every reply's status and length is checked, and one in seventeen byte by byte.",
];

pub fn find<'a, T>(rows: &'a ByServer<T>, name: &str) -> Option<&'a T> {
    rows.iter().find(|(server, _)| server == name).map(|(_, value)| value)
}

/// Three significant digits, no exponent.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v > 0.0 => format!("{value:.3}"),
        _ => "0".to_owned(),
    }
}

pub fn numbers(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = String> {
    values.into_iter().map(number)
}

pub const COLUMNS: [&str; 6] = ["answers/s", "mean", "p50", "p99", "1 MB mean", "1 MB p99"];

pub fn cells(sample: &Sample) -> [f64; 6] {
    let (all, large) = (&sample.all, &sample.large);
    [sample.throughput, all.mean, all.p50, all.p99, large.mean, large.p99]
}

pub fn pairs_table(pairs: &Pairs, place: &str) -> Table {
    let mut rows: Vec<Vec<String>> = (0..2)
        .map(|policy| {
            let sample = pairs.sample(policy);
            let name = POLICIES[policy].to_owned();
            [name].into_iter().chain(numbers(cells(&sample))).collect()
        })
        .collect();
    let ratio = |column: usize| match pairs.median(|a, b| cells(b)[column] / cells(a)[column]) {
        Some(Median { value, low, high }) => format!("{value:.2} [{low:.2} {high:.2}]"),
        None => "-".to_owned(),
    };
    let ratios = (0..COLUMNS.len()).map(ratio);
    let (count, overload) = (pairs.pairs.len(), percent(plan::OVERLOAD));
    // Fewer than six have no such interval.
    let interval = if count < 6 { "ratio, least to greatest" } else { "ratio, 95 % interval" };
    rows.push([interval.to_owned()].into_iter().chain(ratios).collect());
    let title = format!("{count} pairs at {overload} % load, {place}: response times in ms");
    let mut table = Table::new(title, &[&["policy"][..], &COLUMNS].concat(), rows);
    let best = POLICIES.iter().zip(&pairs.searches).map(|(policy, search)| {
        let (best, tried) = (&search.best, search.tried.len());
        format!("{policy}: {}, the best of {tried}", best.words())
    });
    let best: Vec<String> = best.collect();
    table.notes.push(format!("Settings: {}.", best.join("; ")));
    table
}

fn open_table(results: &Results) -> Table {
    let mut rows = Vec::new();
    for (percent, servers) in &results.open {
        let simulated = results.simulated.get(percent);
        for (name, sample) in servers {
            let mut row = vec![format!("{percent} % {name}")];
            row.extend(numbers(cells(sample)));
            let simulated = simulated.and_then(|servers| find(servers, name)).map(cells);
            row.extend(numbers(simulated.into_iter().flatten()));
            row.resize(1 + 2 * COLUMNS.len(), String::new());
            rows.push(row);
        }
    }
    let capacity = number(results.pairs.capacity());
    let title = format!(
        "Open loop: response times in ms, load in % of the {capacity} requests/s that fifo answers"
    );
    let simulated = [&["sim answers/s"][..], &COLUMNS[1..]].concat();
    let columns = [&["load, server"][..], &COLUMNS, &simulated].concat();
    let costs = results.costs.iter().map(|(name, costs)| {
        let request = costs.per_request / 1e3;
        format!("{name} {request:.1} us a request and {:.3} ns a byte", costs.per_byte)
    });
    let costs = costs.collect::<Vec<_>>().join(", ");
    let note = format!("sim: the simulator, the same policies, the measured costs: {costs}.");
    Table { notes: vec![note], ..Table::new(title, &columns, rows) }
}

fn closed_table(results: &Results) -> Table {
    let mut rows = Vec::new();
    for (clients, servers) in &results.closed {
        for (name, sample) in servers {
            let wrk = results.wrk.get(clients).and_then(|servers| find(servers, name));
            let mut row = vec![format!("{clients} {name}")];
            row.extend(numbers(cells(sample)));
            row.extend(numbers(
                wrk.map(|wrk| [wrk.requests_per_second, wrk.mean / 1e6]).into_iter().flatten(),
            ));
            row.resize(3 + COLUMNS.len(), String::new());
            rows.push(row);
        }
    }
    let columns = [&["clients, server"][..], &COLUMNS, &["wrk answers/s", "wrk mean"]].concat();
    let title = "Closed loop, a connection for each request: response times in ms";
    Table::new(title, &columns, rows)
}

fn keep_alive_table(results: &Results) -> Table {
    let row = |clients: &usize, (name, wrk): &(String, wrk::Summary)| {
        let times = [wrk.mean, wrk.median, wrk.p99].map(|time| time / 1e6);
        let figures = numbers([wrk.requests_per_second].into_iter().chain(times));
        let name = [format!("{clients} {name}")];
        name.into_iter().chain(figures).chain([wrk.errors.to_string()]).collect()
    };
    let rows = results
        .wrk_keep_alive
        .iter()
        .flat_map(|(clients, servers)| servers.iter().map(move |server| row(clients, server)));
    let columns = ["clients, server", "answers/s", "mean", "p50", "p99", "errors"];
    Table::new("wrk with keep-alive: response times in ms", &columns, rows.collect())
}

/// `mean`: the bound on the mean response time, in parts of fifo's.
pub fn claims(pairs: &Pairs, place: &str, mean: f64) -> Vec<Claim> {
    let below = percent(1.0 - mean);
    let overload = percent(plan::OVERLOAD);
    let interval = |claim: String, bound: f64, median: Option<Median>| match median {
        Some(median) => Claim::interval(place.to_owned() + &claim, median, bound),
        None => Claim::new(claim, None),
    };
    let (lost, verified) = pairs
        .pairs
        .iter()
        .flat_map(|pair| &pair.samples)
        .fold((0.0, 0.0), |sum, sample| (sum.0 + sample.lost, sum.1 + sample.verified));
    vec![
        interval(
            format!(
                "at {overload} % load the mean response time is at least {below} % below fifo's"
            ),
            mean,
            pairs.median(|fifo, shortest| shortest.all.mean / fifo.all.mean),
        ),
        interval(
            "the longest large reply takes at most 2100 ms longer than fifo's longest".to_owned(),
            LARGE_MAY_LOSE,
            pairs.median(|fifo, shortest| shortest.large.max - fifo.large.max),
        ),
        interval(
            "throughput is at most 2 % below fifo's (fifo's by ours)".to_owned(),
            1.0 / THROUGHPUT,
            pairs.median(|fifo, shortest| fifo.throughput / shortest.throughput),
        ),
        Claim::new(
            format!("{place}no request is lost or answered wrongly"),
            Some((lost == 0.0, format!("{lost:.0} lost; {verified:.0} compared byte by byte"))),
        ),
    ]
}

/// How the requests of the pairs fared, and the mean response time by load.
pub fn pictures(pairs: &Pairs, open: &BTreeMap<u32, ByServer<Sample>>) -> Result<Vec<Picture>> {
    let shares = || SHARES.iter().map(|share| share * 100.0);
    let curves: Vec<Line> = POLICIES
        .iter()
        .enumerate()
        .map(|(policy, name)| Line {
            name: (*name).to_owned(),
            points: shares().zip(pairs.sample(policy).curve).collect(),
            dashed: false,
        })
        .collect();
    let names = open.values().next().into_iter().flatten().map(|(name, _)| name.clone());
    let mut lines = Vec::new();
    for name in names {
        for (class, dashed) in [("all", false), ("1 MB", true)] {
            let points = open.iter().filter_map(|(percent, servers)| {
                let sample = find(servers, &name)?;
                let mean = if class == "all" { sample.all.mean } else { sample.large.mean };
                Some((f64::from(*percent), mean))
            });
            lines.push(Line { name: format!("{name}, {class}"), points: points.collect(), dashed });
        }
    }
    let overload = percent(plan::OVERLOAD);
    Ok(vec![
        Picture::new(
            format!("Percent of the requests that are answered within a time, {overload} % load"),
            plot::lines("percent of requests", "ms", &curves)?,
        ),
        Picture::new(
            "Mean response time by load",
            plot::lines("load, percent of fifo's capacity", "ms", &lines)?,
        ),
    ])
}
