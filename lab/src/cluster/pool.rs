//! Experiment `pool`: how evenly processes on one listening socket share their requests, with the
//! cluster's policy and without.
//!
//! The example (examples/pool) runs in pairs, one run after the other under the same requests: its
//! processes as nodes of a cluster with a manager, and the same program with the same compiled
//! scheduler alone, so that chance decides which process accepts. Times are a twenty-fifth of the
//! published ones: a request every 10 ms, which lasts 10 to 200 ms.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::example::POOL;
use super::programs::{self, Pair, Stage, check};
use crate::experiment::{Options, Procedure, Progress};
use crate::plot;
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "pool",
    about: "processes on one listening socket: a cluster's policy against chance",
    check: |options| check(options, &POOL),
    run,
};

/// Bounds of the claims, from the published figures: 2.68 to 1.78, and 12 to 6.
const MOST_MEAN: f64 = 0.6;
const MOST_WORST: f64 = 0.5;

/// What a run of the program says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Outcome {
    requests: u32,
    answered: u32,
    mean_difference: f64,
    worst_difference: f64,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let stage = Stage::set(options, &POOL)?;
    let (count, requests) = if options.quick { (3, 400) } else { (10, 1500) };
    let pairs = Stage::pairs(count, |number, clustered| {
        progress(&format!("pair {number} of {count}"));
        stage.run(clustered, |command| {
            command
                .args(["--interval", "0.01", "--shortest", "0.01", "--longest", "0.2"])
                .args(["--requests", &requests.to_string(), "--seed", &number.to_string()])
                .env("ATTUNE_SCHED", "./process.so");
        })
    })?;
    report(&pairs, requests)
}

fn report(pairs: &[Pair<Outcome>], requests: u32) -> Result<Report> {
    let median = |figure: fn(&Pair<Outcome>) -> f64| programs::median(pairs, figure);
    let row = |name: &str,
               mean: fn(&Pair<Outcome>) -> f64,
               worst: fn(&Pair<Outcome>) -> f64|
     -> Result<_> {
        let (mean, worst) = (median(mean)?, median(worst)?);
        Ok(vec![name.to_owned(), format!("{:.2}", mean.value), format!("{:.0}", worst.value)])
    };
    let rows = vec![
        row("alone", |it| it.alone.mean_difference, |it| it.alone.worst_difference)?,
        row("cluster", |it| it.cluster.mean_difference, |it| it.cluster.worst_difference)?,
        vec!["published: alone".into(), "2.68".into(), "12".into()],
        vec!["published: balanced".into(), "1.78".into(), "6".into()],
    ];
    let columns = ["", "mean difference, requests", "worst difference, requests"];
    let mut table = Table::new("Busiest process less idlest", &columns, rows);
    table.notes.push(format!("medians of {} pairs of {requests} requests", pairs.len()));
    let mean = median(|it| it.cluster.mean_difference / it.alone.mean_difference)?;
    let worst = median(|it| it.cluster.worst_difference / it.alone.worst_difference)?;
    let all = pairs.iter().flat_map(|pair| [&pair.alone, &pair.cluster]);
    let lost: u32 = all.map(|it| it.requests - it.answered).sum();
    let claims = vec![
        Claim::interval("mean difference at most 0.6 times that of chance", mean, MOST_MEAN),
        Claim::interval("worst difference at most half that of chance", worst, MOST_WORST),
        Claim::new("no request is lost", Some((lost == 0, format!("{lost} lost")))),
    ];
    let bars = [
        ("alone".to_owned(), median(|it| it.alone.mean_difference)?.value),
        ("cluster".to_owned(), median(|it| it.cluster.mean_difference)?.value),
    ];
    let picture = Picture::new("Mean difference", plot::bars("requests", &bars)?);
    let report = Report::new("pool", "Processes on one listening socket").saying(&[
        "Six processes wait for connections on one socket; a request comes every 10 ms on average \
         and lasts 10 to 200 ms. Alone, chance decides which process accepts. In the cluster a \
         process that has more than its share of the requests pauses the thread that accepts.",
    ]);
    Ok(Report {
        tables: vec![table],
        claims,
        pictures: vec![picture],
        data: json!(pairs),
        ..report
    })
}
