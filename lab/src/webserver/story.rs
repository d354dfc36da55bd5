//! The figures as tables, claims and pictures. Times are milliseconds.

use anyhow::Result;
use serde_json::json;

use super::measure::{SHARES, Sample};
use super::plan;
use super::runs::{ByServer, Results, percent};
use super::simulate;
use crate::load::wrk;
use crate::plot::{self, Line};
use crate::report::{Claim, Picture, Report, Table};

/// What is claimed.
const MEAN_BELOW_FIFO: f64 = 0.30;
const THROUGHPUT_MAY_LOSE: f64 = 0.02;
/// per_byte of shortest_reply times a megabyte, in milliseconds.
const LARGE_MAY_LOSE: f64 = 2_100.0;

pub fn report(results: &Results, network: Option<anyhow::Error>) -> Result<Report> {
    let mut tables = vec![open_table(results), closed_table(results)];
    if !results.wrk_keep_alive.is_empty() {
        tables.push(keep_alive_table(results));
    }
    let mut text: Vec<String> = METHOD.iter().map(|paragraph| (*paragraph).to_owned()).collect();
    if let Some(error) = network {
        let note = format!(
            "The clients shared plain loopback with the server ({error:#}): they pay for both ends of each connection and may \
             be busier than the server. Run as root for a network of the experiment's own."
        );
        tables[0].notes.push(note.clone());
        text.insert(0, note);
    }
    Ok(Report {
        name: "webserver".to_owned(),
        title: "A web server at overload: shortest reply first".to_owned(),
        text,
        tables,
        claims: claims(results),
        pictures: pictures(results)?,
        commands: results.commands.clone(),
        data: json!(results),
    })
}

const METHOD: &[&str] = &[
    "Server and clients have a core each. Requests come at random times (a Poisson process) at a rate fixed beforehand, each on a \
     connection of its own; for one second, at overload more of them than the server can answer, then none until all are answered. A \
     response time runs from the moment a request was due to the last byte of its reply, and every request counts. The same \
     requests go to each server in turn, five times; figures are medians.",
    "Why not a closed loop? With N clients that ask again as soon as they are answered the mean response time is N / throughput \
     whatever the scheduler does (Little's law). The second table shows just that, and how the same mean is made up of many \
     short waits and a few long ones.",
    "The claims are made at 110 % of what fifo can answer. How much an order can gain depends on how much of the work can be put \
     off: once the small requests alone are more than the core can do, as at 120 % where a connection costs much and a byte \
     little, somebody waits in any order.",
    "The kernel's work on arriving packets is done on the server's core (receive packet steering on a loopback of the \
     experiment's own), as it would be if the clients were another machine. Otherwise the client pays for both ends of each \
     handshake, and one core of clients cannot overload the server.",
    "Every reply's status and length is checked, and one in seventeen byte by byte.",
];

fn find<'a, T>(rows: &'a ByServer<T>, name: &str) -> Option<&'a T> {
    rows.iter().find(|(server, _)| server == name).map(|(_, value)| value)
}

fn words(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

/// Three significant digits, no exponent.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v > 0.0 => format!("{value:.3}"),
        _ => "0".to_owned(),
    }
}

fn sample_cells(sample: &Sample) -> Vec<String> {
    let figures = [
        sample.throughput,
        sample.all.mean,
        sample.all.p50,
        sample.all.p99,
        sample.large.mean,
        sample.large.p99,
        sample.lost,
    ];
    figures.iter().map(|figure| number(*figure)).collect()
}

const SAMPLE_COLUMNS: [&str; 7] = ["answers/s", "mean", "p50", "p99", "1 MB mean", "1 MB p99", "lost"];

const SIMULATED_COLUMNS: [&str; 6] = ["sim answers/s", "mean", "p50", "p99", "1 MB mean", "1 MB p99"];

fn simulated_cells(sample: Option<&Sample>) -> Vec<String> {
    let Some(sample) = sample else { return vec![String::new(); SIMULATED_COLUMNS.len()] };
    let (all, large) = (&sample.all, &sample.large);
    let figures = [sample.throughput, all.mean, all.p50, all.p99, large.mean, large.p99];
    figures.iter().map(|figure| number(*figure)).collect()
}

fn open_table(results: &Results) -> Table {
    let mut rows = Vec::new();
    for (percent, servers) in &results.open {
        for (name, sample) in servers {
            let mut row = vec![format!("{percent} % {name}")];
            row.extend(sample_cells(sample));
            let simulated = results.simulated.get(percent).and_then(|servers| find(servers, name));
            row.extend(simulated_cells(simulated));
            rows.push(row);
        }
    }
    let (fifo, shortest) = (&results.fifo, &results.shortest_reply);
    Table {
        title: format!(
            "Open loop: response times in ms, load in % of the {} requests/s that fifo can answer",
            number(results.capacity)
        ),
        columns: words(&[&["load, server"][..], &SAMPLE_COLUMNS, &SIMULATED_COLUMNS].concat()),
        rows,
        notes: vec![
            costs_note(results),
            format!(
                "fifo with the settings that suit it best of those tried: {} handlers, chunks of {} kB; shortest_reply with {} and {} kB.",
                fifo.handlers,
                fifo.chunk >> 10,
                shortest.handlers,
                shortest.chunk >> 10
            ),
        ],
    }
}

fn costs_note(results: &Results) -> String {
    let cost = |(name, costs): &(String, simulate::Costs)| {
        format!("{name} {:.1} us a request and {:.3} ns a byte", costs.per_request / 1e3, costs.per_byte)
    };
    let costs: Vec<_> = results.costs.iter().map(cost).collect();
    format!(
        "sim: the simulator with the same policy files and the costs measured on the server: {}.",
        costs.join(", ")
    )
}

fn closed_table(results: &Results) -> Table {
    let mut rows = Vec::new();
    for (clients, servers) in &results.closed {
        for (name, sample) in servers {
            let beside = results.wrk.get(clients).and_then(|servers| find(servers, name));
            let mut row = vec![format!("{clients} {name}")];
            row.extend(sample_cells(sample));
            row.push(beside.map_or_else(String::new, |wrk| number(wrk.requests_per_second)));
            row.push(beside.map_or_else(String::new, |wrk| number(wrk.mean / 1e6)));
            rows.push(row);
        }
    }
    let columns = [&["clients, server"][..], &SAMPLE_COLUMNS, &["wrk answers/s", "wrk mean"]].concat();
    Table {
        title: "Closed loop, a connection for each request: response times in ms".to_owned(),
        columns: words(&columns),
        rows,
        notes: vec![],
    }
}

fn keep_alive_table(results: &Results) -> Table {
    let cells = |summary: &wrk::Summary| {
        let figures =
            [summary.requests_per_second, summary.mean / 1e6, summary.median / 1e6, summary.p99 / 1e6];
        figures.iter().map(|figure| number(*figure)).chain([summary.errors.to_string()]).collect::<Vec<_>>()
    };
    let rows = results.wrk_keep_alive.iter().flat_map(|(clients, servers)| {
        servers
            .iter()
            .map(move |(name, summary)| [vec![format!("{clients} {name}")], cells(summary)].concat())
    });
    Table {
        title: "wrk with keep-alive: response times in ms".to_owned(),
        columns: words(&["clients, server", "answers/s", "mean", "p50", "p99", "errors"]),
        rows: rows.collect(),
        notes: vec![],
    }
}

fn claims(results: &Results) -> Vec<Claim> {
    let overload = percent(plan::OVERLOAD);
    let servers = results.open.get(&overload);
    let Some((fifo, shortest)) =
        servers.and_then(|servers| Some((find(servers, "fifo")?, find(servers, "shortest_reply")?)))
    else {
        return vec![];
    };
    let below = 1.0 - shortest.all.mean / fifo.all.mean;
    let slower = 1.0 - shortest.throughput / fifo.throughput;
    let runs = results.open.values().chain(results.closed.values()).flatten();
    let ours = runs.filter(|(name, _)| name != "nginx").map(|(_, sample)| (sample.lost, sample.verified));
    let (lost, verified) = ours.fold((0.0, 0.0), |sum, figures| (sum.0 + figures.0, sum.1 + figures.1));
    vec![
        Claim {
            claim: format!("at {overload} % load the mean response time is at least 30 % below tuned fifo's"),
            holds: below >= MEAN_BELOW_FIFO,
            measured: format!(
                "{} ms against {} ms, {:.0} % below",
                number(shortest.all.mean),
                number(fifo.all.mean),
                below * 100.0
            ),
        },
        Claim {
            claim: "the large replies' price is bounded: none takes more than two seconds longer than fifo's longest".to_owned(),
            holds: shortest.large.max <= fifo.large.max + LARGE_MAY_LOSE,
            measured: format!(
                "mean {} ms against {} ms, longest {} ms against {} ms",
                number(shortest.large.mean),
                number(fifo.large.mean),
                number(shortest.large.max),
                number(fifo.large.max)
            ),
        },
        Claim {
            claim: "throughput is at most 2 % below fifo's".to_owned(),
            holds: slower <= THROUGHPUT_MAY_LOSE,
            measured: format!(
                "{} against {} answers a second, {:+.1} %",
                number(shortest.throughput),
                number(fifo.throughput),
                -slower * 100.0
            ),
        },
        Claim {
            claim: "no request is lost or answered wrongly".to_owned(),
            holds: lost == 0.0,
            measured: format!("{lost:.0} lost; {verified:.0} replies compared byte by byte"),
        },
    ]
}

fn pictures(results: &Results) -> Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    if let Some((percent, servers)) = results.open.iter().next_back() {
        let line = |(name, sample): &(String, Sample)| Line {
            name: name.clone(),
            points: SHARES.iter().map(|share| share * 100.0).zip(sample.curve.iter().copied()).collect(),
            dashed: false,
        };
        let lines: Vec<_> = servers.iter().map(line).collect();
        pictures.push(Picture {
            title: format!(
                "How many percent of the requests were answered within how long, at {percent} % load"
            ),
            svg: plot::lines("percent of requests", "ms", &lines)?,
        });
    }
    let names: Vec<_> =
        results.open.values().next().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let mut lines = Vec::new();
    for name in &names {
        for (class, dashed, pick) in
            [("all", false, mean_of_all as fn(&Sample) -> f64), ("1 MB", true, mean_of_large)]
        {
            let points = results
                .open
                .iter()
                .filter_map(|(percent, servers)| Some((f64::from(*percent), pick(find(servers, name)?))));
            lines.push(Line { name: format!("{name}, {class}"), points: points.collect(), dashed });
        }
    }
    pictures.push(Picture {
        title: "Mean response time by load".to_owned(),
        svg: plot::lines("load, percent of fifo's capacity", "ms", &lines)?,
    });
    Ok(pictures)
}

fn mean_of_all(sample: &Sample) -> f64 {
    sample.all.mean
}

fn mean_of_large(sample: &Sample) -> f64 {
    sample.large.mean
}
