//! Experiment `cameras`: whether the pictures of three cameras find a place in the server's buffer,
//! with the cluster's policy and without.
//!
//! The example (examples/cameras) plays a script; a seed says when crowds of visitors come. The
//! figures are counts, the same on every machine: no time is measured.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::example::CAMERAS;
use super::programs::{Stage, check};
use crate::experiment::{Options, Procedure, Progress};
use crate::report::{Claim, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "cameras",
    about: "pictures in a small buffer, scripted: a cluster's policy loses none",
    check: |options| check(options, &CAMERAS),
    run,
};

/// What a run of the program says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Outcome {
    pictures: u32,
    kept: u32,
    lost: u32,
    delayed: u32,
    served: u32,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let stage = Stage::set(options, &CAMERAS)?;
    let seeds = if options.quick { 2 } else { 20 };
    let pairs = Stage::pairs(seeds, |seed, clustered| {
        progress(&format!("script {seed} of {seeds}"));
        stage.run::<Outcome>(clustered, |command| {
            command.args(["--seed", &seed.to_string()]);
            if clustered {
                command.args(["--camera", "./camera.so", "--server", "./server.so"]);
            }
        })
    })?;
    let lost = |count: &Outcome| count.lost;
    let row = |name: &str, runs: Vec<&Outcome>| {
        let sum = |figure: fn(&Outcome) -> u32| runs.iter().map(|run| figure(run)).sum::<u32>();
        let with_losses = runs.iter().filter(|run| lost(run) > 0).count();
        vec![
            name.to_owned(),
            sum(|run| run.kept).to_string(),
            sum(|run| run.lost).to_string(),
            with_losses.to_string(),
            sum(|run| run.delayed).to_string(),
            sum(|run| run.served).to_string(),
        ]
    };
    let rows = vec![
        row("alone", pairs.iter().map(|pair| &pair.alone).collect()),
        row("cluster", pairs.iter().map(|pair| &pair.cluster).collect()),
    ];
    let columns = ["", "kept", "lost", "scripts with losses", "delayed", "visitors served"];
    let mut table = Table::new("Pictures", &columns, rows);
    table.notes.push(format!("sums over {seeds} scripts"));
    let in_cluster: u32 = pairs.iter().map(|pair| pair.cluster.lost).sum();
    let overflows = pairs.iter().filter(|pair| pair.alone.lost > 0).count();
    let complete = pairs
        .iter()
        .flat_map(|pair| [&pair.alone, &pair.cluster])
        .all(|run| run.kept + run.lost == run.pictures);
    let claims = vec![
        Claim::new(
            "with the cluster's policy no picture is lost",
            Some((in_cluster == 0 && complete, format!("{in_cluster} lost"))),
        ),
        Claim::new(
            "without it the buffer overflows in every script",
            Some((overflows == pairs.len(), format!("in {overflows} of {seeds}"))),
        ),
    ];
    let report = Report::new("cameras", "Three cameras and a small buffer").saying(&[
        "Three cameras store pictures in a circular buffer of eight places, which a server empties \
         and shows to visitors; crowds come. Alone, threads of the server run first in, first out. \
         In the cluster the server serves nobody while the buffer is half full, and a camera waits \
         with its picture while there may be no place.",
    ]);
    Ok(Report { tables: vec![table], claims, data: json!(pairs), ..report })
}
