//! Shows the figures as tables, claims and pictures. Times are milliseconds.

use anyhow::Result;
use serde_json::json;

use super::Results;
use crate::report::{Report, Table};
use crate::webserver::report::{
    COLUMNS, cells, claims, number, numbers, pairs_table, pictures, plain_loopback,
};

/// The bound of the claim: the mean response time in parts of fifo's.
const MEAN: f64 = 0.65;

pub fn report(results: &Results, network: Option<anyhow::Error>) -> Result<Report> {
    let mut pairs = pairs_table(&results.pairs, "this machine, in real time");
    pairs.notes.push(PUBLISHED.to_owned());
    pairs.notes.extend(network.map(plain_loopback));
    let mut claims = claims(&results.pairs, "", MEAN);
    claims.extend(results.contest.claims());
    Ok(Report {
        tables: vec![pairs, results.contest.table("proxy"), open_table(results)],
        claims,
        pictures: pictures(&results.pairs, &results.open)?,
        commands: results.commands.clone(),
        data: json!({ "here": results }),
        ..Report::new("proxy", "A caching proxy at overload: shortest reply first").saying(METHOD)
    })
}

const PUBLISHED: &str = "Published: a scheduler in CATAPULTS is reported to make a web server's \
     mean response 13 to 32 % shorter at overload. Its authors wrote one for a web proxy, too; we \
     could read abstracts only, so no figure of that proxy stands here.";

const METHOD: &[&str] = &[
    "The proxy has a core, and the clients share the other with the nginx behind the proxy. The \
     proxy keeps what it may in memory, 8 files of 1 MB and 64 of 0.6 to 26 kB. One request in \
     fifty is for a large file. One small request in five is for a reply that may not be kept, so \
     the proxy asks the upstream for it.",
    "Open loop, pairs, capacity and intervals are those of the experiment `webserver`. The pool \
     has 512 handlers on both sides; the search finds the size of a chunk.",
    "The contest with nginx is a closed loop of 256 clients, a connection for each request, on the \
     same core in alternating pairs: proxy_cache in the page cache, connections to the upstream \
     kept alive, the best of four configurations. Ours runs under `shortest_reply`.",
    "Every reply's status and length is checked, and one in seventeen byte by byte.",
];

fn open_table(results: &Results) -> Table {
    let rows = results.open.iter().flat_map(|(percent, servers)| {
        servers.iter().map(move |(name, sample)| {
            [format!("{percent} % {name}")].into_iter().chain(numbers(cells(sample))).collect()
        })
    });
    let capacity = number(results.pairs.capacity());
    let title = format!(
        "Open loop: response times in ms, load in % of the {capacity} requests/s that fifo answers"
    );
    Table::new(title, &[&["load, proxy"][..], &COLUMNS].concat(), rows.collect())
}
